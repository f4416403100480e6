"""The last step of the loop, which writes the answer: composed as configured, or quoted if no model writes it.

The best available verifier checks it; rules do if it fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final, cast

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from rag.checking.citations import CheckedText, check_with
from rag.checking.statements import declines
from rag.errors import ModelError
from rag.graphs.answer.state import (
    MAX_PASSAGES,
    UNGRADED,
    LoopContext,
    LoopState,
    PassageRef,
    Result,
    read_passages,
    reference,
)
from rag.graphs.common import collect, question_of, stream_piece
from rag.models.usage import BUDGET_CODES
from rag.reasoning import RESET, Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import Plan, choose_plan, fitting_share
from rag.reasoning.history import exchanges_of
from rag.reasoning.questions import is_third_language
from rag.retrieval.answerable import (
    CAVEAT_THRESHOLD,
    IMPROBABLE,
    MIN_ANSWERED,
    REFUSAL_THRESHOLD,
    SURE_THRESHOLD,
    combine_odds,
)
from rag.runs.serialization import notice_of, record, step_note
from rag.text import strip_citations, terms
from rag.types import Citation, Notice, Passage, because

_WriteResult = tuple[str, ModelError | None, Notice | None]
_TOO_LONG: Final = "answer_too_long"
"""The code of a reply that hit the model's length limit; its text is usable."""


async def generate(state: LoopState, runtime: Runtime[LoopContext]) -> Result:
    """Write the answer from the passages, or from the best of all searches if none passed grading."""
    is_unsure = state["run_mode"] == "deep" and not state["relevant"]
    refs = _select_best(state["found"]) if is_unsure else state["passages"]
    context, question = runtime.context, question_of(state)
    passages = _skip_quoted(await read_passages(refs, context.passages_of), state, context)
    update: LoopState = {"passages": [reference(passage) for passage in passages]}
    runtime.stream_writer({"passages": update["passages"]})
    if not passages:
        return {**update, **_missing_state(state, Notice("nothing_found"))}, step_note("nothing_found", passages=0)
    likely, is_ungraded = context.answerable(), _is_ungraded(state)
    broken = notice_of(state["broken"])
    if likely < REFUSAL_THRESHOLD and broken:
        return {**update, **failure_state(broken)}, step_note("failed", reason=broken.code)
    may_decline = context.reasoner.kind == "chat" and state["run_mode"] == "fast"  # it says if there is no answer
    quote_odds = await _score_quotes(state, passages, context)
    is_missing = likely < REFUSAL_THRESHOLD and not may_decline and (is_ungraded or not state["relevant"])
    if is_missing or combine_odds(quote_odds, likely) < IMPROBABLE:
        return {**update, **_missing_state(state, Notice("not_in_pages"))}, step_note("not_in_pages", answerable=likely)
    pieces: list[str] = []
    composed, error, doubt = await _write(state, passages, runtime, pieces)
    checked = await _verify("".join(pieces), passages, question, context, ask=error is None and not doubt)
    is_complete = error is None or error.code == _TOO_LONG
    if is_complete and not doubt and context.reasoner.kind == "chat":
        doubt = _doubt_notice(checked, passages, likely)
        if doubt and await _quote(state, passages, runtime, pieces):
            composed, checked = "quoted", await _verify("".join(pieces), passages, question, context, ask=False)
        else:
            doubt = None
    text, citations = checked.text, checked.citations
    update |= _caveat_state(doubt) if doubt and text else end_state(state, text, citations, error, is_unsure, likely)
    if is_ungraded and update["outcome"] == "answered":
        update |= _caveat_state(Notice(UNGRADED))
    if update["outcome"] == "answered" and quote_odds < MIN_ANSWERED:
        update |= _caveat_state(Notice("closest"))
    if update["outcome"] == "answered" and (names := await _missing_names(state, passages, citations, context)):
        update |= _caveat_state(Notice("not_named", {"names": " · ".join(names)}))
    update |= cast(LoopState, checked.plain())
    if text:
        update["messages"] = [AIMessage(text)]
    update["composed"] = composed
    detail = step_note(
        str(update["outcome"]), passages=len(passages), citations=len(citations), answerable=likely, way=composed
    )
    return update, detail | ({"reason": error.code} if error else {})


def _skip_quoted(passages: list[Passage], state: LoopState, context: LoopContext) -> list[Passage]:
    """Return the passages that no earlier answer to the same question quotes, or all if none is left.

    A chat model always gets all of them.
    """
    again = state["standalone"] if context.reasoner.kind != "chat" else ""
    answers = [one.answer for one in exchanges_of(state["messages"]) if again and one.effective_question == again]
    quotes = ["".join(terms(quote)) for answer in answers for quote in strip_citations(answer).split("\n\n")]
    texts = {passage.id: "".join(terms(passage.text)) for passage in passages} if quotes else {}
    return [one for one in passages if not any(quote and quote in texts[one.id] for quote in quotes)] or passages


async def _score_quotes(state: LoopState, passages: Sequence[Passage], context: LoopContext) -> float:
    """Return the probability that the quoted sentences answer, if the answer is quotes; else 1."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return 1.0
    return await asyncio.to_thread(context.quoter.answer_probability, question_of(state), passages)


async def _missing_names(
    state: LoopState, passages: Sequence[Passage], citations: Sequence[Citation], context: LoopContext
) -> list[str]:
    """Return the question's names that no cited passage has, if the answer is quotes."""
    if context.quoter is None or context.reasoner.kind == "chat":
        return []
    cited = [(citation.url_hash, citation.start) for citation in citations]
    quoted = [one for one in passages if any(url == one.url_hash and one.start <= at < one.end for url, at in cited)]
    return await asyncio.to_thread(context.quoter.find_missing_names, question_of(state), quoted)


