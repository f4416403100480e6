"""Writes the answer of a step: in the way that was chosen, or quoted where the budget leaves no call for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from langgraph.runtime import Runtime

from rag.agent.composing.compose import Composer, Plan, plan_for, share_that_fits
from rag.agent.loop.state import LoopContext, LoopState, asked
from rag.agent.reasoner import RESET
from rag.agent.usage import BUDGET_CODES
from rag.errors import ModelError
from rag.types import Notice, Passage


async def write(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]
) -> tuple[str, ModelError | None, Notice | None]:
    """Collect the answer in `pieces` as it comes, so that what was written survives a failure.

    Returns the way it was composed, what broke it off, and the caveat of an answer that was quoted instead.
    """
    context = runtime.context
    question, deep = asked(state), state["run_mode"] == "deep"
    plan = plan_for(passages, context.options, context.budget.left, deep=deep)
    given = await distilled(question, passages, plan, context)
    try:
        await _collect(_source(question, given, plan, context), runtime, pieces)
    except ModelError as error:
        if error.code not in BUDGET_CODES or pieces or context.quoter is None:
            return plan.way, error, None
        await _collect(context.quoter.answer(question, passages), runtime, pieces)
        return "quoted", None, Notice(f"quoted_{error.code}", error.notice.params)
    return plan.way, None, None


async def distilled(question: str, passages: Sequence[Passage], plan: Plan, context: LoopContext) -> Sequence[Passage]:
    """The passages, or where that was chosen or they do not fit, their sentences that bear on the question."""
    wanted, fits = context.options.distill, share_that_fits(passages, plan.room)
    if context.quoter is None or context.reasoner.kind != "chat" or wanted is False:
        return passages
    if wanted is None and (plan.way != "stuff" or fits >= 1.0):
        return passages
    share = min(fits, 0.5 if wanted else 1.0)
    return await asyncio.to_thread(context.quoter.distilled, question, passages, share)


def _source(question: str, passages: Sequence[Passage], plan: Plan, context: LoopContext) -> AsyncIterator[str]:
    if isinstance(context.reasoner, Composer):
        return context.reasoner.compose(question, passages, plan)
    return context.reasoner.answer(question, passages)


async def _collect(source: AsyncIterator[str], runtime: Runtime[LoopContext], pieces: list[str]) -> None:
    async for piece in source:
        if piece == RESET:
            pieces.clear()
            runtime.stream_writer({"reset": True})
        elif piece:
            pieces.append(piece)
            runtime.stream_writer({"token": piece})
