"""Suggested questions: in the question's language, new, and answerable from the pages."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.conversations.conversations import from_headings, suggest_questions
from rag.reasoning.chat import ChatReasoner
from rag.types import Answer, Citation, Passage
from tests.conversations.conftest import FIRST, Talk
from tests.support.answering import BRIDGE, ScriptedReasoner, passage
from tests.support.fake_model import QueueModel
from tests.support.waiting import until


def _under(number: int, *section: str) -> Passage:
    return replace(passage(number, BRIDGE), section=section)


def _answer(question: str, *passages: Passage, outcome: str = "answered") -> Answer:
    cited = Citation(1, "u", "h", "t", "q", 0, 1, passages[0].section if passages else ())
    return Answer(question, "fast", outcome, "In 1932. [1]", (cited,), passages)  # type: ignore[arg-type]


def test_only_headings_that_are_questions_are_proposed() -> None:
    passages = [
        _under(1, "History"),
        _under(2, "3. Traffic and lanes"),
        _under(3, "Do guests cost anything?"),
        _under(4, "The bridge opened"),
        _under(5),
        _under(6, "Where paint is kept"),
        _under(7, "What's next?"),
    ]
    assert from_headings("When was the bridge opened?", passages, in_context=True) == ["Do guests cost anything?"]
    chinese = [_under(1, "历史"), _under(2, "怎样付款"), _under(3, "Why is it red?")]
    assert from_headings("桥是什么时候通车的？", chinese, in_context=True) == ["怎样付款？"]


@pytest.mark.parametrize(
    ("heading", "title", "is_proposed"),
    [
        ("How does it work?", "Harbour ferry", False),
        ("How Does It Work?", "Harbour ferry", False),
        ("Columns or rows?", "Flexbox", False),
        ("Need help choosing gear?", "Trail packs", False),
        ("How long is the ferry ride?", "Harbour ferry", True),
        ("Where do I install Docker?", "Networking", True),
        ("如何付款？", "渡轮指南", False),
        ("渡轮多久一班？", "渡轮指南", True),
        ("怎样安装 Docker？", "网络", True),
    ],
)
def test_without_an_answer_above_it_a_proposed_question_names_something(
    heading: str, title: str, is_proposed: bool
) -> None:
    question = "这些网页讲了什么？" if title[0] > "z" else "What is this about?"
    assert from_headings(question, [replace(_under(1, heading), title=title)]) == [heading] * is_proposed


def _placed(start: int, heading: str, text: str = BRIDGE, page: str = "h") -> Passage:
    return replace(_under(start, heading), text=text, start=start, end=start + len(text), url_hash=page)


def test_follow_ups_are_headings_near_the_citations_that_are_not_yet_answered() -> None:
    faq = "Is it open to trucks?\nYes, at night.\nWhen did it open?\nIn 1932.\nWho may walk on it?\nEveryone."
    passages = (
        _placed(9_000, "Who paints it?"),
        _placed(500, "Why was it built?", faq),
        _placed(1_200, "What does it carry?"),
        _placed(600, "What does rain cost?", page="other"),
    )
    start = 500 + faq.index("In 1932.")
    cited = Citation(1, "u", "h", "t", "In 1932.", start, start + 8, ("Why was it built?",))
    answer = Answer("When was the bridge opened?", "fast", "answered", "In 1932. [1]", (cited,), passages)
    found = asyncio.run(suggest_questions(answer, ScriptedReasoner()))
    assert found == ["Is it open to trucks?", "Who may walk on it?", "What does it carry?"]
    assert asyncio.run(suggest_questions(replace(answer, citations=()), ScriptedReasoner())) == []


def test_follow_ups_of_a_model_that_pages_do_not_answer_are_dropped() -> None:
    said = (
        "1. How many lanes are there?\n2. When was the bridge opened?\n3. Who painted it?\n4. 桥有几条车道？\n"
        "5. What does it carry?"
    )
    model = QueueModel(replies=[said])
    answer = _answer("When was the bridge opened?", _under(1, "History"), _under(2, "Tolls"))
    likely = lambda question, passages: 0.1 if "painted" in question else 0.9  # noqa: E731
    found = asyncio.run(suggest_questions(answer, ChatReasoner(model), likely))
    assert found == ["How many lanes are there?", "What does it carry?"]
    assert len(model.requests) == 1


def test_without_an_answer_nothing_is_proposed() -> None:
    for outcome in ("failed", "conversation"):
        answer = _answer("When?", _under(1, "History"), outcome=outcome)
        assert asyncio.run(suggest_questions(answer, ScriptedReasoner())) == []


def test_they_come_after_the_answer_and_are_counted(talk: Talk) -> None:
    release = threading.Event()

    class Slow(QueueModel):
        async def _agenerate(self, messages, *arguments, **options):  # type: ignore[no-untyped-def]
            if "further questions" in messages[0].text:
                await asyncio.to_thread(release.wait, 60)
            return self._generate(messages, **{k: v for k, v in options.items() if k != "run_manager"})

    replies: list[Any] = [["Mount Aso erupted in 1953.[1]"], "How wide is the crater?\nWhich town lies inside it?"]
    model = Slow(replies=replies)
    asked, turn = talk.ask(FIRST, ChatReasoner(model), suggest=True, likelihood=lambda _, passages: 1.0)
    assert turn.answer is not None and turn.suggestions == ()
    assert turn.answer.usage.calls == 1
    release.set()
    suggestions = until(lambda: talk.kept.turn(asked.turn_id).suggestions)
    assert suggestions[:2] == ("How wide is the crater?", "Which town lies inside it?")
    assert talk.kept.usage(asked.conversation_id).calls == 2


def test_an_app_that_closes_meanwhile_gives_them_up_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closing, asked = Talk(tmp_path), threading.Event()
    closed = threading.Event()

    def likely(_: str, passages: Sequence[Passage]) -> float:
        asked.set()
        closed.wait(10)
        return 1.0

    model = QueueModel(replies=[["Mount Aso erupted in 1953.[1]"], "How wide is the crater?"])
    closing.ask(FIRST, ChatReasoner(model), suggest=True, likelihood=likely)
    assert asked.wait(10)
    closing.close()
    closed.set()
    time.sleep(0.2)  # for a thread that might still try to save them
    assert not caplog.records
