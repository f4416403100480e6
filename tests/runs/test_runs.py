"""Runs are independent: in the background, stoppable, and with an answer whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from rag.errors import RagError
from rag.graphs.modes import MODES
from rag.runs.run import Hooks, PassageCache, Question
from rag.runs.runs import Runs
from rag.types import Answer, Passage
from tests.support.answering import FakeRetriever, ScriptedReasoner, ask, nodes_of, passage
from tests.support.waiting import until_event

QUESTION = "When did Mount Aso erupt?"


def _start(runs: Runs, reasoner: Any, retriever: Any = None, **options: Any) -> str:
    retriever = retriever or FakeRetriever()
    return runs.start(Question(QUESTION), reasoner=reasoner, retriever=retriever, **options)


def test_starting_returns_at_once_and_events_come_in_order(runs: Runs) -> None:
    ask(runs, ScriptedReasoner())  # loads the imports
    release = threading.Event()
    run_id = _start(runs, ScriptedReasoner(), FakeRetriever(before=lambda: release.wait(60)))
    assert (runs.answer(run_id), runs.count_unfinished()) == (None, 1)
    assert (runs.count_unfinished("fast", "deep"), runs.count_unfinished("research")) == (1, 0)
    release.set()
    answer = runs.wait(run_id, 60)
    assert runs.count_unfinished() == 0
    events = runs.events(run_id)
    assert [event.seq for event in events] == list(range(len(events)))
    assert events[-1].kind == "answer" and events[-1].data is answer is runs.answer(run_id)
    assert runs.events(run_id, since=len(events) - 1) == events[-1:]
    assert runs.events(run_id, since=len(events)) == []
    steps = [(e.data["node"], e.data["state"]) for e in events if e.kind == "step"]
    assert steps == [(n, s) for n in nodes_of(answer) for s in ("started", "finished")]
    assert all(e.data["ms"] >= 0 for e in events if e.kind == "step" and e.data["state"] == "finished")


def test_the_next_event_can_be_waited_for(runs: Runs) -> None:
    begin = threading.Event()
    run_id = _start(runs, ScriptedReasoner(), FakeRetriever(before=lambda: begin.wait(60)))
    seen = 0
    while not any(e.kind == "step" and e.data["node"] == "retrieve" for e in runs.events(run_id)[:seen]):
        seen += len(runs.events(run_id, since=seen, wait=60))
    assert runs.events(run_id, since=seen, wait=0.01) == []
    begin.set()
    assert runs.events(run_id, since=seen, wait=60)[0].data["state"] == "finished"


def test_an_answer_is_streamed_once(runs: Runs) -> None:
    answer, events = ask(runs, ScriptedReasoner(answers=[["It erupted ", "in 1953.", "[1]"]]))
    assert [e.data for e in events if e.kind == "token"] == ["It erupted ", "in 1953.", "[1]"]
    assert answer.text == "It erupted in 1953.[1]"


def test_a_run_outlives_the_thread_that_started_it(runs: Runs) -> None:
    started: list[str] = []
    slow = ScriptedReasoner(answers=[[0.2, "In 1953 [1]."]])
    thread = threading.Thread(target=lambda: started.append(_start(runs, slow)))
    thread.start()
    thread.join()
    assert runs.wait(started[0], 10).outcome == "answered"


def test_stopping_does_not_wait_for_the_model_and_keeps_the_text(runs: Runs) -> None:
    run_id = _start(runs, ScriptedReasoner(answers=[["It erupted in 1953.[1] ", "Its crater", 30.0, "never"]]))
    until_event(runs, run_id, "token")
    began = time.monotonic()
    runs.cancel(run_id)
    answer = runs.wait(run_id, 60)
    assert time.monotonic() - began < 20
    assert answer.text == "It erupted in 1953.[1]"  # up to its last whole sentence
    assert answer.outcome == "caveat"
    assert answer.notice and answer.notice.code == "run_stopped"
    assert [c.url for c in answer.citations] == ["https://example.org/1"]
    assert answer.statements == ()  # nothing is claimed about an unfinished answer
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert nodes_of(answer) == ["enter", "agent", "retrieve"]


def test_stopping_while_a_search_blocks(runs: Runs) -> None:
    release = threading.Event()
    run_id = _start(runs, ScriptedReasoner(), FakeRetriever(before=lambda: release.wait(60)))
    until_event(runs, run_id, "step")
    time.sleep(0.1)
    began = time.monotonic()
    runs.cancel(run_id)
    answer = runs.wait(run_id, 60)
    assert time.monotonic() - began < 20
    release.set()
    assert (answer.outcome, answer.text) == ("failed", "")
    assert answer.notice and answer.notice.code == "run_stopped"


def test_stopping_keeps_marks_and_passages_together(runs: Runs) -> None:
    """The citations of a stopped deep answer match the passages that it was being written from."""
    reasoner = ScriptedReasoner(verdicts=[[False, True]], answers=[["Eight lanes [1]", 30.0]])
    run_id = runs.start(Question(QUESTION, mode="deep"), reasoner=reasoner, retriever=FakeRetriever())
    until_event(runs, run_id, "token")
    runs.cancel(run_id)
    answer = runs.wait(run_id, 60)
    assert [c.url for c in answer.citations] == ["https://example.org/2"]


def test_cancelling_a_finished_run_changes_nothing(runs: Runs) -> None:
    run_id = _start(runs, ScriptedReasoner())
    answer = runs.wait(run_id, 60)
    runs.cancel(run_id)
    time.sleep(0.05)
    assert runs.answer(run_id) is answer
    assert sum(e.kind == "answer" for e in runs.events(run_id)) == 1


def test_a_run_that_takes_too_long_is_stopped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.runs.runs._TIME_LIMIT", 0.5)
    with closing(Runs(MODES)) as runs:
        run_id = _start(runs, ScriptedReasoner(answers=[["In 1953 [1].", 30.0]]))
        answer = runs.wait(run_id, 60)
    assert answer.notice and answer.notice.code == "run_too_long"


class _Buggy(ScriptedReasoner):
    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        yield "In 1953"
        raise ZeroDivisionError(passages[0].text)


def test_a_bug_fails_the_answer_and_its_message_is_not_logged(runs: Runs, caplog: pytest.LogCaptureFixture) -> None:
    answer, _ = ask(runs, _Buggy())
    assert answer.outcome == "failed"
    assert answer.notice and answer.notice.code == "run_failed"
    assert [p.id for p in answer.passages] == ["p1", "p2"]
    assert "ZeroDivisionError" in caplog.text
    assert "Mount Aso erupted" not in caplog.text
    assert ask(runs, ScriptedReasoner())[0].outcome == "answered"


def test_hooks_run_before_wait_returns_and_cannot_break_the_answer(runs: Runs) -> None:
    kept: list[Answer] = []

    def save(answer: Answer) -> None:
        time.sleep(0.1)
        kept.append(answer)
        raise RuntimeError("disk full")

    run_id = _start(runs, ScriptedReasoner(), hooks=Hooks(on_answer=save))
    assert runs.wait(run_id, 60) is kept[0]


def test_waiting_too_short_is_a_time_out_and_the_run_goes_on(runs: Runs) -> None:
    run_id = _start(runs, ScriptedReasoner(answers=[[0.5, "In 1953 [1]."]]))
    with pytest.raises(TimeoutError):
        runs.wait(run_id, 0.01)
    assert runs.wait(run_id, 60).outcome == "answered"


def test_old_runs_are_forgotten_and_running_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.runs.runs._KEEP", 2)
    with closing(Runs(MODES)) as runs:
        slow = _start(runs, ScriptedReasoner(answers=[["In 1953 [1].", 600.0]]))
        finished = []
        for _ in range(4):
            finished.append(_start(runs, ScriptedReasoner()))
            runs.wait(finished[-1], 60)
        with pytest.raises(RagError) as caught:
            runs.events(finished[0])
        assert caught.value.code == "run_unknown"
        assert runs.answer(finished[-1]) is not None
        assert runs.answer(slow) is None
        runs.cancel(slow)
        assert runs.wait(slow, 60).text.startswith("In 1953")


def test_an_hour_later_a_run_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.runs.runs._MAX_AGE", 0.05)
    with closing(Runs(MODES)) as runs:
        old = _start(runs, ScriptedReasoner())
        runs.wait(old, 60)
        time.sleep(0.1)
        _start(runs, ScriptedReasoner())
        with pytest.raises(RagError):
            runs.answer(old)


def test_many_runs_share_one_loop_and_do_not_mix(runs: Runs) -> None:
    ids = [
        _start(runs, ScriptedReasoner(answers=[[f"It erupted in 1953.[1] Run {'a' * n}", 0.05, "."]]), FakeRetriever())
        for n in range(1, 31)
    ]
    texts = [runs.wait(run_id, 20).text for run_id in ids]
    assert texts == [f"It erupted in 1953.[1] Run {'a' * n}." for n in range(1, 31)]


def test_closing_stops_what_runs() -> None:
    runs = Runs(MODES)
    run_id = _start(runs, ScriptedReasoner(answers=[["In 1953", 30.0]]))
    until_event(runs, run_id, "token")
    runs.close()
    answer = runs.answer(run_id)
    assert answer and answer.notice and answer.notice.code == "run_stopped"


def test_a_second_search_adds_to_what_the_first_read_of_a_passage() -> None:
    whole = replace(passage(1), text="One came. Two went. Three stayed.", start=100, end=133)
    first = replace(whole, text="One came.", end=109)
    last = replace(whole, text="Three stayed.", start=120, score=0.5)
    searches = {"one": [first], "three": [last]}
    cache = PassageCache(FakeRetriever(by_query={**searches, "all": [whole]}))
    assert [p.text for p in cache.search("one")] == ["One came."]
    assert [(p.text, p.score) for p in cache.search("three")] == [(whole.text, 0.5)]
    assert [(p.text, p.start, p.end) for p in cache.search("one")] == [(whole.text, 100, 133)]
    assert [p.text for p in cache.passages_of([whole.id])] == [whole.text]
    removed = FakeRetriever(by_query=searches)
    gone = PassageCache(removed)
    gone.search("one")
    removed.passages = lambda ids: []  # type: ignore[method-assign]
    assert [p.text for p in gone.search("three")] == ["Three stayed."]
