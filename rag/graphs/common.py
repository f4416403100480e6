"""What several graphs do alike: they take up a conversation, are timed, ask a model before the rules, and stream."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from rag.background import PACE
from rag.checking.citations import Check
from rag.errors import ModelError
from rag.models.usage import BUDGET_CODES, CallBudget, Spent
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.history import (
    HISTORY_TOKENS,
    MAX_STANDALONE,
    Memory,
    completes,
    exchanges_of,
    messages_of,
    said,
    summary_by_rules,
    turns_of,
)
from rag.reasoning.questions import question_problem
from rag.reasoning.reasoner import RESET
from rag.runs.run import PreparedGraph, Run, saved_state
from rag.runs.serialization import NoticeRecord, ending, notice_of, passage_of, record, step_note
from rag.text import whole_sentences
from rag.tracing import span
from rag.types import Exchange, Notice, Outcome, because

log = logging.getLogger(__name__)

Result = tuple[dict[str, Any], dict[str, Any]]
"""What changes in a state, and what was decided, for the trace."""
Said = TypeVar("Said")


class Conversing(TypedDict, total=False):
    """What a state of any mode keeps: the conversation, the question as it was understood, and how it ended."""

    messages: Annotated[list[AnyMessage], add_messages]
    summary: str
    question: str
    standalone: str
    text: str
    citations: list[dict[str, Any]]
    statements: list[dict[str, Any]]
    outcome: Outcome | None
    notice: NoticeRecord | None


def blank_fields(question: str) -> Conversing:
    """The fields of a question that nothing is known about yet."""
    return {
        "question": question,
        "standalone": "",
        "text": "",
        "citations": [],
        "statements": [],
        "outcome": None,
        "notice": None,
    }


def question_of(state: Mapping[str, Any]) -> str:
    """The question as it is searched for and answered."""
    return str(state.get("standalone") or state["question"])


def traced_step(
    name: str, function: Callable[[Any, Any], Awaitable[Result]]
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Wrap a step so that it is a span, with its decision, and that is streamed."""

    async def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        runtime.stream_writer({"step": {"node": name, "state": "started"}})
        with span(name, "node") as done:
            update, detail = await function(state, runtime)
            done.attributes.update(detail)
        shown = {"node": name, "ms": done.ms, "detail": done.attributes}
        runtime.stream_writer({"step": {**shown, "state": "finished"}})
        return update

    return node


async def model_or_rules(
    seconds: float, model: Callable[[], Awaitable[Said]] | None, rules: Callable[[], Awaitable[Said]]
) -> tuple[Said, list[NoticeRecord]]:
    """What the model says within so many seconds; where there is none, it fails or is slow, the rules, with a note."""
    if model is None:
        return await rules(), []
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await model(), []
    except (ModelError, TimeoutError) as error:
        notice = error.notice if isinstance(error, ModelError) else Notice("research_model_slow")
        log.info("rules take a step of the model (%s)", notice.code)
        return await rules(), [record(notice)]


def rules_notice(notes: Sequence[NoticeRecord]) -> Notice | None:
    """Why rules took the model's place in some of a run's steps, if they did; `notes` may tell of the web, too."""
    failed = next((notice_of(note) for note in notes if not note["code"].startswith("research_web")), None)
    return Notice("partly_by_rules", because(failed.code, **failed.params)) if failed else None


