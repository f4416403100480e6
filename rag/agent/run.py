"""One run: what it is asked, and what happened in it so far. How it ends is in `conclusion`."""

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

from rag.agent.citing.verifier import Verifier
from rag.agent.conversing.condense import Condenser, Exchange
from rag.agent.conversing.memory import RuleSummariser, Summariser
from rag.agent.modes import graph_of
from rag.agent.options import RunOptions
from rag.agent.reasoner import Quoter, Reasoner
from rag.agent.usage import CallBudget
from rag.types import Answer, Passage, Retrieval, RunMode

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from rag.agent.loop.calls import CallCounter
    from rag.agent.loop.state import LoopContext

log = logging.getLogger(__name__)

STOP_GRACE: Final = 0.4  # seconds in which what was stopped may still end by itself

EventKind = Literal["step", "standalone", "token", "reset", "answer"]


class Found(Protocol):
    @property
    def passages(self) -> Sequence[Passage]: ...


class Searcher(Protocol):
    """What a run needs of a retriever. Both calls may block; they are made in threads."""

    def search(self, question: str, before: Sequence[str] = ()) -> Found:
        """Find passages for `question`, in context order; `before` are the questions that it follows on."""
        ...

    def passages(self, ids: Sequence[str]) -> Sequence[Passage]:
        """Read passages again by their ids, leaving out those that are no longer there."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run; `seq` counts from 0.

    `data` is for `step` {"node", "state": "started"} or {"node", "state": "finished", "ms", "detail"},
    for `standalone` what a follow-up was understood as, for `token` a piece of text, for `reset` an empty
    text (discard the tokens so far), and for `answer`, always the last, the Answer.
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

    def search(self, query: str, before: Sequence[str] = ()) -> Sequence[Passage]:
        found = self._retriever.search(query, before)
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
    history: tuple[Exchange, ...]
    on_done: Callable[[Answer], object] | None
    on_text: Callable[[str], object] | None = None
    options: RunOptions = field(default_factory=RunOptions)
    quoter: Quoter | None = None
    verifier: Verifier | None = None
    thread: str = ""
    saver: Callable[[], Any] | None = None
    counter: CallCounter | None = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    events: list[Event] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    state: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    answer: Answer | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    done: threading.Event = field(default_factory=threading.Event)
    work: Future[None] | None = None  # kept, because an event loop holds its tasks only weakly

    def add(self, kind: EventKind, data: Any) -> None:
        with self.changed:
            self.events.append(Event(len(self.events), kind, data))
            self.changed.notify_all()


def log_problem(what: str, problem: BaseException) -> None:
    frames = "".join(traceback.format_tb(problem.__traceback__)[-4:])
    log.error("%s: %s\n%s", what, type(problem).__name__, frames)


async def drive(run: Run) -> None:
    """Run the graph, and turn what it streams into events."""
    graph, config, context = await asyncio.to_thread(_prepare, run)
    given: dict[str, Any] = {"question": run.question, "run_mode": run.mode}
    known = await _kept(graph, config) if run.thread else {}
    if known is None:  # the answer matters more than that it is kept: the history will do
        graph, run.thread = graph_of(run.mode), ""
    durability = {"durability": "exit"} if run.thread else {}
    if not known or not known.get("messages"):
        given["messages"] = await asyncio.to_thread(_spoken, run.history)
    stream = graph.astream(given, config, context=context, stream_mode=["custom", "updates"], **durability)
    async for kind, part in stream:
        if kind == "updates":
            for update in part.values():
                run.state.update(update or {})
        else:
            _note(run, part)


async def _kept(graph: Any, config: Any) -> dict[str, Any] | None:
    """What the conversation knows; None where it cannot be read."""
    found: Sequence[Any] = await asyncio.gather(graph.aget_state(config), return_exceptions=True)
    if isinstance(found[0], BaseException):
        log_problem("a conversation could not be read", found[0])
        return None
    values: dict[str, Any] = found[0].values
    return values


def _spoken(history: Sequence[Exchange]) -> list[AnyMessage]:
    from rag.agent.loop.talk import messages_of

    return messages_of(history)


def _prepare(run: Run) -> tuple[Any, Any, LoopContext]:
    """Build what a graph needs. The imports take a second the first time, so this runs in a thread."""
    from rag.agent.loop.calls import CallCounter
    from rag.agent.loop.state import LoopContext

    run.counter = CallCounter(run.budget)
    shelf, reasoner = run.shelf, run.reasoner
    context = LoopContext(
        reasoner=reasoner,
        search=shelf.search,
        passages_of=shelf.passages_of,
        budget=run.budget,
        answerable=shelf.answerable,
        condenser=reasoner if isinstance(reasoner, Condenser) else None,
        summariser=reasoner if isinstance(reasoner, Summariser) else RuleSummariser(),
        quoter=run.quoter,
        verifiers=[one for one in (reasoner, run.verifier) if isinstance(one, Verifier)],
        options=run.options,
    )
    config: dict[str, Any] = {"callbacks": [run.counter]}
    if run.thread:
        config["configurable"] = {"thread_id": run.thread}
    return graph_of(run.mode, run.saver() if run.thread and run.saver else None), config, context


async def remember(run: Run) -> None:
    """Add what a broken-off run had written to its conversation, which knows only the question."""
    if not run.thread or run.saver is None or not run.text.strip():
        return
    from langchain_core.messages import AIMessage

    graph: Any = graph_of(run.mode, run.saver())
    config = {"configurable": {"thread_id": run.thread}}
    kept = await graph.aget_state(config)
    if kept.values.get("question") == run.question.strip():
        await graph.aupdate_state(config, {"messages": [AIMessage(run.text)]}, as_node="generate")


def _note(run: Run, part: Mapping[str, Any]) -> None:
    if "standalone" in part:
        run.state["standalone"] = part["standalone"]
        run.add("standalone", part["standalone"])
    elif "token" in part:
        run.text += part["token"]
        run.add("token", part["token"])
    elif "reset" in part:
        run.text = ""
        run.add("reset", "")
    elif "passages" in part:
        run.state["passages"] = part["passages"]
    elif "step" in part:
        run.add("step", part["step"])
