"""How a question ends, and how a step says what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag.agent.citing.remarks import declines
from rag.agent.loop.state import LoopState, record
from rag.agent.loop.writing import SHORTENED
from rag.agent.questions import is_third_language
from rag.agent.usage import BUDGET_CODES
from rag.errors import ModelError
from rag.retrieval.answerable import DOUBT
from rag.types import Citation, Notice


def judged(
    state: LoopState,
    text: str,
    citations: Sequence[Citation],
    error: ModelError | None,
    unsure: bool,
    likely: float,
) -> LoopState:
    """Say how the question ended, and why it did not end simply well."""
    if error and not (error.code == SHORTENED and text):
        return failed(error.notice)
    if not text.strip() or (not citations and declines(text)):
        return missing(state, Notice("not_in_pages"))
    if error:
        return caveat(error.notice)
    if not citations:
        return caveat(Notice("no_citations"))
    if unsure and any(step["detail"].get("decision") in BUDGET_CODES for step in state["steps"]):
        return caveat(Notice("budget_best", {"searches": len(state["tried"])}))
    if unsure:
        return caveat(Notice("best_found", {"searches": len(state["tried"])}))
    if likely < DOUBT:
        return caveat(Notice("in_doubt"))
    other = Notice("question_language") if is_third_language(state["question"]) else None
    return {"outcome": "answered", "notice": record(other) if other else None}


def missing(state: LoopState, notice: Notice) -> LoopState:
    if is_third_language(state["question"]):
        notice = Notice("not_in_pages_language")
    return {"outcome": "not_in_pages", "notice": record(notice)}


def caveat(notice: Notice) -> LoopState:
    return {"outcome": "caveat", "notice": record(notice)}


def failed(notice: Notice) -> LoopState:
    return {"outcome": "failed", "notice": record(notice)}


def decided(decision: str, **detail: Any) -> dict[str, Any]:
    return {"decision": decision, **detail}
