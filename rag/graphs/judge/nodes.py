"""The steps of the tree. Each returns a state update, and its decision for the trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from rag.errors import ModelError
from rag.graphs.common import Result, check_question, question_of, start_turn, usage_fields
from rag.graphs.judge.state import NodeRecord, Status, TreeContext, TreeState, blank_state
from rag.graphs.judge.tree import find_answers, grow, next_levels, rows_of
from rag.runs.serialization import record, step_note
from rag.store.sql.conversation_table import Change
from rag.text import unique_terms
from rag.types import Notice

log = logging.getLogger(__name__)

_SAME_QUESTION: Final = 0.97
"""Minimum cosine of the vectors of two questions that ask the same. At .92, one in forty questions of MuSiQue reached
it with a part of itself, as "when" and "where" of one thing do; from .97 on, none did."""

Running = Runtime[TreeContext]
CALLS_RESERVED: Final = 2
"""For writing, and for the check."""


async def enter(state: TreeState, runtime: Running) -> Result:
    """Start a question, or continue an earlier tree; else only the conversation of the earlier state stays."""
    earlier = state.get("begun") or {}
    update = blank_state(state["question"].strip(), earlier)
    if end := check_question(update):
        return end
    update, detail = await start_turn(update, {} if earlier else state, runtime, CALLS_RESERVED)
    root, *others = update["nodes"].value
    return {
        **update,
        "nodes": Overwrite([{**root, "question": root["question"] or question_of(update)}, *others]),
    }, detail


async def pick(state: TreeState, runtime: Running) -> Result:
    """Ask for the gaps of passages, and choose the levels that start now; none if the question is answered."""
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    stop = _stop_reason(state, context, changes)
    nodes: Sequence[NodeRecord] = state["nodes"]
    if not stop:
        nodes = await asyncio.to_thread(grow, nodes, context.limits, partial(_find_same, context))
    levels = [] if stop else next_levels(nodes, context.options.tree_order, _free_slots(state, context))
    level_ids = {node["id"] for node in levels}
    status: Status = "open" if levels else "cut"
    nodes = [
        {**node, "status": "running" if node["id"] in level_ids else status} if node["status"] == "open" else node
        for node in nodes
    ]
    update: dict[str, Any] = {"nodes": Overwrite(nodes), "spent": _usage(context)}
    if not levels:
        code = stop or ("complete" if "n1" in find_answers(nodes) else "all_asked")
        update["stop"] = record(Notice(f"judge_{code}"))
    stream_tree(runtime, nodes, state)
    return update, step_note(
        "picked", steps=[node["question"] for node in levels], **({"reason": stop} if stop else {})
    )


def _stop_reason(state: TreeState, context: TreeContext, changes: Sequence[Change]) -> str:
    """Return why no more levels may start, or "". Verdicts of rules are too unsure to end the search."""
    if context.model is not None and "n1" in find_answers(state["nodes"]):
        return "complete"
    return "stopped_by_person" if any(one.kind == "finish" for one in changes) else limit_reached(state, context)


def _free_slots(state: TreeState, context: TreeContext) -> int:
    """Return how many levels may start in parallel, so that the remaining calls are enough for each."""
    limit = min(context.limits.at_once, searches_left(state, context))
    if context.model is None:
        return limit
    return min(limit, max(1, (context.budget.left - CALLS_RESERVED) // calls_per_level(context)))


def calls_per_level(context: TreeContext) -> int:
    return context.limits.judged if context.options.judge_each else 1


def _find_same(context: TreeContext, question: str, others: Sequence[str]) -> int:
    """Return the index of the question with the same words or nearly the same meaning; -1 for none."""
    words = unique_terms(question)
    for place, other in enumerate(others):
        if unique_terms(other) == words:
            return place
    if context.vector is None or not others:
        return -1
    try:
        own = context.vector(question)
        cosines = [float(own @ context.vector(other)) for other in others]
    except ModelError:  # its service is unavailable
        return -1
    best = max(range(len(cosines)), key=cosines.__getitem__)
    return best if cosines[best] >= _SAME_QUESTION else -1


def _usage(context: TreeContext) -> dict[str, float]:
    return asdict(context.budget.spent(context.seconds()))


def stream_tree(runtime: Running, nodes: Sequence[NodeRecord], state: TreeState) -> None:
    """Stream the tree and the run's usage, for display."""
    rows = list(rows_of("", nodes, state["ledger"]))
    context = runtime.context
    runtime.stream_writer({"tree": {"rows": rows, **usage_fields(context, context.limits.seconds)}})


def limit_reached(state: TreeState, context: TreeContext) -> str:
    """Return why no more levels may start, or ""."""
    budget = context.budget
    if context.model is not None and budget.left <= CALLS_RESERVED and budget.limit > CALLS_RESERVED:
        return "budget_tokens" if budget.used + CALLS_RESERVED < budget.limit else "budget_calls"
    if time_left(context) <= 0:
        return "budget_seconds"
    if not searches_left(state, context):
        return "budget_searches"
    return ""


def searches_left(state: TreeState, context: TreeContext) -> int:
    limits = context.limits
    default = limits.nodes if context.model is not None else limits.searches_by_rules
    return max(0, min(context.options.searches or default, limits.nodes) - state["searches"])


def time_left(context: TreeContext) -> float:
    """Return the seconds in which levels may start and be judged: at most three quarters of the person's time limit."""
    allowed = context.options.seconds
    limit = min(context.limits.seconds, 0.75 * allowed) if allowed else context.limits.seconds
    return limit - context.seconds()
