"""One run: its question and mode, its events so far, and its answer.

`runs` starts, stops and stores runs.
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
from rag.models.usage import CallBudget, UsageSnapshot
from rag.prompts.requests import mark_run
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.retrieval.answerable import SURE_THRESHOLD
from rag.retrieval.context import merge_passages
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

STOP_GRACE: Final = 0.4  # seconds for a stopped run to end cleanly
KEEPS_HISTORY_KEY: Final = "keeps_history"
"""A key of `configurable`: a run that sets it stores the checkpoint of each step."""

_REPLACEABLE_CODES: Final = frozenset({"in_doubt", "closest", "not_named", "nothing_found"})
_EVENT_KINDS: Final = frozenset(get_args(EventKind))


class PassageCache:
    """A cache of the passages that a run has read, so that later steps need no second query.

    `searches` are the searches so far, to explain why a passage was found.
    """

    def __init__(self, retriever: ScopedSearch) -> None:
        self.searches: list[Retrieval] = []
        self.retriever = retriever
        self._passages: dict[str, Passage] = {}

    def search(self, query: str, before: Sequence[str] = (), **options: Any) -> Sequence[Passage]:
        retrieval = self.retriever.search(query, before, **options)
        if isinstance(retrieval, Retrieval):
            self.searches.append(retrieval)
        passages = [self._merge_known(passage) for passage in retrieval.passages]
        self._passages.update((passage.id, passage) for passage in passages)
        return passages

    def _merge_known(self, passage: Passage) -> Passage:
        """Return the passage merged with an earlier reading of the same chunk, which may have been graded."""
        earlier = self._passages.get(passage.id)
        if earlier is None:
            return passage
        if not (earlier.start <= passage.start and passage.end <= earlier.end):
            passages = self.retriever.passages([passage.id])
            earlier = merge_passages(merge_passages(passages[0], earlier), passage) if passages else passage
        return replace(earlier, score=passage.score, ranks=passage.ranks, scores=passage.scores)

    def answerable(self) -> float:
        """Return the probability that the library answers the question, from the best search; 1 before the first."""
        return max((search.answerable for search in self.searches), default=1.0)

    def is_sure(self) -> bool:
        """Return whether a search surely found the answer."""
        return any(search.answerable >= SURE_THRESHOLD for search in self.searches)

    def passages_of(self, ids: Sequence[str]) -> list[Passage]:
        if missing := [id_ for id_ in ids if id_ not in self._passages]:
            self._passages.update((passage.id, passage) for passage in self.retriever.passages(missing))
        return [self._passages[id_] for id_ in ids if id_ in self._passages]


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """A mode's compiled LangGraph graph, its input and its runtime context.

    A graph that resumes from its last checkpoint gets no input.
    """

    graph: Any
    graph_input: Mapping[str, Any] | None
    context: Any = None


class Mode(ABC):
    """An answer mode: its graph, and how to read its final state. One instance serves all runs and has no state.

    Data that nodes stream updates the run's state, and is also an event if its key is an EventKind; steps and text are
    only events. A state with an `outcome` has a sound answer. `max_calls` and `max_tokens` are the default limits of a
    run's model calls and their tokens; `calls_cap` is the highest limit of calls. With `keeps_history`, a conversation
    stores the checkpoint of each step.
    """

    name: str
    max_calls: int = 1
    calls_cap: int | None = None
    max_tokens: int | None = None
    keeps_history: bool = False

    @abstractmethod
    async def prepare(self, run: Run) -> PreparedGraph:
        """Build the graph of the run, compiled with its `checkpointer`."""

    @abstractmethod
    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        """Return the answer from the run's state; `interruption` is why the graph was interrupted."""

    def default_calls(self, options: RunOptions, *, in_conversation: bool) -> int:
        """Return the default limit of model calls; `in_conversation` is whether the run belongs to a conversation."""
        return self.max_calls

    def warm(self, saver: Any) -> None:
        """Import and build the graph before the first run; `saver` is the checkpointer, or None. Blocks."""
        return

    async def remember(self, run: Run) -> None:
        """Add the text of an interrupted run to its conversation."""
        return


class GraphMode(Mode):
    """A mode whose graph is in the module `graph_path`, imported on first use since LangGraph takes a second."""

    graph_path: str

    @property
    def graph_module(self) -> Any:
        return import_module(self.graph_path)

    def warm(self, saver: Any) -> None:
        self.graph_module.graph_of(saver)

    async def prepare(self, run: Run) -> PreparedGraph:
        module = await asyncio.to_thread(lambda: self.graph_module)
        graph: PreparedGraph = await module.prepare(run)
        return graph

    async def finish(self, run: Run, interruption: Notice | None) -> Answer:
        """Return the answer from the run's last state or, if it was interrupted, from its rescued state."""
        if interruption is not None and not run.state.get("outcome"):
            run.state = await self.graph_module.rescue(run)
        state = run.state
        return build_answer(
            run,
            state.get("outcome") or "failed",
            interruption or notice_of(state.get("notice")),
            state.get("text", ""),
            citations_of(state),
            [passage_of(data) for data in state.get("passages", ())],
            statements_of(state),
        )


