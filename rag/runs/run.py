"""One run: what it is asked, the mode that answers it, what happened in it so far, and how its answer is put together.

How a run is started, stopped and kept is in `runs`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from rag.checking.verifier import Verifier
from rag.errors import RagError
from rag.models.usage import CallBudget, Spent
from rag.prompts.requests import mark_run
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Reasoner
from rag.retrieval.answerable import SURE
from rag.retrieval.context import joined
from rag.retrieval.scoped_search import ScopedSearch
from rag.runs.options import Question, RunOptions
from rag.runs.serialization import citations_of, notice_of, passage_of, statements_of
from rag.store.sql.conversation_table import Change
from rag.tracing import Span, Trace
from rag.types import (
    Answer,
    Citation,
    Event,
    EventKind,
    Exchange,
    Notice,
    Outcome,
    Passage,
    Retrieval,
    Statement,
    Step,
    Wait,
)

if TYPE_CHECKING:
    from rag.models.calls import CallCounter

log = logging.getLogger(__name__)

STOP_GRACE: Final = 0.4  # seconds in which what was stopped may still end by itself
HISTORY: Final = "keeps_history"
"""A key of `configurable`: a run that sets it keeps the checkpoint of each step."""

_OF_PAGES: Final = frozenset({"in_doubt", "closest", "not_named", "nothing_found"})
_KINDS: Final = frozenset(get_args(EventKind))


class PassageCache:
    """The passages that a run has in hand: steps that read them again cost no second visit to the store.

    `searches` are those made so far, for whoever wants to know why a passage is there.
    """

    def __init__(self, retriever: ScopedSearch) -> None:
        self.searches: list[Retrieval] = []
        self.retriever = retriever
        self._kept: dict[str, Passage] = {}

    def search(self, query: str, before: Sequence[str] = (), **how: Any) -> Sequence[Passage]:
        found = self.retriever.search(query, before, **how)
        if isinstance(found, Retrieval):
            self.searches.append(found)
        passages = [self._with_known(passage) for passage in found.passages]
        self._kept.update((passage.id, passage) for passage in passages)
        return passages

    def _with_known(self, passage: Passage) -> Passage:
        """The passage with what an earlier search read of the same chunk, which may have been graded meanwhile."""
        known = self._kept.get(passage.id)
        if known is None:
            return passage
        if not (known.start <= passage.start and passage.end <= known.end):
            whole = self.retriever.passages([passage.id])
            known = joined(joined(whole[0], known), passage) if whole else passage
        return replace(known, score=passage.score, ranks=passage.ranks, scores=passage.scores)

    def answerable(self) -> float:
        """Return the probability that the library answers the question, from the best search; 1 before the first."""
        return max((search.answerable for search in self.searches), default=1.0)

    def sure(self) -> bool:
        """Return whether a search surely found the answer."""
        return any(search.answerable >= SURE for search in self.searches)

    def passages_of(self, ids: Sequence[str]) -> list[Passage]:
        if missing := [wanted for wanted in ids if wanted not in self._kept]:
            self._kept.update((passage.id, passage) for passage in self.retriever.passages(missing))
        return [self._kept[wanted] for wanted in ids if wanted in self._kept]


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """A mode's compiled LangGraph graph, its input and its runtime context.

    A graph that resumes from its last checkpoint gets no input.
    """

    graph: Any
    given: Mapping[str, Any] | None
    context: Any = None


class Mode(ABC):
    """A way to answer: its graph, and what the end of it means. One serves all runs and keeps nothing of them.

    What nodes write to their stream becomes an event where its key is an EventKind, and part of the run's state
    otherwise. A state's `outcome`, once it is there, says that the answer in it is sound. `max_calls` bounds the
    model calls of a run, and `max_tokens` their tokens, where nobody chose another limit; `most_calls` bounds what
    can be chosen. `keeps_history` asks for the checkpoint of each step, where there is a conversation.
    """

    name: str
    max_calls: int = 1
    most_calls: int | None = None
    max_tokens: int | None = None
    keeps_history: bool = False

    @abstractmethod
    async def prepare(self, run: Run) -> PreparedGraph:
        """Build what the run needs. A graph is compiled with the run's `checkpointer`."""

    @abstractmethod
    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """The answer from the run's state; `broken` is why the graph did not come to its end."""

    def calls(self, options: RunOptions, *, talks: bool) -> int:
        """Return the default limit of model calls; `talks` is true within a conversation."""
        return self.max_calls

    def warm(self, saver: Any) -> None:
        """Import and build what the first run would wait for; `saver` is the checkpointer, or None. Blocks."""
        return

    async def remember(self, run: Run) -> None:
        """Add what a broken-off run had written to its conversation."""
        return


