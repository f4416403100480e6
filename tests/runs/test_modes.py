"""Runs are independent of graphs: a minimal mode is started, streamed, budgeted, stopped and stored like any other."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from rag.background import BACKGROUND
from rag.conversations.checkpoints import Checkpoints
from rag.runs.run import Mode, PreparedGraph, Question, Run, RunOptions, build_answer
from rag.runs.runs import Runs
from rag.types import Answer, Event, Notice
from tests.support.answering import FakeRetriever, ScriptedReasoner
from tests.support.waiting import until_event


class State(TypedDict, total=False):
    question: str
    said: Annotated[list[str], operator.add]
    pause: float


MODEL = FakeListChatModel(responses=["Echo."])


async def say(state: State) -> State:
    get_stream_writer()({"token": state["question"]})
    await asyncio.sleep(state.get("pause", 0.0))
    return {"said": [state["question"]]}


async def call(state: State) -> State:
    reply = await MODEL.ainvoke(state["question"])
    return {"said": [reply.text]}


class Echo(Mode):
    """A mode that repeats the question, and then its earlier text in the conversation."""

    name = "echo"

    def __init__(self, *nodes: Any, given: State | None = None) -> None:
        self.nodes = nodes or (say,)
        self.given: State = given or {}

    async def prepare(self, run: Run) -> PreparedGraph:
        builder = StateGraph(State)
        builder.add_sequence([(f"node{place}", node) for place, node in enumerate(self.nodes)])
        builder.add_edge(START, "node0")
        return PreparedGraph(builder.compile(run.checkpointer()), {"question": run.question.text, **self.given})

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        text = " ".join(run.state.get("said", [run.text]))
        return build_answer(run, "failed" if interruption else "answered", interruption, text)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "conversations.sqlite3")


@pytest.fixture
def modes() -> dict[str, Mode]:
    return {"echo": Echo()}


@pytest.fixture
def runs(modes: dict[str, Mode], checkpoints: Checkpoints) -> Iterator[Runs]:
    its_runs = Runs(modes, saver=checkpoints.saver)
    its_runs.warm()
    yield its_runs
    its_runs.close()


def _start(runs: Runs, text: str = "Hello?", options: RunOptions | None = None, **how: Any) -> str:
    question = Question(text, mode="echo", options=options or RunOptions())
    return runs.start(question, reasoner=ScriptedReasoner(), retriever=FakeRetriever(), **how)


def _ask(runs: Runs, question: str = "Hello?", **how: Any) -> Answer:
    return runs.wait(_start(runs, question, **how), 60)


def _events(runs: Runs, kind: str, **how: Any) -> list[Event]:
    run_id = _start(runs, **how)
    runs.wait(run_id, 60)
    return [event for event in runs.events(run_id) if event.kind == kind]


def test_a_mode_of_its_own_is_run_and_streamed(runs: Runs) -> None:
    answer = _ask(runs)
    assert (answer.mode, answer.outcome, answer.text, answer.notice) == ("echo", "answered", "Hello?", None)
    assert [event.data for event in _events(runs, "token")] == ["Hello?"]


def test_its_model_calls_are_counted_and_bounded(runs: Runs, modes: dict[str, Mode]) -> None:
    modes["echo"] = Echo(call)
    answer = _ask(runs)
    assert (answer.text, answer.model_calls, answer.usage.calls) == ("Echo.", 1, 1)
    modes["echo"] = Echo(call, call)
    interruption = _ask(runs)
    assert interruption.notice and interruption.notice.code == "call_limit"
    assert _ask(runs, options=RunOptions(calls=2)).text == "Echo. Echo."


def test_it_is_stopped_and_keeps_what_it_said(runs: Runs, modes: dict[str, Mode]) -> None:
    modes["echo"] = Echo(given={"pause": 600.0})
    run_id = _start(runs)
    until_event(runs, run_id, "token")
    runs.cancel(run_id)
    answer = runs.wait(run_id, 60)
    assert (answer.outcome, answer.text) == ("failed", "Hello?")
    assert answer.notice and answer.notice.code == "run_stopped"
    late = _ask(runs, options=RunOptions(seconds=0.2))
    assert late.notice and late.notice.code == "budget_seconds"


def test_a_conversation_is_kept_and_what_is_asked_without_one_is_not(runs: Runs) -> None:
    assert [_ask(runs, q, thread="one").text for q in ("First.", "Second.")] == ["First.", "First. Second."]
    assert _ask(runs, "Third.").text == "Third."


def test_a_run_that_fails_at_once_contains_nothing_of_the_previous_turn(runs: Runs, modes: dict[str, Mode]) -> None:
    _ask(runs, "First.", thread="one")

    async def interruption(state: State) -> State:
        raise ZeroDivisionError

    modes["echo"] = Echo(interruption)
    answer = _ask(runs, "Second.", thread="one")
    assert (answer.outcome, answer.text) == ("failed", "")
    assert answer.notice and answer.notice.code == "run_failed"


@pytest.mark.parametrize(("keeps", "count"), [(True, 4), (False, 1)])
def test_a_mode_that_asks_for_it_keeps_each_step(
    runs: Runs, modes: dict[str, Mode], checkpoints: Checkpoints, keeps: bool, count: int
) -> None:
    modes["echo"] = Echo(say, say)
    modes["echo"].keeps_history = keeps
    _ask(runs, thread="one")

    async def kept() -> int:
        config: Any = {"configurable": {"thread_id": "one"}}
        return len([one async for one in checkpoints.saver().alist(config)])

    assert BACKGROUND.wait(kept()) == count


def test_events_of_nested_graphs_carry_their_path(runs: Runs, modes: dict[str, Mode]) -> None:
    """Text of a nested graph is an event; the run's text is that of the mode's graph."""
    inner = StateGraph(State)
    inner.add_node("say", say)
    inner.add_edge(START, "say")
    middle = StateGraph(State)
    middle.add_node("inner", inner.compile())
    middle.add_edge(START, "inner")
    modes["echo"] = Echo(middle.compile(), say)
    assert [(event.data, event.path) for event in _events(runs, "token")] == [
        ("Hello?", ("node0", "inner")),
        ("Hello?", ()),
    ]
    modes["echo"] = Echo(middle.compile(), given={"pause": 600.0})
    run_id = _start(runs)
    until_event(runs, run_id, "token")
    runs.cancel(run_id)
    assert runs.wait(run_id, 60).text == ""


def test_what_parallel_nodes_write_comes_together(runs: Runs, modes: dict[str, Mode]) -> None:
    class Wide(Echo):
        async def prepare(self, run: Run) -> PreparedGraph:
            builder = StateGraph(State)
            for name in ("left", "right"):
                builder.add_node(name, say)
                builder.add_edge(START, name)
                builder.add_edge(name, END)
            return PreparedGraph(builder.compile(run.checkpointer()), {"question": run.question.text})

    modes["echo"] = Wide()
    assert _ask(runs).text == "Hello? Hello?"
