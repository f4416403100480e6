"""Whole runs with a real chat server: streaming, tool calls, and everything that a server can do wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.graphs.modes import MODES
from rag.locales import say
from rag.models import chat as chat_models
from rag.prompts.texts import SHIPPED, PromptTexts
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import Question, answer_from_json, to_json
from rag.runs.runs import Runs
from rag.types import RunMode
from tests.support.answering import TEA, FakeRetriever, ask, nodes_of, passage
from tests.support.chat_rules import rules
from tests.support.chat_server import Call, ChatServer, Reply, Request
from tests.support.conversing import chat_reasoner
from tests.support.waiting import until

QUESTION = "When did Mount Aso erupt?"
ANSWER = "Mount Aso erupted in 1953. [1]"
TALK = "What did I ask before?"
"""A question about the conversation: the only kind for which a model decides whether to search."""


def _by_kind(**replies: Any) -> Callable[[Request], Reply | str]:
    """Reply by kind of request: decide, grade, rewrite or answer; each has one reply or a list of them."""

    def respond(request: Request) -> Reply | str:
        system = request.rules
        kind = "grade" if "judge search results" in system else "rewrite" if "search queries" in system else ""
        kind = kind or ("decide" if request.tools else "answer")
        reply = replies[kind]
        return (reply.pop(0) if len(reply) > 1 else reply[0]) if isinstance(reply, list) else reply

    return respond


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_plausible_model_answers(runs: Runs, mode: RunMode) -> None:
    with ChatServer(rules) as server:
        answer, events = ask(runs, chat_reasoner(server.base_url), mode=mode)
    assert (answer.outcome, answer.notice, answer.text) == ("answered", None, "Mount Aso erupted in 1953.[1]")
    assert sum(e.kind == "token" for e in events) > 1
    assert nodes_of(answer) == ["enter", "agent", "retrieve", *(["grade"] if mode == "deep" else []), "generate"]
    assert [r.stream for r in server.requests] == [*([False] if mode == "deep" else []), True]
    assert answer.model_calls == len(server.requests)
    assert all(r.body["max_tokens"] <= 800 for r in server.requests)
    sent = [str(r.messages[0]["content"]) + str(r.messages[1]["content"]) for r in server.requests]
    beginnings = {text.partition("</passage-")[0] for text in sent}
    assert len(beginnings) == 1, "the server keeps it"


# --- faults


@pytest.mark.parametrize(
    "arguments", ['{"query": "Aso', "Aso eruption", "{}", '{"query": null}', '["Aso"]', '{"q": "Aso"}']
)
def test_a_malformed_tool_call(runs: Runs, arguments: str) -> None:
    retriever = FakeRetriever()
    broken = Reply(tool_calls=[Call("retrieve", arguments)])
    script = _by_kind(decide=broken, grade='{"irrelevant": []}', answer=ANSWER)
    with ChatServer(script) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url), retriever, mode="deep", question=TALK)
    assert answer.citations
    assert retriever.queries == [TALK]
    assert answer.model_calls - len([r for r in server.requests if not r.tools]) == 2


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_server_that_takes_no_tools(runs: Runs, mode: RunMode) -> None:
    retriever, refusal = FakeRetriever(), "No endpoints found that support tool use."
    with ChatServer(rules, refuse=["tools"], refuse_with=404, refusal=refusal) as server:
        for _ in range(2):
            ask(runs, chat_reasoner(server.base_url), retriever, mode=mode, question=TALK)
        asked = [request for request in server.requests if request.tools == ["retrieve"]]
    assert retriever.queries.count(TALK) == 2
    assert len(asked) == 1  # the refusal is remembered of the server, not of one question's reasoner


def test_verdicts_that_cannot_be_read_leave_all_passages(runs: Runs) -> None:
    prose = "Both passages look relevant to me."
    with ChatServer(_by_kind(grade=prose, answer=ANSWER)) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url), mode="deep")
    assert (answer.outcome, answer.text) == ("caveat", "Mount Aso erupted in 1953.[1]")
    assert answer.notice and answer.notice.code == "ungraded"
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert [s.detail["decision"] for s in answer.steps if s.node == "grade"] == ["ungraded"]


def test_a_rewrite_that_cannot_be_read_ends_the_search(runs: Runs) -> None:
    no = '{"irrelevant": [1, 2]}'
    with ChatServer(_by_kind(grade=no, rewrite=Reply(fault="garbled"), answer=ANSWER)) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url), mode="deep")
    assert answer.outcome == "caveat" and answer.text.startswith("Mount Aso erupted")
    assert answer.notice and answer.notice.code == "best_found"


def test_grading_steps_down_with_what_the_server_takes(runs: Runs) -> None:
    with ChatServer(rules, refuse=["response_format", "tool_choice"]) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url), mode="deep")
    assert answer.outcome == "answered"
    assert [p.id for p in answer.passages] == ["p1"]
    assert answer.model_calls == len(server.requests) <= 12


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize(
    ("reply", "code"),
    [(Reply("Incorrect API key provided.", status=401), "chat_wrong_key"), (Reply(fault="garbled"), "chat_unusable")],
)
def test_a_server_that_refuses_everything_still_shows_passages(
    runs: Runs, mode: RunMode, reply: Reply, code: str
) -> None:
    with ChatServer(lambda _: reply) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url), mode=mode)
    assert answer.outcome == "failed" and answer.text == ""
    assert answer.notice and answer.notice.code == code
    assert say(answer.notice, "en") and say(answer.notice, "zh")
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert (answer.usage.calls == 0) == (reply.status != 200)


@pytest.mark.parametrize("fault", ["cut", "garbled", "nested"])
def test_half_an_answer(runs: Runs, fault: Any) -> None:
    half = Reply(f"{ANSWER} Its crater is 24 kilometres wide. [1]", fault=fault)
    with ChatServer([half]) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url))
    assert answer.outcome == "failed"
    assert answer.notice is not None
    assert answer.text.startswith("Mount Aso erupted")
    assert "kilometres wide." not in answer.text
    assert [p.id for p in answer.passages] == ["p1", "p2"]


def test_an_answer_cut_by_the_models_limit(runs: Runs) -> None:
    with ChatServer([Reply(f"{ANSWER} Its crater", finish="length")]) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url))
    assert answer.outcome == "caveat"
    assert answer.notice and answer.notice.code == "answer_too_long"


@pytest.mark.parametrize("script", [[Reply(fault="hang")], [Reply(ANSWER, fault="hang")]])
def test_a_server_that_hangs(runs: Runs, script: list[Reply], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_models, "TIMEOUT_SECONDS", 1.0)
    with ChatServer(script) as server:
        answer, _ = ask(runs, chat_reasoner(server.base_url))
    assert answer.outcome == "failed"
    assert answer.notice and answer.notice.code == "chat_timeout"
    assert [p.id for p in answer.passages] == ["p1", "p2"]


@pytest.mark.parametrize("script", [[Reply(fault="hang")], [Reply(ANSWER, fault="hang")]])
def test_stopping_a_server_that_hangs(runs: Runs, script: list[Reply]) -> None:
    with ChatServer(script) as server:
        run_id = runs.start(Question(QUESTION), reasoner=chat_reasoner(server.base_url), retriever=FakeRetriever())
        until(lambda: len(server.requests) == len(script))
        time.sleep(0.2)
        began = time.monotonic()
        runs.cancel(run_id)
        answer = runs.wait(run_id, 60)
        assert time.monotonic() - began < 20, "the server would have been waited for"
    assert answer.notice and answer.notice.code == "run_stopped"
    assert bool(answer.text) == bool(script[0].text)


def test_runs_that_come_after_others_closed_use_the_same_server() -> None:
    """Open connections are shared between models and belong to the loop that opened them."""
    with ChatServer(rules) as server:
        for _ in range(3):
            runs = Runs(MODES)
            answer, _events = ask(runs, chat_reasoner(server.base_url))
            runs.close()
            assert answer.outcome == "answered"


def test_each_answer_keeps_the_wording_that_it_was_made_with(runs: Runs, tmp_path: Path) -> None:
    texts = PromptTexts(tmp_path)
    mine = texts.replace("answer.en", "Be brief. {count} passages in <{marker}>; else {missing}.")
    with ChatServer(rules) as server:
        reasoner = ChatReasoner(server.model(), texts=texts)
        answer, _ = ask(runs, reasoner, FakeRetriever(default=[passage(1), passage(2, TEA)]), question=QUESTION)
    assert answer.usage.prompts == (mine.version, SHIPPED.text("passages.en").version)
    asked = [message for request in server.requests for message in request.messages]
    assert "Be brief. 2 passages in <passage-" in asked[-1]["content"]
    assert all(message.keys() == {"role", "content"} for message in asked)
    assert answer_from_json(to_json(answer)).usage == answer.usage
