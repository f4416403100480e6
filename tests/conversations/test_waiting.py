"""A run waits for its user, even across a restart, and respects changes made meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import interrupt
from typing_extensions import TypedDict

from rag.conversations.conversations import TurnHandle, TurnRequest, TurnView
from rag.runs.run import Mode, PreparedGraph, Question, Run, RunOptions, build_answer
from rag.store.sql.conversation_table import Change
from rag.types import Answer, Notice
from tests.conversations.conftest import Services
from tests.store.support import refused
from tests.support.answering import FakeRetriever, ScriptedReasoner
from tests.support.waiting import until

MODEL = FakeListChatModel(responses=["A plan."])


class State(TypedDict, total=False):
    question: str
    plan: str
    text: str
    done: list[str]


async def plan(state: State) -> State:
    reply = await MODEL.ainvoke(state["question"])
    await asyncio.sleep(0.3)
    return {"plan": reply.text}


async def approve(state: State) -> State:
    first, second = interrupt({"plan": state["plan"]}), interrupt({"sure": True})
    return {"text": f"{state['plan']} {first} {second}"}


async def dispatch(state: State) -> State:
    """Work through ten parts, and check for the user's changes before each."""
    done: list[str] = []
    for part in "abcdefghij":
        changes = await asyncio.to_thread(get_runtime().context.changes)
        kinds = {change.kind for change in changes}
        if "finish" in kinds:
            break
        if any(change.kind == "skip" and change.data["part"] == part for change in changes):
            continue
        await MODEL.ainvoke(part)
        done.append(part)
        await asyncio.sleep(0.05)
    return {"done": done, "text": "".join(done)}


class Stepwise(Mode):
    name = "fast"
    max_calls = 4

    def __init__(self, *nodes: Any) -> None:
        self.nodes = nodes

    async def prepare(self, run: Run) -> PreparedGraph:
        builder: Any = StateGraph(State, context_schema=Run)
        builder.add_sequence([(node.__name__, node) for node in self.nodes])
        builder.add_edge(START, self.nodes[0].__name__)
        return PreparedGraph(builder.compile(run.checkpointer()), {"question": run.question.text})

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        return build_answer(run, "failed" if interruption else "answered", interruption, run.state.get("text", ""))


class Process(Services):
    """The services of one process, whose runs have these nodes."""

    def __init__(self, folder: Path, *nodes: Any) -> None:
        super().__init__(folder, {"fast": Stepwise(*nodes)})

    def asking(self, **how: Any) -> TurnRequest:
        question = Question("What?", ("main",), options=how.pop("options", RunOptions()))
        return TurnRequest(question, ScriptedReasoner(), FakeRetriever(), suggest=False, **how)

    def ask(self, **how: Any) -> TurnHandle:
        return self.kept.ask(self.asking(**how))

    def turn_when_waiting(self, asked: TurnHandle) -> TurnView:
        turn: TurnView = until(lambda: (one := self.kept.turn(asked.turn_id)).waits and one)
        return turn

    def reply(self, turn: TurnView, said: str, **how: Any) -> TurnHandle:
        return self.kept.reply(turn.id, {wait.id: said for wait in turn.waits}, self.asking(**how))


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    begun: list[Process] = []

    def begin(*nodes: Any) -> Process:
        begun.append(Process(tmp_path, *nodes))
        return begun[-1]

    yield begin
    for process in begun:
        process.close()


class Clock:
    ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


def test_a_run_waits_and_goes_on_twice(processes: Callable[..., Process]) -> None:
    process = processes(plan, approve)
    asked = process.ask()
    turn = process.turn_when_waiting(asked)
    assert ([wait.asks for wait in turn.waits], turn.state) == ([{"plan": "A plan."}], "running")
    assert process.reply(turn, "Yes.") == asked
    again = process.turn_when_waiting(asked)
    assert [wait.asks for wait in again.waits] == [{"sure": True}]
    process.reply(again, "Quite.")
    answer = process.runs.wait(asked.run_id, 60)
    assert (answer.text, answer.model_calls) == ("A plan. Yes. Quite.", 1)
    asks = [event.data[0].asks for event in process.runs.events(asked.run_id) if event.kind == "waiting"]
    assert asks == [{"plan": "A plan."}, {"sure": True}]
    done = process.kept.turn(asked.turn_id)
    assert (done.state, done.waits) == ("done", ())