async def collect(source: AsyncIterator[str], runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream a text, and keep its pieces: what came before a failure is not lost.

    While many texts are streamed, several pieces are handed on as one.
    """
    held, since = "", 0.0
    with PACE.text():
        try:
            async for piece in source:
                if piece == RESET:
                    stream_piece(piece, runtime, pieces)
                    held = ""
                elif piece:
                    pieces.append(piece)
                    held += piece
                if held and time.monotonic() - since >= PACE.pause:
                    runtime.stream_writer({"token": held})
                    held, since = "", time.monotonic()
        finally:
            if held:
                runtime.stream_writer({"token": held})


def stream_piece(piece: str, runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream one piece of a text, which may be RESET."""
    if piece == RESET:
        pieces.clear()
        runtime.stream_writer({"reset": True})
    elif piece:
        pieces.append(piece)
        runtime.stream_writer({"token": piece})


async def write_or_quote(
    model: AsyncIterator[str] | None, rules: AsyncIterator[str], runtime: Runtime[Any]
) -> tuple[str, Notice | None]:
    """What the model writes, or what the rules write where there is none or it does not come to its end; and why not.

    What was written up to a limit, the model's own or that of the run, stays.
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


async def complete(
    question: str,
    history: Sequence[Exchange],
    summary: str,
    condenser: ChatReasoner | None,
    budget: CallBudget,
    *,
    memory: Memory,
    keep: int,
) -> str:
    """A follow-up as a model completes it, with `keep` calls out of its reach; empty where none does."""
    if condenser is None or not (history or summary):
        return ""
    try:
        with budget.keeping(keep):
            standalone = await condenser.condense(question, memory.followed(history), summary)
    except ModelError as error:
        log.info("a follow-up is not completed (%s)", error.code)
        return ""
    standalone = " ".join(standalone.split())[:MAX_STANDALONE] or question
    if completes(standalone, question, [*history, Exchange("", summary)]):
        return standalone
    log.info("what a model made of a follow-up is no question about the same")
    return ""


async def start_turn(
    update: dict[str, Any], state: Mapping[str, Any], runtime: Runtime[Any], keep: int, *, aside: bool = False
) -> Result:
    """Begin a question whose fields are `update`: nothing else stays of what was before but the conversation.

    It is completed by what `state` knows of that, with `keep` calls out of reach. An `aside` asks nothing of pages.
    """
    context = runtime.context
    question = update["question"]
    given = " ".join(context.options.standalone.split())
    standalone, remembered = await _resolve_followup(question, given, state, context, keep)
    if standalone and standalone != question:
        runtime.stream_writer({"standalone": standalone})
        update["standalone"] = standalone
    messages = [*remembered["messages"], said(question, standalone, aside=aside)]
    return {**update, **remembered, "messages": messages}, step_note("begin")


def refusal(update: Mapping[str, Any]) -> Result | None:
    """The end of a question that cannot be asked."""
    if problem := question_problem(update["question"]):
        return {**update, **ending("failed", problem)}, step_note("refused", reason=problem.code)
    return None


async def _resolve_followup(
    question: str, given: str, state: Mapping[str, Any], context: Any, keep: int
) -> tuple[str, dict[str, Any]]:
    """The question as it was `given`, or else as a model completes it, and what changes in what is remembered.

    Where no model completes it, nothing is summed up for it.
    """
    condenser, memory, messages = context.condenser, context.options.remembers, state.get("messages", [])
    if given or condenser is None or not messages:
        return given, {"messages": []}
    summary, removed = await summarise(messages, state.get("summary", ""), condenser, context.budget, memory, keep)
    history = exchanges_of(messages[len(removed) :])
    standalone = await complete(question, history, summary, condenser, context.budget, memory=memory, keep=keep)
    return standalone, {"summary": summary, "messages": removed}


async def summarise(
    messages: Sequence[AnyMessage],
    before: str,
    condenser: ChatReasoner | None,
    budget: CallBudget,
    memory: Memory,
    keep: int,
) -> tuple[str, list[Any]]:
    """The summary with the exchanges that go into it, and the removal of their messages."""
    turns = turns_of(messages)
    surplus = turns[: memory.summed_up([turn.exchange for turn in turns])]
    removed = [RemoveMessage(id=one.id) for turn in surplus for one in turn.messages if one.id]
    told = [turn.exchange for turn in surplus if turn.answered]
    if not told:
        return before, removed
    tokens, summary = HISTORY_TOKENS // 2, ""
    try:
        with budget.keeping(keep):
            if condenser is not None:
                summary = await condenser.summarise(before, told, tokens)
    except ModelError as error:
        log.info("a conversation is summed up by rules (%s)", error.code)
    return summary or summary_by_rules(before, told, tokens), removed


def initial_messages(run: Run, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """What goes into a graph of the conversation: all of it where the graph knows nothing, or a summary of what is to
    be shown as it was said; else nothing."""
    if not known or not known.get("messages"):
        return {"messages": messages_of(run.history)}
    if not (known.get("summary") and run.question.options.remembers.verbatim):
        return {}
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages_of(run.history)], "summary": ""}


async def prepare(
    run: Run,
    graph_of: Callable[..., Any],
    context: Callable[[Run], Any],
    given: Callable[[Any], Awaitable[dict[str, Any]]] | None = None,
) -> PreparedGraph:
    """The graph with what goes into it: the question, its history, and what is `given` beside them.

    Nothing goes into one that goes on from where its process was cut off.
    """
    graph = graph_of(run.checkpointer())
    known = await saved_state(run, graph)
    if known is None:  # the answer matters more than that it is kept: the history will do
        graph, run.thread = graph_of(), ""
    made = context(run)
    if run.is_resumed and known and known.get("question") == run.question.text:
        run.take_up(Spent(**known["spent"]) if known.get("spent") else Spent())
        return PreparedGraph(graph, None, made)
    more = await given(graph) if given else {}
    return PreparedGraph(graph, {"question": run.question.text, **more, **initial_messages(run, known)}, made)


async def check_text_so_far(run: Run) -> dict[str, Any]:
    """Return the result of a run that broke off while writing: its text up to the last whole sentence, checked against
    its passages; {} without such a sentence."""
    text = whole_sentences(run.text)
    if not text:
        return {}
    passages = [passage_of(kept) for kept in run.state.get("passages", ())]
    result = (await asyncio.to_thread(Check, text, passages)).result()
    return {**result.plain(), "outcome": "caveat" if result.text else "failed"}


def quoter_of(run: Run) -> ExtractiveReasoner:
    """What quotes where no model writes, or in its place."""
    quoter = run.quoter if isinstance(run.quoter, ExtractiveReasoner) else run.reasoner
    if not isinstance(quoter, ExtractiveReasoner):
        raise TypeError("this mode needs what quotes, beside what writes")
    return quoter


def usage_fields(context: Any, seconds: float) -> dict[str, Any]:
    """What a run has used, and what it may use, for whoever watches."""
    budget = context.budget
    used = {"calls": budget.used, "tokens": budget.meter.tokens, "seconds": round(context.seconds(), 1)}
    return {"used": used, "most": {"calls": budget.limit, "tokens": budget.tokens or 0, "seconds": seconds}}
