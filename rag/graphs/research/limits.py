"""The end of a research run: its limits, and searches that find nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rag.graphs.research.state import PastStep, ResearchContext, ResearchState

CALLS_PER_STEP: Final = 2
CALLS_RESERVED: Final = 2
"""For writing, and for one repair."""
_KNOWN_SHARE: Final = 0.8
"""A search found nothing new if this share of its first passages was known."""
_TOP: Final = 5
_STAGNANT_ROUNDS: Final = 2
"""The search ends after this many rounds without gain."""


def limit_reached(state: ResearchState, context: ResearchContext) -> str:
    """Return why no more steps may start, or ""."""
    limits, budget = context.limits, context.budget
    if context.model is not None and budget.left <= CALLS_RESERVED and budget.limit > CALLS_RESERVED:
        spent_tokens = budget.used + CALLS_RESERVED < budget.limit
        return "budget_tokens" if spent_tokens else "budget_calls"
    if context.seconds() >= deadline(context):
        return "budget_seconds"
    if not searches_left(state, context):
        return "budget_searches"
    if state["round"] >= limits.rounds:
        return "budget_rounds"
    return ""


def deadline(context: ResearchContext) -> float:
    """Return the seconds of the run after which it only writes: at most three quarters of the person's time limit."""
    allowed = context.options.seconds
    return min(context.limits.seconds, 0.75 * allowed) if allowed else context.limits.seconds


def time_left(context: ResearchContext) -> float:
    """Return the seconds that a model still has to answer a step."""
    return deadline(context) - context.seconds()


def searches_left(state: ResearchState, context: ResearchContext) -> int:
    limits = context.limits
    default = limits.searches if context.model is not None else limits.searches_by_rules
    return max(0, (context.options.searches or default) - state["searches"])


def stagnation(state: ResearchState, gains: Sequence[int], round_: Sequence[str], context: ResearchContext) -> str:
    """Return "stagnant" after two rounds that covered no new aspect, or a round whose searches found known passages.

    By rules, a name leads to the next even if no aspect mentions it; the planner notices when there is none.
    """
    if context.model is None:
        return ""
    without_gain = len(gains) >= _STAGNANT_ROUNDS and not any(gains[-_STAGNANT_ROUNDS:])
    nothing_new = bool(round_) and all(_found_before(state, step, round_) for step in round_)
    return "stagnant" if without_gain or nothing_new else ""


def _found_before(state: ResearchState, step_id: str, round_: Sequence[str]) -> bool:
    first = [entry for entry in state["ledger"].values() if entry["ranks"].get(step_id, _TOP) < _TOP]
    repeated = [entry for entry in first if entry["ranks"].keys() - set(round_)]
    return bool(first) and len(repeated) >= _KNOWN_SHARE * len(first)


def covered_aspects(past: Sequence[PastStep]) -> set[str]:
    return {aspect for past_step in past for aspect in past_step["met"]}