@dataclass(frozen=True, slots=True)
class Hooks:
    """The callbacks of a run, called in threads except `dispatch`, which is awaited first to route the message.

    `on_answer` gets the answer before `Runs.wait` returns, `on_text` the text so far about once a second, `on_wait` the
    questions to the user and the usage of the run, `on_spans` the trace, whenever it ends or waits. `load_changes`
    returns the user's changes since the start, oldest first.
    """

    on_answer: Callable[[Answer], object] | None = None
    on_text: Callable[[str], object] | None = None
    on_wait: Callable[[Sequence[Wait], UsageSnapshot], object] | None = None
    on_spans: Callable[[Sequence[Span]], object] | None = None
    load_changes: Callable[[], Sequence[Change]] = tuple
    dispatch: Callable[[Run], Awaitable[None]] | None = None


@dataclass(slots=True)
class Run:
    """A run and its state. `owner` is the user that it belongs to, `earlier_usage` its usage before it resumed in
    another process, `reply` the user's replies to its waits, by their ids. If `is_resumed`, it was interrupted and
    starts at its last checkpoint."""

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
    earlier_usage: UsageSnapshot = field(default_factory=UsageSnapshot)
    reply: Mapping[str, Any] = field(default_factory=dict)
    is_resumed: bool = False
    waits: tuple[Wait, ...] = ()
    extra_limits: Mapping[str, float] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)
    seconds_waited: float = 0.0
    ended_at: float | None = None
    events: list[Event] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    state: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    answer: Answer | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    replied: asyncio.Event = field(default_factory=asyncio.Event)
    done: threading.Event = field(default_factory=threading.Event)
    work: Future[None] | None = None  # stored, since an event loop has only weak references to its tasks

    def switch_to(self, question: Question, retriever: ScopedSearch) -> None:
        """Answer this question instead, in its own mode."""
        self.question, self.mode, self.cache = question, self.modes[question.mode], PassageCache(retriever)
        calls = self.mode.default_calls(question.options, in_conversation=bool(self.history or self.thread))
        if question.options.calls is None:
            self.budget.raise_by(max(0, calls - self.budget.limit), 0)

    def add(self, kind: EventKind, data: Any, path: tuple[str, ...] = ()) -> None:
        with self.changed:
            self.events.append(Event(len(self.events), kind, data, path))
            self.changed.notify_all()

    def seconds(self) -> float:
        """Return the working time in seconds, without waits for the user."""
        return self.earlier_usage.seconds + time.monotonic() - self.started_at - self.seconds_waited

    def changes(self) -> Sequence[Change]:
        """Return the user's changes so far, oldest first. Blocks. A raised budget applies immediately."""
        changes = self.hooks.load_changes()
        raised = [change.data for change in changes if change.kind == "budget"]
        self.extra_limits = {unit: sum(data.get(unit, 0) for data in raised) for unit in ("calls", "tokens", "seconds")}
        self.budget.raise_by(int(self.extra_limits["calls"]), int(self.extra_limits["tokens"]))
        return changes

    def restore_usage(self, usage: UsageSnapshot) -> None:
        """Start with the usage before the interruption."""
        self.earlier_usage = usage
        self.budget.restore(usage)

    @property
    def recent_pages(self) -> tuple[str, ...]:
        """Return the url_hashes of the pages that the conversation last cited or added."""
        return next((exchange.pages for exchange in reversed(self.history) if exchange.pages), ())

    @property
    def condenser(self) -> ChatReasoner | None:
        return self.reasoner if isinstance(self.reasoner, ChatReasoner) else None

    @property
    def verifiers(self) -> list[Verifier]:
        """Return the available checkers, best first."""
        return [candidate for candidate in (self.reasoner, self.verifier) if isinstance(candidate, Verifier)]

    def checkpointer(self) -> Any:
        """Return the checkpointer of the run's conversation, or None. Its first import takes a moment."""
        return self.saver() if self.thread and self.saver else None

    def config(self) -> Any:
        """Return the configuration for calling the graph and reading and writing its conversation."""
        configurable = {"thread_id": self.thread, KEEPS_HISTORY_KEY: self.mode.keeps_history} if self.thread else {}
        return {"configurable": configurable, "callbacks": [self.counter] if self.counter else []}


def log_problem(message: str, problem: BaseException) -> None:
    frames = traceback.extract_tb(problem.__traceback__)[-4:]
    places = ", ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    log.error("%s: %s at %s", message, type(problem).__name__, places)


