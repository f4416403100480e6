"""Small models over a real server and library: whatever they write, the answer is never worse than quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from rag.app import App
from tests.support.apps import add_records, ask, open_app
from tests.support.chat_server import ChatServer, Reply, Request

pytestmark = pytest.mark.weights

PAGES = {
    "https://example.org/orrin": (
        "Orrin mill",
        "The mill at Orrin was built in 1790 beside the weir. Its wheel is six metres wide. "
        "The miller is paid 300 crowns a year.",
    ),
    "https://example.org/boats": ("Boats", "Boats of the coast guard are painted white and carry a red stripe."),
}
QUESTION = "When was the mill at Orrin built?"
ANSWER = "The mill at Orrin was built in 1790 [1]."

Script = Callable[[Request], Reply | str]


@contextmanager
def app_with(script: Script, folder: Path, **settings: Any) -> Iterator[tuple[App, ChatServer]]:
    rows = [{"url": url, "title": title, "lang": "en", "text": text} for url, (title, text) in PAGES.items()]
    with ExitStack() as stack:
        server = stack.enter_context(ChatServer(script))
        app = open_app(folder, llm_model="small", llm_base_url=server.base_url, **settings)
        stack.enter_context(closing(app))
        add_records(app, *rows)
        yield app, server


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, list[str]]]:
    """Yield an app, and the replies, of which its model sends the last."""
    said: list[str] = []
    with app_with(lambda _: said[-1], tmp_path_factory.mktemp("small")) as (app, _):
        yield app, said


@pytest.mark.parametrize(
    ("reply", "notice"),
    [
        ("[1]", "quoted_model_failed"),
        ("[1][2]", "quoted_model_failed"),
        ("The answer is:", "quoted_model_failed"),
        ("Based on the passages: [1]", "quoted_model_failed"),
        ("", "quoted_model_failed"),
        ("<|im_end|>", "quoted_model_failed"),
        ('<tool_call>{"name": "retrieve", "arguments": {"query": "mill"}}</tool_call>', "quoted_model_failed"),
        ("<think>The user asks about the mill at Orrin.</think>", "quoted_model_failed"),
        ("NOT_IN_PAGES", "quoted_not_found"),
        ("The passages do not say when it was built.", "quoted_not_found"),
        ("Penguins swim in the cold sea near Antarctica.", "quoted_unsupported"),
        ("Penguins swim in the cold sea near Antarctica. [1]", "quoted_unsupported"),
        ("[1] Orrin mill\n[1] Orrin mill", "quoted_unsupported"),
    ],
)
def test_what_says_nothing_gives_way_to_quotes(small: tuple[App, list[str]], reply: str, notice: str) -> None:
    app, said = small
    said.append(reply)
    answer = ask(app, QUESTION)
    assert "1790" in answer.text and answer.citations
    assert (answer.outcome, answer.notice and answer.notice.code) == ("caveat", notice)


@pytest.mark.parametrize(
    "reply",
    [
        ANSWER,
        f"<answer>{ANSWER}</answer>",
        f"```markdown\n{ANSWER}\n```",
        json.dumps({"answer": "The mill at Orrin was built in 1790.", "citations": [1]}),
        "The mill at Orrin was built in 1790 [Orrin mill].",
        f"{ANSWER}\n\nSources:\n- [1] Orrin mill, https://example.org/orrin",
        f"**Thinking:** passage 1 tells.\n\n**Answer:** {ANSWER}<|im_end|>",
    ],
)
def test_what_is_wrapped_is_the_same_answer(small: tuple[App, list[str]], reply: str) -> None:
    app, said = small
    said.append(reply)
    answer = ask(app, QUESTION)
    assert (answer.text, answer.outcome, answer.notice) == (
        "The mill at Orrin was built in 1790.[1]", "answered", None
    )  # fmt: skip


HEADINGS = "Orrin mill › Orrin mill (2026-01-01) Boats › Boats (2026-01-01)"  # by a model with 0.5B parameters


@pytest.mark.parametrize(("reply", "text"), [("NOT_IN_PAGES", ""), (HEADINGS, HEADINGS)])
def test_a_doubtful_search_and_a_reply_without_citations_give_no_answer(
    small: tuple[App, list[str]], reply: str, text: str
) -> None:
    app, said = small
    said.append(reply)
    answer = ask(app, "Who painted the ceiling of the opera house in Lisbon?")
    assert (answer.outcome, answer.text) == ("not_in_pages", text)
    assert answer.notice and answer.notice.code == "not_in_pages"


@pytest.mark.parametrize("mode", ["fast", "deep", "research", "judge"])
def test_after_a_time_out_rules_do_the_rest_and_say_so(tmp_path: Path, mode: str) -> None:
    with app_with(lambda _: Reply(fault="hang"), tmp_path, llm_timeout=1.0) as (app, server):
        answer = ask(app, QUESTION, mode)
        count = len(server.requests)
    assert count <= 3 and answer.seconds < 30
    assert "1790" in answer.text and answer.citations
    assert answer.outcome == "caveat" and answer.notice is not None


def test_deep_answers_do_not_grade_what_the_search_is_sure_of(tmp_path: Path) -> None:
    verbatim = "The mill at Orrin was built in 1790 beside the weir. [1]"
    with app_with(lambda _: verbatim, tmp_path) as (app, server):
        answer = ask(app, QUESTION, "deep")
        assert len(server.requests) == answer.model_calls == 1
    assert [step.node for step in answer.steps] == ["enter", "agent", "retrieve", "grade", "generate"]


@pytest.fixture(scope="module")
def samples(samples_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[App, list[Reply]]]:
    """Yield an app with the sample pages, and the replies, of which its model sends the last."""
    said: list[Reply] = []

    def script(request: Request) -> Reply:
        marker = re.search("passage-[0-9a-f]{6}", str(request.messages))
        return replace(said[-1], text=said[-1].text.replace("MARKER", marker[0] if marker else ""))

    with ChatServer(script) as server:
        folder = copytree(samples_folder, tmp_path_factory.mktemp("app") / "data")
        with closing(open_app(folder, llm_model="small", llm_base_url=server.base_url)) as app:
            yield app, said


RECORDED = [json.loads(line) for line in (Path(__file__).parent / "support" / "real_replies.jsonl").open("rb")]


@pytest.mark.parametrize("recorded", RECORDED)
def test_what_real_models_wrote_is_never_shown_instead_of_quotes(
    samples: tuple[App, list[Reply]], recorded: dict[str, str]
) -> None:
    app, said = samples
    said.append(Reply(recorded["reply"], finish=recorded["finish"]))
    answer = ask(app, recorded["question"])
    assert answer.model_calls == 1
    assert answer.outcome == "not_in_pages" or answer.citations, answer.text
    assert not re.search(r"passage-[0-9a-f]{6}|NOT_IN_PAGES|\[[0-9a-f]{6}\]", answer.text)
    lines = [line for line in answer.text.splitlines() if line.strip()]
    assert len(lines) - len(set(lines)) <= 1, answer.text
