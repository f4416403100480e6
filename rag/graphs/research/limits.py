"""Where a run of research ends: what it may use, and when a search brings nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag.graphs.research.state import PastStep, ResearchContext, ResearchState

CALLS_A_STEP: Final = 2
CALLS_KEPT: Final = 2
"""For writing, and for one repair."""
_KNOWN: Final = 0.8
"""A search whose first passages are known to this share brought nothing new."""
_FIRST: Final = 5
_STAGNANT: Final = 2
"""Rounds without gain after which the search ends."""


def limit_reached(state: ResearchState, context: ResearchContext) -> str:
    """Why no further step may begin; empty while one may."""
    limits, budget = context.limits, context.budget
    if context.model is not None and budget.left <= CALLS_KEPT and budget.limit > CALLS_KEPT:
        spent_tokens = budget.used + CALLS_KEPT < budget.limit
        return "budget_tokens" if spent_tokens else "budget_calls"
    if context.seconds() >= deadline(context):
        return "budget_seconds"
    if not searches_left(state, context):
        return "budget_searches"
    if state["round"] >= limits.rounds:
        return "budget_rounds"
    return ""


def deadline(context: ResearchContext) -> float:
    """Seconds of the run after which it only writes; three quarters of the time that a person allowed."""
    allowed = context.options.seconds
    return min(context.limits.seconds, 0.75 * allowed) if allowed else context.limits.seconds


def time_left(context: ResearchContext) -> float:
    """Seconds in which a model may still answer a step."""
    return deadline(context) - context.seconds()


def searches_left(state: ResearchState, context: ResearchContext) -> int:
    limits = context.limits
    most = limits.searches if context.model is not None else limits.searches_by_rules
    return max(0, (context.options.searches or most) - state["searches"])


def stagnation(state: ResearchState, gains: Sequence[int], round_: Sequence[str], context: ResearchContext) -> str:
    """Two rounds that met no new aspect, or a round whose searches found what was known.

    By rules a name leads on to the next although no aspect tells of it: the planner knows when none is new.
    """
    if context.model is None:
        return ""
    without_gain = len(gains) >= _STAGNANT and not any(gains[-_STAGNANT:])
    known = bool(round_) and all(_known_before(state, step, round_) for step in round_)
    return "stagnant" if without_gain or known else ""


def _known_before(state: ResearchState, step_id: str, round_: Sequence[str]) -> bool:
    first = [entry for entry in state["ledger"].values() if entry["ranks"].get(step_id, _FIRST) < _FIRST]
    known = [entry for entry in first if entry["ranks"].keys() - set(round_)]
    return bool(first) and len(known) >= _KNOWN * len(first)


def met_in(past: Sequence[PastStep]) -> set[str]:
    return {aspect for one in past for aspect in one["met"]}
