"""Helpers shared by the graphs: conversations, step tracing, fallback from a model to rules, and streaming."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.graph import END
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from rag.background import STREAM_PACER
from rag.checking.citations import Check
from rag.errors import ModelError
from rag.reasoning import RESET
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.questions import (
    HISTORY_TOKENS,
    MAX_STANDALONE,
    SUMMARY_OF,
    Memory,
    exchanges_of,
    human_message,
    is_valid_standalone,
    messages_of,
    question_problem,
    summary_by_rules,
    turns_of,
)
from rag.runs.run import (
    NoticeRecord,
    PreparedGraph,
    Run,
    end_update,
    notice_of,
    passage_of,
    record,
    saved_state,
    step_note,
)
from rag.text import first_sentence, trim_to_sentences
from rag.tracing import BUDGET_CODES, UsageSnapshot, span
from rag.types import Citation, Exchange, Notice, Outcome, Passage, because

log = logging.getLogger(__name__)

Result = tuple[dict[str, Any], dict[str, Any]]
"""The state update of a step, and its decision for the trace."""
StepFunction = Callable[..., Awaitable[tuple[Any, dict[str, Any]]]]
T = TypeVar("T")
Model = TypeVar("Model")
Rules = TypeVar("Rules")

Running = Runtime[Run]

CALLS_RESERVED: Final = 2
"""Model calls that earlier steps leave unused, for writing the text and for repairing or checking it."""

# Limits of research and of a tree

STEP_SECONDS: Final = 180.0
"""Working time after which no step starts."""
MAX_PARALLEL: Final = 4
"""Maximum number of steps that run in parallel."""
RECALL: Final = 20
"""Maximum number of passages that a search returns, which together fill the context."""
MAX_CHARACTERS: Final = 8_000
"""Characters of passages for the text."""
SEARCHES_BY_RULES: Final = 6


class ConversationState(TypedDict, total=False):
    """The state common to all modes: the conversation, the standalone question, and the outcome."""

    messages: Annotated[list[AnyMessage], add_messages]
    summary: str
    question: str
    standalone: str
    text: str
    citations: list[dict[str, Any]]
    statements: list[dict[str, Any]]
    outcome: Outcome | None
    notice: NoticeRecord | None


def blank_fields(question: str) -> ConversationState:
    """Return the initial fields of a new question."""
    return {
        "question": question,
        "standalone": "",
        "text": "",
        "citations": [],
        "statements": [],
        "outcome": None,
        "notice": None,
    }


def merge_by_id(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Merge the fields of `new` into the records with the same ids; new records come last."""
    merged: dict[str, Any] = {one["id"]: one for one in old}
    for one in new:
        merged[one["id"]] = {**merged.get(one["id"], {}), **one}
    return list(merged.values())


def merge_values(old: Mapping[str, T], new: Mapping[str, T], merge: Callable[[T, T], T]) -> dict[str, T]:
    """Return both mappings as one; `merge` makes one value of an old and a new one with the same key."""
    merged = dict(old)
    for key, value in new.items():
        merged[key] = merge(merged[key], value) if key in merged else value
    return merged


def question_of(state: Mapping[str, Any]) -> str:
    """Return the standalone question if there is one, else the original question."""
    return str(state.get("standalone") or state["question"])