def test_waiting_does_not_count_towards_the_time_limit_and_blocks_other_questions(
    processes: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, clock = processes(plan, approve), Clock()
    for module in ("run", "runs"):
        monkeypatch.setattr(f"rag.runs.{module}.time", clock)
    asked = process.ask(options=RunOptions(seconds=20))
    turn = process.turn_when_waiting(asked)
    while not any(event.kind == "waiting" for event in process.runs.events(asked.run_id, wait=60)):
        pass
    clock.ahead = 1000.0
    with refused("turn_running"):
        process.ask(conversation_id=asked.conversation_id)
    turn = process.turn_when_waiting(process.reply(turn, "Yes."))
    process.reply(turn, "Quite.")
    answer = process.runs.wait(asked.run_id, 60)
    assert (answer.outcome, answer.text) == ("answered", "A plan. Yes. Quite.")
    assert 0.3 <= answer.seconds < 900


def test_it_goes_on_after_its_process_has_ended(processes: Callable[..., Process]) -> None:
    """It keeps the seconds and calls used so far, and resumes only once."""
    before = processes(plan, approve)
    asked = before.ask(options=RunOptions(seconds=20))
    before.turn_when_waiting(asked)
    before.close()
    after = processes(plan, approve)
    assert after.kept.recover() == 0
    waiting = after.kept.turn(asked.turn_id)
    gone_on = after.reply(waiting, "Yes.", options=RunOptions(seconds=20))
    with refused("turn_not_waiting"):
        after.reply(waiting, "No.")
    again = after.turn_when_waiting(gone_on)
    after.reply(again, "Quite.")
    answer = after.runs.wait(gone_on.run_id, 60)
    assert (answer.text, answer.model_calls, answer.usage.calls) == ("A plan. Yes. Quite.", 1, 1)
    assert answer.seconds >= 0.3
    stored = after.kept.turn(asked.turn_id).answer
    assert stored is not None and stored.text == answer.text


def test_what_it_had_used_counts_after_its_process_has_ended(processes: Callable[..., Process]) -> None:
    before = processes(plan, approve)
    asked = before.ask()
    before.turn_when_waiting(asked)
    before.close()
    after = processes(plan, approve)
    gone_on = after.reply(after.kept.turn(asked.turn_id), "Yes.", options=RunOptions(seconds=0.2))
    late = after.runs.wait(gone_on.run_id, 60)
    assert late.notice and late.notice.code == "budget_seconds"


def test_a_reply_to_nothing_is_refused(processes: Callable[..., Process]) -> None:
    process = processes(plan, approve)
    asked = process.ask()
    turn = process.turn_when_waiting(asked)
    with refused("turn_not_waiting"):
        process.kept.reply(turn.id, {"another": "Yes."}, process.asking())
    with refused("turn_unknown"):
        process.kept.reply(turn.id, {turn.waits[0].id: "Yes."}, process.asking(owner="ada"))
    process.runs.cancel(asked.run_id)
    answer = process.runs.wait(asked.run_id, 60)
    assert answer.notice and answer.notice.code == "run_stopped"
    with refused("turn_not_waiting"):
        process.reply(turn, "Yes.")


@pytest.mark.parametrize(
    ("changes", "text", "code"),
    [
        ([], "", "call_limit"),
        ([Change("skip", {"part": part}) for part in "bdfhij"], "aceg", None),
        ([Change("budget", {"calls": 2}), Change("budget", {"calls": 4})], "abcdefghij", None),
    ],
)
def test_what_a_person_changes_holds_at_the_next_dispatch(
    processes: Callable[..., Process], changes: list[Change], text: str, code: str | None
) -> None:
    go = threading.Event()
    process = processes(held(go), dispatch)
    asked = process.ask()
    for change in changes:
        process.kept.change(asked.turn_id, change)
    go.set()
    answer = process.runs.wait(asked.run_id, 60)
    assert (answer.text, answer.notice and answer.notice.code) == (text, code)


def held(go: threading.Event) -> Callable[[State], Awaitable[State]]:
    """Return a node that waits for `go`."""

    async def begin(state: State) -> State:
        await asyncio.to_thread(go.wait, 60)
        return {}

    return begin


def test_finishing_now_and_more_seconds(processes: Callable[..., Process]) -> None:
    go = threading.Event()
    process = processes(held(go), dispatch)
    asked = process.ask(options=RunOptions(calls=20))
    process.kept.change(asked.turn_id, Change("finish"))
    go.set()
    assert process.runs.wait(asked.run_id, 60).text == ""
    with refused("turn_unknown"):
        process.kept.change(asked.turn_id, Change("finish"))
    go.clear()
    slow = process.ask(options=RunOptions(calls=20, seconds=0.3))
    process.kept.change(slow.turn_id, Change("budget", {"seconds": 60}))
    go.set()
    assert process.runs.wait(slow.run_id, 60).text == "abcdefghij"
    with refused("turn_unknown"):
        process.kept.change(slow.turn_id, Change("finish"), "ada")