class GraphMode(Mode):
    """One whose graph is made in the module `graph` beside its own, which knows LangGraph: that takes a second to
    import the first time."""

    @property
    def graph_module(self) -> Any:
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.graph")

    def warm(self, saver: Any) -> None:
        self.graph_module.graph_of(saver)

    async def prepare(self, run: Run) -> PreparedGraph:
        module = await asyncio.to_thread(lambda: self.graph_module)
        prepared: PreparedGraph = await module.prepare(run)
        return prepared

    async def finish(self, run: Run, broken: Notice | None) -> Answer:
        """From the run's last state; where it broke off, from what is made of that."""
        if broken is not None and not run.state.get("outcome"):
            run.state = await self.graph_module.rescue(run)
        state = run.state
        return answer_of(
            run,
            state.get("outcome") or "failed",
            broken or notice_of(state.get("notice")),
            state.get("text", ""),
            citations_of(state),
            [passage_of(kept) for kept in state.get("passages", ())],
            statements_of(state),
        )


@dataclass(frozen=True, slots=True)
class Hooks:
    """The callbacks of a run to its keeper, called in threads.

    `done` gets the answer before `Runs.wait` returns, `text` the text so far about once a second, `waits` what a
    person is asked, with what the run has spent, `spans` what happened, whenever it ends or waits. `changes` is what
    a person changed since it began, oldest first. `dispatch` sets the route of its message.
    """

    done: Callable[[Answer], object] | None = None
    text: Callable[[str], object] | None = None
    waits: Callable[[Sequence[Wait], Spent], object] | None = None
    spans: Callable[[Sequence[Span]], object] | None = None
    changes: Callable[[], Sequence[Change]] = tuple
    dispatch: Callable[[Run], Awaitable[None]] | None = None


