"""Where a tree ends: what a run may use."""

from __future__ import annotations

from typing import Final

from rag.graphs.judge.state import TreeContext, TreeState

CALLS_KEPT: Final = 2
"""For writing, and for the check."""


def limit_reached(state: TreeState, context: TreeContext) -> str:
    """Why no further level may begin; empty while one may."""
    budget = context.budget
    if context.model is not None and budget.left <= CALLS_KEPT and budget.limit > CALLS_KEPT:
        return "budget_tokens" if budget.used + CALLS_KEPT < budget.limit else "budget_calls"
    if time_left(context) <= 0:
        return "budget_seconds"
    if not searches_left(state, context):
        return "budget_searches"
    return ""


def searches_left(state: TreeState, context: TreeContext) -> int:
    limits = context.limits
    most = limits.nodes if context.model is not None else limits.searches_by_rules
    return max(0, min(context.options.searches or most, limits.nodes) - state["searches"])


def time_left(context: TreeContext) -> float:
    """Seconds in which levels may still begin and be judged; three quarters of the time that a person allowed."""
    allowed = context.options.seconds
    most = min(context.limits.seconds, 0.75 * allowed) if allowed else context.limits.seconds
    return most - context.seconds()