def unless_ended(step: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the condition of an edge to `step`, which a question that has its outcome does not take."""
    return lambda state: END if state["outcome"] else step


def add_steps(builder: Any, *steps: StepFunction, stores: bool = False) -> None:
    """Add the steps to a graph, under their names; see `trace_step`."""
    for step in steps:
        builder.add_node(step.__name__, trace_step(step, stores=stores))


def trace_step(function: StepFunction, *, stores: bool = False) -> Callable[..., Awaitable[Any]]:
    """Wrap a step so that it is traced as a span and its start and end are streamed. If it `stores`, also count its
    tokens and append it to `steps` in the state."""
    name = function.__name__

    async def node(state: Any, runtime: Running) -> Any:
        runtime.stream_writer({"step": {"node": name, "state": "started"}})
        meter = runtime.context.budget.meter
        tokens = meter.tokens
        with span(name, "node") as step_span:
            update, detail = await function(state, runtime)
            step_span.attributes.update(detail)
            if stores and (used := meter.tokens - tokens):
                step_span.attributes.update(tokens=used, tokens_estimated=meter.estimated)
        step = {"node": name, "ms": step_span.ms, "detail": step_span.attributes}
        runtime.stream_writer({"step": {**step, "state": "finished"}})
        return {**update, "steps": [*update.get("steps", state.get("steps", [])), step]} if stores else update

    return node


async def model_or_rules(
    seconds: float, model: Model | None, rules: Rules, work: Callable[[Model | Rules], Awaitable[T]]
) -> tuple[T, list[NoticeRecord]]:
    """Return the result of the model's `work`; or the rules' without a model or, with a note, if it fails or exceeds
    `seconds`."""
    if model is None:
        return await work(rules), []
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await work(model), []
    except (ModelError, TimeoutError) as error:
        notice = error.notice if isinstance(error, ModelError) else Notice("research_model_slow")
        log.info("a step of the model falls back to rules (%s)", notice.code)
        return await work(rules), [record(notice)]


def rules_notice(notes: Sequence[NoticeRecord]) -> Notice | None:
    """Return a notice that rules replaced the model in some steps, or None. Notes about the web don't count."""
    fallback = next((notice_of(note) for note in notes if not note["code"].startswith("research_web")), None)
    return Notice("partly_by_rules", because(fallback.code, **fallback.params)) if fallback else None


async def collect(source: AsyncIterator[str], runtime: Running, pieces: list[str]) -> None:
    """Stream text and append it to `pieces`, so that it survives if the source fails.

    While many runs are streaming, several pieces are sent as one.
    """
    buffer, sent_at = "", 0.0
    with STREAM_PACER.text():
        try:
            async for piece in source:
                if piece == RESET:
                    stream_piece(piece, runtime, pieces)
                    buffer = ""
                elif piece:
                    pieces.append(piece)
                    buffer += piece
                if buffer and time.monotonic() - sent_at >= STREAM_PACER.pause:
                    runtime.stream_writer({"token": buffer})
                    buffer, sent_at = "", time.monotonic()
        finally:
            if buffer:
                runtime.stream_writer({"token": buffer})


def stream_piece(piece: str, runtime: Running, pieces: list[str]) -> None:
    """Stream one piece of text or RESET, and update `pieces`."""
    if piece == RESET:
        pieces.clear()
        runtime.stream_writer({"reset": True})
    elif piece:
        pieces.append(piece)
        runtime.stream_writer({"token": piece})


async def write_or_quote(
    model: AsyncIterator[str] | None, rules: AsyncIterator[str], runtime: Running
) -> tuple[str, Notice | None]:
    """Return the model's text, or the rules' text if there is no model or it fails; and the reason for the failure.

    If the model hits a length or budget limit, its text so far is used.
    """
    pieces: list[str] = []
    problem: Notice | None = None
    if model is not None:
        try:
            await collect(model, runtime, pieces)
            return "".join(pieces), None
        except ModelError as error:
            problem = error.notice
            if pieces and error.code in BUDGET_CODES | {"answer_too_long"}:
                return "".join(pieces), problem
            if pieces:
                stream_piece(RESET, runtime, pieces)
    await collect(rules, runtime, pieces)
    return "".join(pieces), problem


async def make_standalone(question: str, history: Sequence[Exchange], summary: str, run: Run, spare: int) -> str:
    """Return a follow-up as the model rewrites it to be standalone, or "" without one; leave `spare` calls unused."""
    if run.chat is None or not (history or summary):
        return ""
    recent = run.options.memory_scope.select_exchanges(history)
    try:
        with run.budget.reserve(spare):
            standalone = await run.chat.condense(question, recent, summary)
    except ModelError as error:
        log.info("a follow-up could not be rewritten (%s)", error.code)
        return ""
    standalone = " ".join(standalone.split())[:MAX_STANDALONE] or question
    if is_valid_standalone(standalone, question, [*history, Exchange("", summary)]):
        return standalone
    log.info("the model's version of a follow-up is about something else and is not used")
    return ""


async def start_turn(
    update: dict[str, Any], state: Mapping[str, Any], runtime: Running, spare: int, *, aside: bool = False
) -> Result:
    """Start a question with the fields `update`; only the conversation survives from the earlier `state`.

    A follow-up is completed from it, leaving `spare` calls unused. An `aside` doesn't ask about pages.
    """
    run, question, earlier = runtime.context, update["question"], state.get("messages", [])
    standalone = " ".join(run.options.standalone.split())  # the user's correction
    memory_update: dict[str, Any] = {"messages": []}
    if earlier and not (standalone and run.chat):
        summary, changes = await shorten_conversation(earlier, state.get("summary", ""), run, spare)
        memory_update = {"summary": summary, "messages": changes}
        history = exchanges_of(earlier[len(changes) :])
        standalone = standalone or await make_standalone(question, history, summary, run, spare)
    if standalone and standalone != question:
        runtime.stream_writer({"standalone": standalone})
        update["standalone"] = standalone
    messages = [*memory_update["messages"], human_message(question, standalone, aside=aside)]
    return {**update, **memory_update, "messages": messages}, step_note("begin")


def check_question(update: Mapping[str, Any]) -> Result | None:
    """Return the result that rejects an invalid question, or None for a valid one."""
    if problem := question_problem(update["question"]):
        return {**update, **end_update("failed", problem)}, step_note("refused", reason=problem.code)
    return None


async def shorten_conversation(
    messages: Sequence[AnyMessage], summary: str, run: Run, spare: int
) -> tuple[str, list[Any]]:
    """Return the summary extended by the oldest exchanges, and removals of their messages.

    Without a model, the summary stays, and the oldest answers are shortened.
    """
    memory = run.options.memory_scope
    if run.chat is None:
        return summary, shorten_answers(messages, memory)
    turns = turns_of(messages)
    surplus = turns[: memory.count_summarised([turn.exchange for turn in turns])]
    removed = [RemoveMessage(id=message.id) for turn in surplus for message in turn.messages if message.id]
    exchanges = [turn.exchange for turn in surplus if turn.answer]
    if not exchanges:
        return summary, removed
    tokens, extended = HISTORY_TOKENS // 2, ""
    try:
        with run.budget.reserve(spare):
            extended = await run.chat.summarise(summary, exchanges, tokens)
    except ModelError as error:
        log.info("a conversation is summarised by rules (%s)", error.code)
    return extended or summary_by_rules(summary, exchanges, tokens), removed


def shorten_answers(messages: Sequence[AnyMessage], memory: Memory) -> list[AnyMessage]:
    """Return the first sentence of each answer that a summary would replace, under the answer's id."""
    turns = turns_of(messages)
    surplus = turns[: memory.count_summarised([turn.exchange for turn in turns])]
    old = [turn.answer for turn in surplus if turn.answer]
    return [AIMessage(short, id=one.id) for one in old if 0 < len(short := first_sentence(one.text)) < len(one.text)]


def summary_messages(state: Mapping[str, Any]) -> list[AnyMessage]:
    """Return the summary of older exchanges as a question with its answer, if there is one."""
    summary = state.get("summary", "")
    return [HumanMessage(SUMMARY_OF), AIMessage(summary)] if summary else []


async def prepare_graph(
    run: Run,
    graph_of: Callable[..., Any],
    extra_input: Callable[[Run, Any], Awaitable[dict[str, Any]]] | None,
) -> PreparedGraph:
    """Return the graph with its input: the question, its history, and the `extra_input` of the run and its graph.

    A run that resumes after its process was interrupted gets no input.
    """
    graph = graph_of(run.checkpointer())
    state = await saved_state(run, graph)
    if state is None:  # continue without saving, with the history
        graph, run.thread = graph_of(None), ""
    if run.is_resumed and state and state.get("question") == run.question.text:
        run.restore_usage(UsageSnapshot(**state["spent"]) if state.get("spent") else UsageSnapshot())
        return PreparedGraph(graph, None)
    graph_input = {"question": run.question.text, **(await extra_input(run, graph) if extra_input else {})}
    if not state or not state.get("messages"):
        graph_input["messages"] = messages_of(run.history)
    elif state.get("summary") and run.question.options.memory_scope.verbatim:  # restore what was summarised
        restored = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages_of(run.history)]
        graph_input |= {"messages": restored, "summary": ""}
    return PreparedGraph(graph, graph_input)


