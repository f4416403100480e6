"""One run: its question and options, its events so far, its answer, and their conversion to plain data and back.

`runs` starts, stops and stores runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import traceback
import zlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict

from rag.checking.verifier import Verifier
from rag.config import Settings
from rag.errors import RagError
from rag.models.servers import SAMPLING
from rag.prompts.requests import mark_run
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import Compose
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.questions import DEFAULT_WINDOW, Memory, MemoryKind
from rag.retrieval.context import SURE_THRESHOLD, merge_passages
from rag.retrieval.retriever import ScopedSearch
from rag.store.sql.conversation_table import Change
from rag.store.values import Filters
from rag.tracing import CallBudget, Prices, Span, Trace, UsageSnapshot
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


Record = TypeVar("Record")

_OPENING: Final = 300  # characters of a candidate's text, enough to recognise it


class NoticeRecord(TypedDict):
    code: str
    params: dict[str, Any]


def record(notice: Notice) -> NoticeRecord:
    return {"code": notice.code, "params": dict(notice.params)}


def notice_of(data: NoticeRecord | None) -> Notice | None:
    return Notice(data["code"], data["params"]) if data else None


def end_update(outcome: Outcome, notice: Notice | None) -> dict[str, Any]:
    """Return the state update for the end of a question."""
    return {"outcome": outcome, "notice": record(notice) if notice else None}


def step_note(decision: str, **detail: Any) -> dict[str, Any]:
    """Return a step's decision for the trace."""
    return {"decision": decision, **detail}


def passage_of(data: Mapping[str, Any]) -> Passage:
    return from_json(Passage, data)


def merge_readings(first: Passage, second: Passage) -> Passage:
    """Return all text that two searches read of a passage; only the first's if the two are not adjacent."""
    are_apart = first.end < second.start - len(second.lead) or second.end < first.start - len(first.lead)
    return (
        first
        if are_apart or (first.start <= second.start and second.end <= first.end)
        else merge_passages(first, second)
    )


