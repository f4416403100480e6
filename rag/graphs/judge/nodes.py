"""The steps of the tree. Each returns what changes in the state, and what it decided, for the trace."""

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
from rag.graphs.judge.state import NodeRecord, Status, TreeContext, TreeState, fresh
from rag.graphs.judge.tree import answers, grow, next_levels, rows_of
from rag.runs.serialization import record, step_note
from rag.store.sql.conversation_table import Change
from rag.text import normal
from rag.types import Notice

log = logging.getLogger(__name__)

_SAME: Final = 0.97
"""Questions whose vectors have at least this cosine ask the same. At .92 one in forty of a question of MuSiQue and a
part of it did, as "when" and "where" of one thing do; from .97 on, none."""

Running = Runtime[TreeContext]
CALLS_KEPT: Final = 2
"""For writing, and for the check."""


async def enter(state: TreeState, runtime: Running) -> Result:
    """Begin a question, or go on from an earlier tree: nothing else of what was before stays but the conversation."""
    begun = state.get("begun") or {}
    update = fresh(state["question"].strip(), begun)
    if end := check_question(update):
        return end
    update, detail = await start_turn(update, {} if begun else state, runtime, CALLS_KEPT)
    root, *others = update["nodes"].value
    return {
        **update,
        "nodes": Overwrite([{**root, "question": root["question"] or question_of(update)}, *others]),
    }, detail


async def pick(state: TreeState, runtime: Running) -> Result:
    """Ask on for what passages lack, and choose the levels that begin now; none where the question is answered."""
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    stop = _stopped(state, context, changes)
    nodes: Sequence[NodeRecord] = state["nodes"]
    if not stop:
        nodes = await asyncio.to_thread(grow, nodes, context.limits, partial(_same, context))
    chosen = [] if stop else next_levels(nodes, context.options.tree_order, _room(state, context))
    begun = {node["id"] for node in chosen}
    status: Status = "open" if chosen else "cut"
    nodes = [
        {**node, "status": "running" if node["id"] in begun else status} if node["status"] == "open" else node
        for node in nodes
    ]
    update: dict[str, Any] = {"nodes": Overwrite(nodes), "spent": _spent(context)}
    if not chosen:
        code = stop or ("complete" if "n1" in answers(nodes) else "all_asked")
        update["stop"] = record(Notice(f"judge_{code}"))
    tell(runtime, nodes, state)
    return update, step_note(
        "picked", steps=[node["question"] for node in chosen], **({"reason": stop} if stop else {})
    )


def _stopped(state: TreeState, context: TreeContext, changes: Sequence[Change]) -> str:
    """Why no further level may begin; empty while one may. Rules are not so sure of a verdict that they end there."""
    if context.model is not None and "n1" in answers(state["nodes"]):
        return "complete"
    return "stopped_by_person" if any(one.kind == "finish" for one in changes) else limit_reached(state, context)


def _room(state: TreeState, context: TreeContext) -> int:
    """How many levels may begin side by side, so that the calls that are left are enough for each."""
    most = min(context.limits.at_once, searches_left(state, context))
    if context.model is None:
        return most
    return min(most, max(1, (context.budget.left - CALLS_KEPT) // calls_a_level(context)))


def calls_a_level(context: TreeContext) -> int:
    return context.limits.judged if context.options.judge_each else 1


def _same(context: TreeContext, question: str, others: Sequence[str]) -> int:
    """The place of the question that asks the same, in the same words or nearly the same meaning; -1 for none."""
    words = normal(question)
    for place, other in enumerate(others):
        if normal(other) == words:
            return place
    if context.vector is None or not others:
        return -1
    try:
        own = context.vector(question)
        cosines = [float(own @ context.vector(other)) for other in others]
    except ModelError:  # its service is away
        return -1
    best = max(range(len(cosines)), key=cosines.__getitem__)
    return best if cosines[best] >= _SAME else -1


def _spent(context: TreeContext) -> dict[str, float]:
    return asdict(context.budget.spent(context.seconds()))


def tell(runtime: Running, nodes: Sequence[NodeRecord], state: TreeState) -> None:
    """The tree as it is now, and what the run has used, for whoever watches."""
    rows = list(rows_of("", nodes, state["ledger"]))
    context = runtime.context
    runtime.stream_writer({"tree": {"rows": rows, **usage_fields(context, context.limits.seconds)}})


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