def end_without_answer(update: Mapping[str, Any], notice: Notice, **detail: Any) -> Result:
    """Return the result of a step that ends the question because the pages don't answer it."""
    return {**update, **end_update("not_in_pages", notice)}, step_note(notice.code, **detail)


def select_cited(passages: Sequence[Passage], citations: Sequence[Citation]) -> list[Passage]:
    cited = [(citation.url_hash, citation.start) for citation in citations]
    return [one for one in passages if any(url == one.url_hash and one.start <= at < one.end for url, at in cited)]


async def check_text_so_far(run: Run) -> dict[str, Any]:
    """Return the result of a run interrupted while writing: its complete sentences, checked against its passages; {} if
    there are none."""
    text = trim_to_sentences(run.text)
    if not text:
        return {}
    passages = [passage_of(data) for data in run.state.get("passages", ())]
    result = (await asyncio.to_thread(Check, text, passages)).result()
    return {**result.plain(), "outcome": "caveat" if result.text else "failed"}


async def check_quotes(quotes: AsyncIterator[str], passages: Sequence[Passage]) -> dict[str, Any]:
    """Check quotes of the passages, and return them as the result of a run interrupted before it wrote."""
    text = "".join([piece async for piece in quotes])
    result = (await asyncio.to_thread(Check, text, passages)).result()
    records = [asdict(passage) for passage in passages]
    return {**result.plain(), "passages": records, "outcome": "caveat" if result.text else "failed"}