def _is_ungraded(state: LoopState) -> bool:
    gradings = [step["detail"].get("decision") for step in state["steps"] if step["node"] == "grade"]
    return gradings[-1:] == [UNGRADED]


def _select_best(refs: Sequence[PassageRef]) -> list[PassageRef]:
    return sorted(refs, key=lambda ref: -ref["score"])[:MAX_PASSAGES]


async def _verify(
    text: str, passages: Sequence[Passage], question: str, context: LoopContext, *, ask: bool = True
) -> CheckedText:
    """Check the statements of `text`: by rules without `ask`, or if no verifier works.

    The chat model does not check a fast answer, which takes only one call.
    """
    verifiers = [one for one in context.verifiers if ask and not (context.is_fast and one.verifier_kind == "model")]
    return (await check_with(text, passages, verifiers, question, context.options.context_tokens)).result()


async def _write(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]
) -> _WriteResult:
    """Stream the answer and collect it in `pieces`, so that the text so far survives a failure.

    Returns how it was composed, the error that interrupted it, and the caveat of an answer that was quoted instead.
    """
    context = runtime.context
    question, deep = question_of(state), state["run_mode"] == "deep"
    calls = context.budget.remaining - bool(context.verifiers)  # one for the check
    tokens = context.options.context_tokens
    if isinstance(context.reasoner, ChatReasoner):
        with suppress(ModelError):  # the call for the answer will report the error
            tokens = await context.reasoner.fitting_tokens(tokens)
    plan = choose_plan(passages, context.options.compose, tokens, calls, deep=deep)
    context_passages = await _distill(question, passages, plan, context)
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
) -> _WriteResult | None:
    """Quote the passages' best sentences instead of an answer that a model failed to write or complete.

    Returns None if there are none, or if the model's text so far is better: it hit a length or budget limit.
    """
    is_over_budget = error.code in BUDGET_CODES
    if pieces and (is_over_budget or error.code == _TOO_LONG):
        return None
    if not await _quote(state, passages, runtime, pieces):
        return None
    if is_over_budget:
        return "quoted", None, Notice(f"quoted_{error.code}", error.notice.params)
    return "quoted", error, Notice("quoted_model_failed", because(error.code, **error.notice.params))


async def _quote(
    state: LoopState, passages: Sequence[Passage], runtime: Runtime[LoopContext], pieces: list[str]
) -> bool:
    """Replace `pieces` with the best sentences of the passages; return False if there are none."""
    quoter = runtime.context.quoter
    if quoter is None:
        return False
    quotes = [piece async for piece in quoter.answer(question_of(state), passages)]
    for piece in [*([RESET] if pieces and quotes else []), *quotes]:
        stream_piece(piece, runtime, pieces)
    return bool(quotes)


def _doubt_notice(checked: CheckedText, passages: Sequence[Passage], likely: float) -> Notice | None:
    """Return a notice if quotes are better than the model's text: it is unsupported, only names pages or headings, or
    says that nothing was found although the search is sure of an answer."""
    if checked.citations and not _has_only_names(checked.text, passages):
        return None
    if not checked.text.strip() or declines(checked.text):
        return Notice("quoted_not_found") if likely >= SURE_THRESHOLD else None
    return Notice("quoted_unsupported") if likely >= CAVEAT_THRESHOLD else None


def _has_only_names(text: str, passages: Sequence[Passage]) -> bool:
    names = " ".join(name for one in passages for name in (one.title, *one.section))
    return set(terms(strip_citations(text))) <= set(terms(names))


async def _distill(question: str, passages: Sequence[Passage], plan: Plan, context: LoopContext) -> Sequence[Passage]:
    """Return the passages, reduced to their relevant sentences if that was requested or they do not fit."""
    choice, fits = context.options.distill, fitting_share(passages, plan.passage_tokens)
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
    """Return the outcome, with a notice that explains it where necessary."""
    if error and not (error.code == _TOO_LONG and text):
        return failure_state(error.notice)
    if not text.strip() or (not citations and (likely < CAVEAT_THRESHOLD or declines(text))):
        return _missing_state(state, Notice("not_in_pages"))
    if error:
        return _caveat_state(error.notice)
    if not citations:
        return _caveat_state(Notice("no_citations"))
    if is_unsure and any(step["detail"].get("decision") in BUDGET_CODES for step in state["steps"]):
        return _caveat_state(Notice("budget_best", {"searches": len(state["tried"])}))
    if is_unsure:
        return _caveat_state(Notice("best_found", {"searches": len(state["tried"])}))
    if likely < CAVEAT_THRESHOLD:
        return _caveat_state(Notice("in_doubt"))
    notice = Notice("question_language") if is_third_language(state["question"]) else None
    return {"outcome": "answered", "notice": record(notice) if notice else None}


def _missing_state(state: LoopState, notice: Notice) -> LoopState:
    if is_third_language(state["question"]):
        notice = Notice("not_in_pages_language")
    return {"outcome": "not_in_pages", "notice": record(notice)}


def _caveat_state(notice: Notice) -> LoopState:
    return {"outcome": "caveat", "notice": record(notice)}


def failure_state(notice: Notice) -> LoopState:
    return {"outcome": "failed", "notice": record(notice)}