@dataclass(slots=True)
class Run:
    """`owner` is the person it belongs to. `spent` is its usage so far, if it resumes in another process; `reply` is
    what a person answered to its waits, by their ids. If `is_resumed`, it was interrupted and starts at its
    last checkpoint.
    """

    id: str
    question: Question
    mode: Mode
    reasoner: Reasoner
    cache: PassageCache
    budget: CallBudget
    history: tuple[Exchange, ...]
    hooks: Hooks = field(default_factory=Hooks)
    quoter: ExtractiveReasoner | None = None
    verifier: Verifier | None = None
    owner: str = ""
    thread: str = ""
    saver: Callable[[], Any] | None = None
    modes: Mapping[str, Mode] = field(default_factory=dict)
    counter: CallCounter | None = None
    trace: Trace = field(default_factory=Trace)
    spent: Spent = field(default_factory=Spent)
    reply: Mapping[str, Any] = field(default_factory=dict)
    is_resumed: bool = False
    waits: tuple[Wait, ...] = ()
    more: Mapping[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    waited: float = 0.0
    ended: float | None = None
    events: list[Event] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    state: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    answer: Answer | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    replied: asyncio.Event = field(default_factory=asyncio.Event)
    done: threading.Event = field(default_factory=threading.Event)
    work: Future[None] | None = None  # kept, because an event loop holds its tasks only weakly

    def switch_to(self, question: Question, retriever: ScopedSearch) -> None:
        """Answer this question instead, in its own mode."""
        self.question, self.mode, self.cache = question, self.modes[question.mode], PassageCache(retriever)
        calls = self.mode.calls(question.options, talks=bool(self.history or self.thread))
        if question.options.calls is None:
            self.budget.raise_by(max(0, calls - self.budget.limit), 0)

    def add(self, kind: EventKind, data: Any, path: tuple[str, ...] = ()) -> None:
        with self.changed:
            self.events.append(Event(len(self.events), kind, data, path))
            self.changed.notify_all()

    def seconds(self) -> float:
        """Return the working time, without waits for a person."""
        return self.spent.seconds + time.monotonic() - self.began - self.waited

    def changes(self) -> Sequence[Change]:
        """Return a person's changes so far, oldest first. Blocks. A raised budget applies immediately."""
        found = self.hooks.changes()
        raised = [change.data for change in found if change.kind == "budget"]
        self.more = {unit: sum(data.get(unit, 0) for data in raised) for unit in ("calls", "tokens", "seconds")}
        self.budget.raise_by(int(self.more["calls"]), int(self.more["tokens"]))
        return found

    def take_up(self, spent: Spent) -> None:
        """Begin with what it had used before it was cut off."""
        self.spent = spent
        self.budget.take_up(spent)

    @property
    def condenser(self) -> ChatReasoner | None:
        return self.reasoner if isinstance(self.reasoner, ChatReasoner) else None

    @property
    def verifiers(self) -> list[Verifier]:
        """Return the available checkers, best first."""
        return [one for one in (self.reasoner, self.verifier) if isinstance(one, Verifier)]

    def checkpointer(self) -> Any:
        """Return the checkpointer of the run's conversation, or None. Its first import takes a moment."""
        return self.saver() if self.thread and self.saver else None

    def config(self) -> Any:
        """Return the configuration for calling the graph and reading and writing its conversation."""
        kept = {"thread_id": self.thread, HISTORY: self.mode.keeps_history} if self.thread else {}
        return {"configurable": kept, "callbacks": [self.counter] if self.counter else []}


def log_problem(what: str, problem: BaseException) -> None:
    frames = traceback.extract_tb(problem.__traceback__)[-4:]
    places = ", ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    log.error("%s: %s at %s", what, type(problem).__name__, places)


async def drive(run: Run) -> None:
    """Run the mode's graph until it ends, or waits for a person, and turn what it streams into events."""
    if run.reasoner.kind == "chat":  # what quotes makes no calls
        run.counter = run.counter or await asyncio.to_thread(counter_of, run.budget, run.trace)
    run.trace.activate()
    mark_run()
    if run.hooks.dispatch is not None and not (run.reply or run.is_resumed):
        await run.hooks.dispatch(run)
    prepared = await run.mode.prepare(run)
    given = await asyncio.to_thread(_resume_command, run.reply) if run.reply else prepared.given
    kept = run.thread and prepared.graph.checkpointer is not None
    durability = {"durability": "exit"} if kept and not run.mode.keeps_history else {}
    how = {"context": prepared.context, "stream_mode": ["custom", "values"], "subgraphs": True, **durability}
    run.waits, began = (), run.is_resumed
    async for namespace, kind, part in prepared.graph.astream(given, run.config(), **how):
        path = tuple(node.partition(":")[0] for node in namespace)
        if kind == "custom":
            _note(run, part, path)
        elif not path:
            run.state.update(part if began else {})  # at first it is what the conversation was left with
            began = True
    run.waits = tuple(Wait(one.id, one.value) for one in run.state.pop("__interrupt__", ()))


async def saved_state(run: Run, graph: Any) -> dict[str, Any] | None:
    """Return the state of the run's conversation in the graph's terms; None if it can't be read."""
    if not run.thread:
        return {}
    found: Sequence[Any] = await asyncio.gather(graph.aget_state(run.config()), return_exceptions=True)
    if isinstance(found[0], BaseException):
        log_problem("a conversation could not be read", found[0])
        return None
    values: dict[str, Any] = found[0].values
    return values


def _resume_command(reply: Mapping[str, Any]) -> Any:
    from langgraph.types import Command

    return Command(resume=dict(reply))


def counter_of(budget: CallBudget, trace: Trace) -> CallCounter:
    """Return the counter of a run's model calls. Blocks a second the first time, while langchain is imported."""
    from rag.models.calls import CallCounter

    return CallCounter(budget, trace)


def _note(run: Run, part: Mapping[str, Any], path: tuple[str, ...]) -> None:
    """Take what a node wrote to its stream. The text so far is what the mode's own graph writes."""
    for kind, data in part.items():
        if kind in _KINDS:
            run.add(cast(EventKind, kind), data, path)
        if path:
            continue
        if kind in ("token", "reset"):
            run.text = run.text + data if kind == "token" else ""
        elif kind != "step":
            run.state[kind] = data


def interruption(run: Run) -> Notice:
    if run.stopped.is_set():
        return Notice("run_stopped")
    limit = run.question.options.seconds
    seconds = (limit or 0.0) + run.more.get("seconds", 0.0)
    return Notice("budget_seconds", {"seconds": f"{seconds:g}"}) if limit else Notice("run_too_long")


def failure(run: Run, task: asyncio.Task[None]) -> Notice | None:
    """Say why the graph broke off, if it did. The log gets no message of a surprise: it may quote pages.

    What fails once there is an outcome is the writing of the conversation: the answer is sound.
    """
    problem = task.exception() if not task.cancelled() else asyncio.CancelledError()
    if problem is None or isinstance(problem, RagError):
        return problem.notice if problem else None
    if run.thread and run.state.get("outcome"):
        log_problem("a conversation could not be kept", problem)
        return None
    log_problem("a run broke off", problem)
    return Notice("run_failed")


async def conclude(run: Run, broken: Notice | None) -> Answer:
    """The mode's answer; one that says no more than that it failed where there is none, for whoever waits for one."""
    if run.counter is not None:
        run.counter.close()
    (answer,) = await asyncio.gather(run.mode.finish(run, broken), return_exceptions=True)
    if not isinstance(answer, BaseException):
        return answer
    log_problem("an answer could not be put together", answer)
    return answer_of(run, "failed", Notice("run_failed"))


def answer_of(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
    statements: tuple[Statement, ...] = (),
) -> Answer:
    steps = tuple(Step(span.name, span.ms, span.attributes) for span in run.trace.done("node"))
    return Answer(
        question=run.question.text,
        mode=run.mode.name,
        outcome=outcome,
        text=text,
        citations=citations,
        passages=tuple(passages),
        steps=steps,
        model_calls=run.budget.used,
        seconds=round(run.seconds(), 3),
        reasoner=run.reasoner.name,
        notice=_of_searches(run, outcome, notice),
        searches=tuple(run.cache.searches),
        answerable=run.cache.answerable(),
        statements=statements,
        standalone=_standalone(run),
        composed=run.state.get("composed", ""),
        usage=run.budget.meter.usage(),
    )


def _of_searches(run: Run, outcome: Outcome, notice: Notice | None) -> Notice | None:
    """Name damaged pages, or why only keywords were searched, instead of what the pages contain."""
    titles = dict.fromkeys(title for search in run.cache.searches for title in search.damaged)
    in_place = notice is None or outcome == "not_in_pages" or notice.code in _OF_PAGES
    if not in_place:
        return notice
    if titles:
        return Notice("pages_damaged", {"titles": ", ".join(f"“{title}”" for title in titles)})
    reasons = [search.notes["meaning"] for search in run.cache.searches if "meaning" in search.notes]
    return Notice("searched_by_keywords", {"reason": reasons[0]}) if reasons else notice


def _standalone(run: Run) -> str:
    understood = str(run.state.get("standalone", ""))
    return "" if understood == run.question.text.strip() else understood
