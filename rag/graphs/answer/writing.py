"""Writing the answer: composed as configured, or quoted if no model writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from langgraph.runtime import Runtime

from rag.checking.citations import CheckedText
from rag.checking.statements import declines
from rag.errors import ModelError
from rag.graphs.answer.state import LoopContext, LoopState
from rag.graphs.common import collect, question_of, stream_piece
from rag.models.usage import BUDGET_CODES
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import Plan, choose_plan, fitting_share
from rag.reasoning.questions import is_third_language
from rag.reasoning.reasoner import RESET, Reasoner
from rag.retrieval.answerable import DOUBT, SURE
from rag.runs.serialization import notice_of, record
from rag.text import strip_citations, terms
from rag.types import Citation, Notice, Passage, because

Written = tuple[str, ModelError | None, Notice | None]
SHORTENED: Final = "answer_too_long"
"""The model's own limit; text up to there is usable."""


async def write(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]
) -> Written:
    """Collect the answer in `pieces` as it is streamed, so that a failure loses nothing written before it.

    Returns how it was composed, the error that interrupted it, and the caveat of an answer that was quoted instead.
    """
    context = runtime.context
    question, deep = question_of(state), state["run_mode"] == "deep"
    calls = context.budget.remaining - bool(context.verifiers)  # one for the check
    tokens = context.options.context_tokens
    if isinstance(context.reasoner, ChatReasoner):
        with suppress(ModelError):  # the call for the answer reports what is wrong
            tokens = await context.reasoner.room(tokens)
    plan = choose_plan(passages, context.options.compose, tokens, calls, deep=deep)
    context_passages = await distill(question, passages, plan, context)
    try:
        if broken := notice_of(state["broken"]):
            raise ModelError(broken.code, **broken.params)
        await collect(_stream_answer(question, context_passages, plan, context.reasoner), runtime, pieces)
    except ModelError as error:
        fallback = await _quote_instead(state, passages, runtime, pieces, error)
        return fallback or (plan.way, error, None)
    return plan.way, None, None


async def _quote_instead(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str], error: ModelError
) -> Written | None:
    """Return an answer of the passages' best sentences, in place of one that a model did not write or complete.

    None if there are none, or the model's text is worth more: it ended at its own limit, or that of the budget.
    """
    is_over_budget = error.code in BUDGET_CODES
    if pieces and (is_over_budget or error.code == SHORTENED):
        return None
    if not await quote(state, passages, runtime, pieces):
        return None
    if is_over_budget:
        return "quoted", None, Notice(f"quoted_{error.code}", error.notice.params)
    return "quoted", error, Notice("quoted_model_failed", because(error.code, **error.notice.params))


async def quote(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]
) -> bool:
    """Replace `pieces` by the best sentences of the passages; return False if there are none."""
    quoter = runtime.context.quoter
    if quoter is None:
        return False
    quotes = [piece async for piece in quoter.answer(question_of(state), passages)]
    for piece in [*([RESET] if pieces and quotes else []), *quotes]:
        stream_piece(piece, runtime, pieces)
    return bool(quotes)


def doubt_notice(checked: CheckedText, passages: Sequence[Passage], likely: float) -> Notice | None:
    """Return why quotes are better than the model's text: it has no support, only names pages or headings, or found
    nothing although the search is sure of an answer."""
    if checked.citations and not _has_only_names(checked.text, passages):
        return None
    if not checked.text.strip() or declines(checked.text):
        return Notice("quoted_not_found") if likely >= SURE else None
    return Notice("quoted_unsupported") if likely >= DOUBT else None


def _has_only_names(text: str, passages: Sequence[Passage]) -> bool:
    names = " ".join(name for one in passages for name in (one.title, *one.section))
    return set(terms(strip_citations(text))) <= set(terms(names))


async def distill(question: str, passages: Sequence[Passage], plan: Plan, context: LoopContext) -> Sequence[Passage]:
    """Return the passages, or only their relevant sentences if that was chosen or they do not fit."""
    choice, fits = context.options.distill, fitting_share(passages, plan.room)
    if context.quoter is None or context.reasoner.kind != "chat" or choice is False:
        return passages
    if choice is None and (plan.way != "stuff" or fits >= 1.0):
        return passages
    share = min(fits, 0.5 if choice else 1.0)
    return await asyncio.to_thread(context.quoter.distil, question, passages, share)


def _stream_answer(question: str, passages: Sequence[Passage], plan: Plan, reasoner: Reasoner) -> AsyncIterator[str]:
    if isinstance(reasoner, ChatReasoner):
        return reasoner.compose(question, passages, plan)
    return reasoner.answer(question, passages)


def end_state(
    state: LoopState,
    text: str,
    citations: Sequence[Citation],
    error: ModelError | None,
    is_unsure: bool,
    likely: float,
) -> LoopState:
    """Return the outcome, and why it is not simply "answered"."""
    if error and not (error.code == SHORTENED and text):
        return failure_state(error.notice)
    if not text.strip() or (not citations and (likely < DOUBT or declines(text))):
        return missing_state(state, Notice("not_in_pages"))
    if error:
        return caveat_state(error.notice)
    if not citations:
        return caveat_state(Notice("no_citations"))
    if is_unsure and any(step["detail"].get("decision") in BUDGET_CODES for step in state["steps"]):
        return caveat_state(Notice("budget_best", {"searches": len(state["tried"])}))
    if is_unsure:
        return caveat_state(Notice("best_found", {"searches": len(state["tried"])}))
    if likely < DOUBT:
        return caveat_state(Notice("in_doubt"))
    notice = Notice("question_language") if is_third_language(state["question"]) else None
    return {"outcome": "answered", "notice": record(notice) if notice else None}


def missing_state(state: LoopState, notice: Notice) -> LoopState:
    if is_third_language(state["question"]):
        notice = Notice("not_in_pages_language")
    return {"outcome": "not_in_pages", "notice": record(notice)}


def caveat_state(notice: Notice) -> LoopState:
    return {"outcome": "caveat", "notice": record(notice)}


def failure_state(notice: Notice) -> LoopState:
    return {"outcome": "failed", "notice": record(notice)}