async def drive(run: Run) -> None:
    """Run the mode's graph until it ends or waits for the user, and turn its stream into events."""
    if run.reasoner.kind == "chat":  # quoters make no calls
        run.counter = run.counter or await asyncio.to_thread(make_counter, run.budget, run.trace)
    run.trace.activate()
    mark_run()
    if run.hooks.dispatch is not None and not (run.reply or run.is_resumed):
        await run.hooks.dispatch(run)
    prepared = await run.mode.prepare(run)
    graph_input = await asyncio.to_thread(_resume_command, run.reply) if run.reply else prepared.graph_input
    is_saved = run.thread and prepared.graph.checkpointer is not None
    durability = {"durability": "exit"} if is_saved and not run.mode.keeps_history else {}
    options = {"context": prepared.context, "stream_mode": ["custom", "values"], "subgraphs": True, **durability}
    run.waits, has_started = (), run.is_resumed
    async for namespace, kind, part in prepared.graph.astream(graph_input, run.config(), **options):
        path = tuple(node.partition(":")[0] for node in namespace)
        if kind == "custom":
            _apply_part(run, part, path)
        elif not path:
            run.state.update(part if has_started else {})  # the first values are the conversation's last state
            has_started = True
    run.waits = tuple(Wait(one.id, one.value) for one in run.state.pop("__interrupt__", ()))


async def saved_state(run: Run, graph: Any) -> dict[str, Any] | None:
    """Return the state of the run's conversation as the graph's values; None if it can't be read."""
    if not run.thread:
        return {}
    results: Sequence[Any] = await asyncio.gather(graph.aget_state(run.config()), return_exceptions=True)
    if isinstance(results[0], BaseException):
        log_problem("a conversation could not be read", results[0])
        return None
    values: dict[str, Any] = results[0].values
    return values


def _resume_command(reply: Mapping[str, Any]) -> Any:
    from langgraph.types import Command

    return Command(resume=dict(reply))


def make_counter(budget: CallBudget, trace: Trace) -> CallCounter:
    """Return the counter of a run's model calls. Blocks a second the first time, while langchain is imported."""
    from rag.models.calls import CallCounter

    return CallCounter(budget, trace)


def _apply_part(run: Run, part: Mapping[str, Any], path: tuple[str, ...]) -> None:
    """Add what a node streamed to the events or the state. Only the mode's main graph writes the text."""
    for kind, data in part.items():
        if kind in _EVENT_KINDS:
            run.add(cast(EventKind, kind), data, path)
        if path:
            continue
        if kind in ("token", "reset"):
            run.text = run.text + data if kind == "token" else ""
        elif kind != "step":
            run.state[kind] = data


def interruption_notice(run: Run) -> Notice:
    if run.stopped.is_set():
        return Notice("run_stopped")
    limit = run.question.options.seconds
    seconds = (limit or 0.0) + run.extra_limits.get("seconds", 0.0)
    return Notice("budget_seconds", {"seconds": f"{seconds:g}"}) if limit else Notice("run_too_long")


def failure_notice(run: Run, task: asyncio.Task[None]) -> Notice | None:
    """Return why the graph failed, if it did. An unexpected error's message may quote pages, so it isn't logged.

    A failure after the outcome only affects saving the conversation; the answer is sound.
    """
    problem = task.exception() if not task.cancelled() else asyncio.CancelledError()
    if problem is None or isinstance(problem, RagError):
        return problem.notice if problem else None
    if run.thread and run.state.get("outcome"):
        log_problem("a conversation could not be saved", problem)
        return None
    log_problem("a run failed", problem)
    return Notice("run_failed")


async def conclude(run: Run, interruption: Notice | None) -> Answer:
    """Return the mode's answer, or a failed one without text if `finish` raises: callers always get an answer."""
    if run.counter is not None:
        run.counter.close()
    (answer,) = await asyncio.gather(run.mode.finish(run, interruption), return_exceptions=True)
    if not isinstance(answer, BaseException):
        return answer
    log_problem("an answer could not be built", answer)
    return build_answer(run, "failed", Notice("run_failed"))


def build_answer(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
    statements: tuple[Statement, ...] = (),
) -> Answer:
    steps = tuple(Step(span.name, span.ms, span.attributes) for span in run.trace.find_completed("node"))
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
        notice=_adjust_notice(run, outcome, notice),
        searches=tuple(run.cache.searches),
        answerable=run.cache.answerable(),
        statements=statements,
        standalone=_standalone(run),
        composed=run.state.get("composed", ""),
        usage=run.budget.meter.usage(),
    )


def _adjust_notice(run: Run, outcome: Outcome, notice: Notice | None) -> Notice | None:
    """Replace a notice about the pages' content with one about damaged pages or a keyword-only search, if any."""
    titles = dict.fromkeys(title for search in run.cache.searches for title in search.damaged)
    is_replaceable = notice is None or outcome == "not_in_pages" or notice.code in _REPLACEABLE_CODES
    if not is_replaceable:
        return notice
    if titles:
        return Notice("pages_damaged", {"titles": ", ".join(f"“{title}”" for title in titles)})
    reasons = [search.notes["meaning"] for search in run.cache.searches if "meaning" in search.notes]
    return Notice("searched_by_keywords", {"reason": reasons[0]}) if reasons else notice


def _standalone(run: Run) -> str:
    standalone = str(run.state.get("standalone", ""))
    return "" if standalone == run.question.text.strip() else standalone