def require_quoter(run: Run) -> ExtractiveReasoner:
    """Return the run's quoter, which answers if there is no model or it fails. Raises TypeError if the run has none."""
    quoter = run.quoter if isinstance(run.quoter, ExtractiveReasoner) else run.reasoner
    if not isinstance(quoter, ExtractiveReasoner):
        raise TypeError("this mode needs an ExtractiveReasoner that quotes, besides the reasoner that writes")
    return quoter


def deadline(run: Run) -> float:
    """Return the working time in seconds after which a run only writes: up to three quarters of the user's limit."""
    return min(STEP_SECONDS, 0.75 * run.options.seconds) if run.options.seconds else STEP_SECONDS


def time_left(run: Run) -> float:
    """Return the seconds left for starting steps and for their model calls."""
    return deadline(run) - run.seconds()


def limit_reached(run: Run, searches_left: int) -> str:
    """Return why no more steps may start, or ""."""
    budget = run.budget
    if run.chat is not None and budget.remaining <= CALLS_RESERVED and budget.limit > CALLS_RESERVED:
        return "budget_tokens" if budget.used + CALLS_RESERVED < budget.limit else "budget_calls"
    if time_left(run) <= 0:
        return "budget_seconds"
    return "" if searches_left else "budget_searches"


def searches_left(run: Run, searches: int, limit_by_model: int) -> int:
    """Return how many more searches the options allow, by default up to the limit for a model or that for rules."""
    default = limit_by_model if run.chat is not None else SEARCHES_BY_RULES
    return max(0, (run.options.searches or default) - searches)


def usage(run: Run) -> dict[str, float]:
    """Return a run's usage for its state."""
    return asdict(run.budget.snapshot(run.seconds()))


def usage_fields(run: Run, seconds: float) -> dict[str, Any]:
    """Return a run's usage and limits for display."""
    budget = run.budget
    used = {"calls": budget.used, "tokens": budget.meter.tokens, "seconds": round(run.seconds(), 1)}
    return {"used": used, "most": {"calls": budget.limit, "tokens": budget.tokens or 0, "seconds": seconds}}
