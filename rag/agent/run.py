"""One run: what it is asked, what happened in it so far, and how its answer is put together."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from rag.agent.modes import graph_of
from rag.agent.reasoner import CallBudget, Reasoner
from rag.errors import RagError
from rag.types import Answer, Citation, Notice, Outcome, Passage, Retrieval, RunMode, Step

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from rag.agent.loop.state import LoopContext

log = logging.getLogger(__name__)

STOP_GRACE: Final = 0.4  # seconds in which what was stopped may still end by itself

EventKind = Literal["step", "token", "reset", "answer"]


class Found(Protocol):
    @property
    def passages(self) -> Sequence[Passage]: ...


class Searcher(Protocol):
    """What a run needs of a retriever. Both calls may block; they are made in threads."""

    def search(self, question: str) -> Found:
        """Find passages for `question`, in context order."""
        ...

    def passages(self, ids: Sequence[str]) -> Sequence[Passage]:
        """Read passages again by their ids, leaving out those that are no longer there."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run; `seq` counts from 0.

    `data` is for `step` {"node", "state": "started"} or {"node", "state": "finished", "ms", "detail"},
    for `token` a piece of text, for `reset` an empty text (discard the tokens so far), and for
    `answer`, always the last, the Answer.
    """

    seq: int
    kind: EventKind
    data: Any


class Shelf:
    """The passages that a run has in hand: steps that read them again cost no second visit to the store.

    `searches` are those made so far, for whoever wants to know why a passage is there.
    """

    def __init__(self, retriever: Searcher) -> None:
        self.searches: list[Retrieval] = []
        self._retriever = retriever
        self._kept: dict[str, Passage] = {}

    def search(self, query: str) -> Sequence[Passage]:
        found = self._retriever.search(query)
        if isinstance(found, Retrieval):
            self.searches.append(found)
        self._kept.update((passage.id, passage) for passage in found.passages)
        return found.passages

    def answerable(self) -> float:
        """How likely the library holds the answer, by the best of the searches; 1 before the first."""
        return max((search.answerable for search in self.searches), default=1.0)

    def passages_of(self, ids: Sequence[str]) -> list[Passage]:
        if missing := [wanted for wanted in ids if wanted not in self._kept]:
            self._kept.update((passage.id, passage) for passage in self._retriever.passages(missing))
        return [self._kept[wanted] for wanted in ids if wanted in self._kept]


@dataclass(slots=True)
class Run:
    id: str
    question: str
    mode: RunMode
    reasoner: Reasoner
    shelf: Shelf
    budget: CallBudget
    history: tuple[tuple[str, str], ...]
    on_done: Callable[[Answer], object] | None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    events: list[Event] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    answer: Answer | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    done: threading.Event = field(default_factory=threading.Event)
    work: Future[None] | None = None  # kept, because an event loop holds its tasks only weakly

    def add(self, kind: EventKind, data: Any) -> None:
        with self.lock:
            self.events.append(Event(len(self.events), kind, data))


async def drive(run: Run) -> None:
    """Run the graph, and turn what it streams into events."""
    graph, config, context, messages = await asyncio.to_thread(_prepare, run)
    given = {"question": run.question, "run_mode": run.mode, "messages": messages}
    stream = graph.astream(given, config, context=context, stream_mode=["custom", "updates"])
    async for kind, part in stream:
        if kind == "updates":
            for update in part.values():
                run.state.update(update or {})
        else:
            _note(run, part)


def _prepare(run: Run) -> tuple[Any, Any, LoopContext, list[BaseMessage]]:
    """Build what a graph needs. The imports take a second the first time, so this runs in a thread."""
    from langchain_core.messages import AIMessage, HumanMessage

    from rag.agent.loop.calls import CallCounter
    from rag.agent.loop.state import LoopContext

    messages: list[BaseMessage] = []
    for question, answer in run.history:
        if answer.strip():  # a question that failed left nothing to go on from
            messages += [HumanMessage(question), AIMessage(answer)]
    shelf = run.shelf
    context = LoopContext(run.reasoner, shelf.search, shelf.passages_of, run.budget, shelf.answerable)
    return graph_of(run.mode), {"callbacks": [CallCounter(run.budget)]}, context, messages


def _note(run: Run, part: Mapping[str, Any]) -> None:
    if "token" in part:
        run.text += part["token"]
        run.add("token", part["token"])
    elif "reset" in part:
        run.text = ""
        run.add("reset", "")
    elif "passages" in part:
        run.state["passages"] = part["passages"]
    elif "step" in part:
        run.add("step", part["step"])


def interruption(run: Run) -> Notice:
    return Notice("run_stopped") if run.stopped.is_set() else Notice("run_too_long")


def failure(task: asyncio.Task[None]) -> Notice | None:
    """Say why the graph broke off, if it did. The log gets no message of a surprise: it may quote pages."""
    problem = task.exception() if not task.cancelled() else asyncio.CancelledError()
    if problem is None or isinstance(problem, RagError):
        return problem.notice if problem else None
    log_problem("a run broke off", problem)
    return Notice("run_failed")


def log_problem(what: str, problem: BaseException) -> None:
    frames = "".join(traceback.format_tb(problem.__traceback__)[-4:])
    log.error("%s: %s\n%s", what, type(problem).__name__, frames)


async def conclude(run: Run, broken: Notice | None) -> Answer:
    """Put the answer together: from the run's last state, or, if it broke off, from what there is."""
    reading = asyncio.create_task(asyncio.to_thread(_passages, run))
    await asyncio.wait({reading}, timeout=STOP_GRACE if broken else None)
    readable = reading.done() and reading.exception() is None
    passages = reading.result() if readable else []
    if broken is None:
        return await asyncio.to_thread(_finished, run, passages)
    return await asyncio.to_thread(_broken_off, run, passages, broken)


def _passages(run: Run) -> list[Passage]:
    refs = run.state.get("passages") or []
    if not refs:
        return []
    from rag.agent.loop.nodes import read_passages

    return read_passages(refs, run.shelf.passages_of)


def _finished(run: Run, passages: list[Passage]) -> Answer:
    citations = tuple(
        Citation(**{**kept, "section": tuple(kept["section"])}) for kept in run.state.get("citations", [])
    )
    kept = run.state.get("notice")
    notice = Notice(kept["code"], kept["params"]) if kept else None
    outcome: Outcome = run.state.get("outcome") or "failed"
    return answer_of(run, outcome, notice, run.state.get("text", ""), citations, passages)


def _broken_off(run: Run, passages: list[Passage], notice: Notice) -> Answer:
    """Keep the text so far, which is worth something only where the run itself was sound."""
    from rag.agent.citations import cite

    text, citations = cite(run.text, passages) if run.text else ("", ())
    sound = notice.code in ("run_stopped", "run_too_long")
    outcome: Outcome = "caveat" if text and sound else "failed"
    return answer_of(run, outcome, notice, text, citations, passages)


def answer_of(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
) -> Answer:
    steps = tuple(Step(step["node"], step["ms"], step["detail"]) for step in run.state.get("steps", []))
    return Answer(
        question=run.question,
        mode=run.mode,
        outcome=outcome,
        text=text,
        citations=citations,
        passages=tuple(passages),
        steps=steps,
        model_calls=run.budget.used,
        seconds=round(time.monotonic() - run.began, 3),
        reasoner=run.reasoner.name,
        notice=notice,
        searches=tuple(run.shelf.searches),
        answerable=run.shelf.answerable(),
    )
