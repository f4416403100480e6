"""What several graphs do alike: they take up a conversation, are timed, ask a model before the rules, and stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from langgraph.runtime import Runtime

from rag.errors import ModelError
from rag.reasoning.history import MAX_STANDALONE
from rag.reasoning.messages import exchanges_of, messages_of
from rag.reasoning.reasoner import RESET, Condenser
from rag.runs.kept import NoticeRecord, record
from rag.runs.run import Prepared, Run, values_kept
from rag.runs.usage import BUDGET_CODES, CallBudget, Spent
from rag.tracing import span
from rag.types import Notice

log = logging.getLogger(__name__)

Result = tuple[dict[str, Any], dict[str, Any]]
"""What changes in a state, and what was decided, for the trace."""
Said = TypeVar("Said")


def timed(name: str, function: Callable[[Any, Any], Awaitable[Result]]) -> Callable[..., Awaitable[dict[str, Any]]]:
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


async def either(
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


async def collect(source: AsyncIterator[str], runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream a text, and keep its pieces: what came before a failure is not lost."""
    async for piece in source:
        take(piece, runtime, pieces)


def take(piece: str, runtime: Runtime[Any], pieces: list[str]) -> None:
    """Stream one piece of a text, which may be RESET."""
    if piece == RESET:
        pieces.clear()
        runtime.stream_writer({"reset": True})
    elif piece:
        pieces.append(piece)
        runtime.stream_writer({"token": piece})


async def written(
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
                take(RESET, runtime, pieces)
    await collect(rules, runtime, pieces)
    return "".join(pieces), problem


async def completed(
    question: str, state: Mapping[str, Any], condenser: Condenser | None, budget: CallBudget, keep: int
) -> str:
    """A follow-up as a model completes it, with `keep` calls out of its reach; empty where none does."""
    history = exchanges_of(state.get("messages", []))
    if condenser is None or not history:
        return ""
    try:
        with budget.keeping(keep):
            standalone = await condenser.condense(question, history, state.get("summary", ""))
    except ModelError as error:
        log.info("a follow-up is not completed (%s)", error.code)
        return ""
    return " ".join(standalone.split())[:MAX_STANDALONE]


async def prepared(
    run: Run,
    graph_of: Callable[..., Any],
    context: Callable[[Run], Any],
    given: Callable[[Any], Awaitable[dict[str, Any]]],
) -> Prepared:
    """The graph with what goes into it: the question, its history, and what is `given` beside them.

    Nothing goes into one that goes on from where its process was cut off.
    """
    graph = graph_of(run.checkpointer())
    known = await values_kept(run, graph)
    if known is None:  # the answer matters more than that it is kept: the history will do
        graph, run.thread = graph_of(), ""
    made = context(run)
    if run.goes_on and known and known.get("question") == run.question.text:
        run.take_up(Spent(**known["spent"]) if known.get("spent") else Spent())
        return Prepared(graph, None, made)
    history = {} if known and known.get("messages") else {"messages": messages_of(run.history)}
    return Prepared(graph, {"question": run.question.text, **await given(graph), **history}, made)
