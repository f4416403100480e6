"""How a question ends, and how a step says what it decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from rag.agent.loop.state import LoopState, record
from rag.agent.questions import is_third_language
from rag.agent.usage import BUDGET_CODES
from rag.errors import ModelError
from rag.retrieval.answerable import DOUBT
from rag.types import Citation, Notice

_SHORTENED: Final = "answer_too_long"  # the model's own limit: what it wrote is whole up to there

_DECLINES = re.compile(
    r"\b(?:do|does|did) not (?:contain|mention|hold|say|provide|include|cover|answer|specify|give)"
    r"|\b(?:don't|doesn't) (?:contain|mention|hold|say|provide|include|cover|answer|specify|give)"
    r"|\bno (?:information|answer|mention)\b|\b(?:cannot|can't|could not|unable to) (?:find|answer|be found)"
    r"|(?:没有|未|并未)(?:提到|提及|包含|涉及|说明|找到|给出|提供|相关)|无法(?:回答|找到|确定|得知)|找不到|不包含|不涉及",
    re.IGNORECASE,
)


def judged(
    state: LoopState,
    text: str,
    citations: Sequence[Citation],
    error: ModelError | None,
    unsure: bool,
    likely: float,
) -> LoopState:
    """Say how the question ended, and why it did not end simply well."""
    if error and not (error.code == _SHORTENED and text):
        return failed(error.notice)
    if not text.strip() or (not citations and _DECLINES.search(text)):
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
