"""A question about two sources, a filing in the library and news on the web, end to end in every mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.app import App, Question, RunOptions
from rag.conversations.conversations import TurnHandle
from rag.evaluation.metrics import context_recall
from rag.types import Answer
from tests.support.apps import ask
from tests.support.deep_question import QUESTION, case, deep_app
from tests.support.page_server import PageServer
from tests.support.waiting import until_waiting


@pytest.fixture(params=[True, False], ids=["scripted model", "no model"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[App, PageServer, bool]]:
    with deep_app(tmp_path, with_model=request.param) as (app, server):
        yield app, server, request.param


def asked(app: App, mode: str, *, web: bool = True, strategy: str = "") -> Answer:
    options = RunOptions(strategy=strategy, web="allowed" if web else "")
    return ask(app, QUESTION, mode, options=options)


def recall(answer: Answer) -> float:
    return context_recall(case().quotes, [one.text for one in answer.passages])


def test_research_reads_both_sources_and_one_search_does_not(both: tuple[App, PageServer, bool]) -> None:
    app, server, with_model = both
    single = [asked(app, "fast", strategy=one) for one in ("classic", "rerank")]
    assert not server.count("/search") and all(recall(one) < 0.5 for one in single)
    answer = asked(app, "research")
    assert server.count("/search") == 1
    assert {one["source"] for one in answer.trail["ledger"]} == {"library", "web"}
    assert {one.url for one in answer.citations} <= {one["url"] for one in answer.trail["ledger"]}
    assert answer.citations and all(one.verdict != "unsupported" for one in answer.statements)
    assert recall(answer) > max(map(recall, single))
    assert bool(answer.model_calls) is with_model
    if with_model:
        assert recall(answer) == 1.0
        assert [(one["tool"], one["section"]) for one in answer.trail["plan"]] == [
            ("library", "Item 1. Business"),
            ("library", "Item 1A. Risk Factors"),
            ("web", ""),
        ]
        pages = {one.url.rpartition("/")[2] for one in answer.citations}
        assert pages == {"nvidia-10-k-2023", "amd-forecast-2024-01", "amd-roadmap-2024-06"}


def test_without_leave_the_question_does_not_go_to_the_web(both: tuple[App, PageServer, bool]) -> None:
    app, server, with_model = both
    answer = asked(app, "research", web=False)
    assert not server.count("/search")
    assert {one["source"] for one in answer.trail["ledger"]} == {"library"}
    noted = {note["code"] for note in answer.trail.get("notes", ())}
    assert noted == ({"research_web_unset"} if with_model else set())


def test_permission_lasts_for_one_conversation_whose_ledger_answers_follow_ups(tmp_path: Path) -> None:
    with deep_app(tmp_path, with_model=True) as (app, server):
        first = converse(app)
        turn = until_waiting(app.conversations, first.turn_id)
        assert turn.waits[0].asks["web"] == ["What is AMD's AI chip strategy in 2024?"] and not server.count("/search")
        app.reply(turn.id, {turn.waits[0].id: {"web": "conversation"}})
        assert recall(app.wait(first.run_id, 120)) == 1.0
        asked_on = "Who has said that they will put the MI300X into their data centers?"
        again = app.wait(converse(app, first.conversation_id, asked_on, "fast").run_id, 120)
        assert "Microsoft Azure" in again.text and all("ledger" in one.ranks for one in again.passages)
        assert any(one.url.endswith("amd-forecast-2024-01") for one in again.citations)
        assert (again.searches, server.count("/search")) == ((), 1)
        app.wait(converse(app, first.conversation_id).run_id, 120)
        assert server.count("/search") == 2
        branch = app.conversations.branch(first.conversation_id, first.turn_id)
        lets = [app.conversations.allows_web(one) for one in (first.conversation_id, branch, "")]
        assert lets == [True, False, False]
        asked = converse(app)
        turn = until_waiting(app.conversations, asked.turn_id)
        app.reply(turn.id, {turn.waits[0].id: {"web": "no"}})
        answer = app.wait(asked.run_id, 120)
        assert [gap["code"] for gap in answer.trail["gaps"]] == ["research_web_refused"]
        assert server.count("/search") == 2


def converse(app: App, conversation_id: str = "", text: str = QUESTION, mode: str = "research") -> TurnHandle:
    question = Question(text, ("main",), mode, options=RunOptions(web="ask", standalone=text))
    return app.converse(question, conversation_id=conversation_id)