def to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON values of a few kilobytes.

    Quotes are complete and have their positions, so that old answers still look the same. Passages have positions and
    scores, but no text, which is in the library. Searches are stored by `compress_searches`.
    """
    light = replace(answer, searches=(), passages=tuple(replace(passage, text="") for passage in answer.passages))
    data = asdict(light)
    data.pop("searches")
    return data


def answer_from_json(data: Mapping[str, Any]) -> Answer:
    """Return the answer from the result of `to_json`; fields that it lacks have their defaults."""
    return from_json(Answer, data)


def compress_searches(searches: Sequence[Retrieval]) -> bytes:
    """Return the searches of an answer as compressed JSON of about six kilobytes each; empty without any.

    Each candidate has only the start of its text. `passages` are omitted, since they are among the candidates.
    """
    if not searches:
        return b""
    data = []
    for search in searches:
        candidates = tuple(
            replace(candidate, passage=replace(candidate.passage, text=candidate.passage.text[:_OPENING]))
            for candidate in search.candidates
        )
        data.append(asdict(replace(search, passages=(), candidates=candidates)))
    return zlib.compress(json.dumps(data, ensure_ascii=False, default=str).encode())


def decompress_searches(data: bytes) -> tuple[Retrieval, ...]:
    """Return the searches from the result of `compress_searches`."""
    return tuple(from_json(Retrieval, one) for one in json.loads(zlib.decompress(data))) if data else ()


def from_json(kind: type[Record], data: Mapping[str, Any]) -> Record:
    """Return a dataclass value from its fields as JSON; unknown fields are ignored."""
    hints = _hints(cast(Hashable, kind))
    return kind(**{name: _decode(hints[name], value) for name, value in data.items() if name in hints})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _decode(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _decode(next(arm for arm in get_args(hint) if arm is not NoneType), value)
    if origin is tuple:
        arms = get_args(hint)
        same = len(arms) == 2 and arms[1] is Ellipsis
        return tuple(_decode(arms[0] if same else arms[at], one) for at, one in enumerate(value))
    if isinstance(hint, type) and is_dataclass(hint):
        return from_json(hint, value)
    return value


TreeOrder = Literal["breadth", "best"]
WebAccess = Literal["", "ask", "allowed"]
"""Web search: never, on request, or always."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Choices and limits of one run; None means the mode's default or no limit.

    `route` is the kind of message, empty for a question. `strategy` is the search strategy, by default that of the
    settings. `standalone` is the question as corrected by the user, which is searched for and answered. `compose` is
    how an answer combines many passages, `distill` whether they are first reduced to the relevant sentences (None: if
    they do not fit). With `approve`, a mode with a plan waits for the user to approve it; `searches` is the maximum
    number of its searches; `web` is whether its steps may search the web, `code` whether a model may run code. With
    `judge_each`, passages are judged one by one; `tree_order` is which levels of a tree come first; `branch` is an
    earlier tree to continue and the changes to it: `checkpoint`, and those of `rag.graphs.judge.tree.branch`. `memory`
    is the part of the conversation to include, `window` its number of exchanges, if it is "window". `context_tokens` is
    the context size of the chat model. `calls`, `tokens` and `seconds` are limits, after which the run returns the best
    answer so far. A search returns `k` passages of `fetch_k` candidates; 0 is the default. `weights` are those of
    libraries, by name, if several are searched; 1 by default. `max_tokens` (of the answer alone) to `stop` are
    parameters of the chat model, see `rag.models.servers`. `saving` is an import job to wait for, `confirmed` whether
    the user confirmed saving many links. Pages in `first` are searched first; `without` are kinds of options not to
    read from the message. `locale` is the language of reports, by default that of the question.
    """

    strategy: str = ""
    standalone: str = ""
    compose: Compose = "auto"
    distill: bool | None = None
    approve: bool = False
    searches: int | None = None
    web: WebAccess = ""
    judge_each: bool = False
    tree_order: TreeOrder = "breadth"
    branch: Mapping[str, Any] = field(default_factory=dict)
    memory: MemoryKind = "recent"
    window: int = DEFAULT_WINDOW
    context_tokens: int = 16_000
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    prices: Prices = field(default_factory=Prices)
    weights: Mapping[str, float] = field(default_factory=dict)
    k: int = 0
    fetch_k: int = 0
    max_tokens: int | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    route: str = ""
    code: bool = False
    saving: str = ""
    confirmed: bool = False
    first: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    locale: str = ""

    @property
    def sampling(self) -> dict[str, Any]:
        """Return the chosen parameters of the chat model (JSON values)."""
        parameters = {name: getattr(self, name) for name in SAMPLING} | {"stop": list(self.stop)}
        return {name: value for name, value in parameters.items() if value not in (None, [])}

    @property
    def memory_scope(self) -> Memory:
        """Return the part of a conversation to include; a buffer has half of the chat model's context."""
        return Memory(self.memory, self.window, self.context_tokens // 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its libraries, mode, filters and options."""

    text: str
    libraries: tuple[str, ...] = ()
    mode: str = "fast"
    scope: Filters = field(default_factory=Filters)
    options: RunOptions = field(default_factory=RunOptions)

    @property
    def library(self) -> str:
        """The first library, to which the conversation belongs."""
        return self.libraries[0]

    def with_defaults(self, settings: Settings) -> Question:
        """Return the question with the settings' strategy, sizes, prices and limits as defaults."""
        chosen = self.options
        options = replace(
            chosen,
            strategy=chosen.strategy or settings.strategy,
            context_tokens=settings.llm_context_tokens,
            code=settings.tools_code,
            calls=settings.answer_max_calls if chosen.calls is None else chosen.calls,
            tokens=settings.answer_max_tokens if chosen.tokens is None else chosen.tokens,
            seconds=settings.answer_max_seconds if chosen.seconds is None else chosen.seconds,
            prices=Prices(settings.llm_price_in, settings.llm_price_out),
        )
        return replace(self, options=options)


STOP_GRACE: Final = 0.4  # seconds for a stopped run to end cleanly
KEEPS_HISTORY_KEY: Final = "keeps_history"
"""A key of `configurable`: a run that sets it stores the checkpoint of each step."""

_REPLACEABLE_CODES: Final = frozenset({"in_doubt", "closest", "not_named", "nothing_found", "no_pages"})
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

    def nothing_found(self) -> Notice:
        """Return why a search found nothing: there are no pages, or none that match. May block."""
        return Notice("no_pages" if self.retriever.is_empty() else "nothing_found")

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
    """A mode's compiled LangGraph graph, which gets the run as its context, and its input.

    A graph that resumes from its last checkpoint gets no input.
    """

    graph: Any
    graph_input: Mapping[str, Any] | None


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
        """Start with the usage before the run was resumed."""
        self.earlier_usage = usage
        self.budget.restore(usage)

    @property
    def recent_pages(self) -> tuple[str, ...]:
        """Return the url_hashes of the pages that the conversation last cited or added."""
        return next((exchange.pages for exchange in reversed(self.history) if exchange.pages), ())

    @property
    def options(self) -> RunOptions:
        return self.question.options

    @property
    def chat(self) -> ChatReasoner | None:
        """Return the reasoner if it is a chat model."""
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
    options = {"context": run, "stream_mode": ["custom", "values"], "subgraphs": True, **durability}
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


def answer_of_state(run: Run, passages: Sequence[Passage], interruption: Notice | None = None) -> Answer:
    """Return the answer in the run's state, which was written from `passages`."""
    state = run.state
    return build_answer(
        run,
        state.get("outcome") or "failed",
        interruption or notice_of(state.get("notice")),
        state.get("text", ""),
        tuple(from_json(Citation, data) for data in state.get("citations", ())),
        passages,
        tuple(from_json(Statement, data) for data in state.get("statements", ())),
    )


def build_answer(
    run: Run,
    outcome: Outcome,
    notice: Notice | None,
    text: str = "",
    citations: tuple[Citation, ...] = (),
    passages: Sequence[Passage] = (),
    statements: tuple[Statement, ...] = (),
) -> Answer:
    standalone = str(run.state.get("standalone", ""))
    completed = (span for span in run.trace.spans if span.kind == "node" and span.status == "ok")
    steps = tuple(Step(span.name, span.ms, span.attributes) for span in completed)
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
        standalone="" if standalone == run.question.text.strip() else standalone,
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
