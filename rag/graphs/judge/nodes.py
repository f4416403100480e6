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

from rag.graphs.judge.limits import CALLS_KEPT, limit_reached, searches_left
from rag.graphs.judge.state import NodeRecord, Status, TreeContext, TreeState, fresh
from rag.graphs.judge.tree import answers, grown, next_levels, normal, rows_of
from rag.reasoning.messages import said
from rag.reasoning.questions import question_problem
from rag.runs.kept import decided, record
from rag.runs.nodes import Result, taken_up
from rag.store.sql.conversation_table import Change
from rag.types import Notice

log = logging.getLogger(__name__)

_SAME: Final = 0.97
"""Questions whose vectors have at least this cosine ask the same. At .92 one in forty of a question of MuSiQue and a
part of it did, as "when" and "where" of one thing do; from .97 on, none."""

Running = Runtime[TreeContext]


async def enter(state: TreeState, runtime: Running) -> Result:
    """Begin a question, or go on from an earlier tree: nothing else of what was before stays but the conversation."""
    question = state["question"].strip()
    update = fresh(question, state.get("begun") or {})
    if problem := question_problem(question):
        return {**update, "outcome": "failed", "notice": record(problem)}, decided("refused", reason=problem.code)
    context = runtime.context
    given, before = " ".join(context.options.standalone.split()), {} if state.get("begun") else state
    standalone, remembered = await taken_up(given, before, context, CALLS_KEPT)
    if standalone and standalone != question:
        runtime.stream_writer({"standalone": standalone})
        update["standalone"] = standalone
    nodes = update["nodes"].value
    nodes = [{**nodes[0], "question": nodes[0]["question"] or standalone or question}, *nodes[1:]]
    messages = [*remembered["messages"], said(question, standalone)]
    update |= remembered | {"messages": messages, "nodes": Overwrite(nodes)}
    return update, decided("begin")


async def pick(state: TreeState, runtime: Running) -> Result:
    """Ask on for what passages lack, and choose the levels that begin now; none where the question is answered."""
    context = runtime.context
    changes = await asyncio.to_thread(context.changes)
    stop = _stopped(state, context, changes)
    nodes: Sequence[NodeRecord] = state["nodes"]
    if not stop:
        nodes = await asyncio.to_thread(grown, nodes, context.limits, partial(_same, context))
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
    return update, decided("picked", steps=[node["question"] for node in chosen], **({"reason": stop} if stop else {}))


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
    own = context.vector(question)
    cosines = [float(own @ context.vector(other)) for other in others]
    best = max(range(len(cosines)), key=cosines.__getitem__)
    return best if cosines[best] >= _SAME else -1


def _spent(context: TreeContext) -> dict[str, float]:
    return asdict(context.budget.spent(context.seconds()))


def tell(runtime: Running, nodes: Sequence[NodeRecord], state: TreeState) -> None:
    """The tree as it is now, and what the run has used, for whoever watches."""
    budget, context = runtime.context.budget, runtime.context
    used = {"calls": budget.used, "tokens": budget.meter.tokens, "seconds": round(context.seconds(), 1)}
    most = {"calls": budget.limit, "tokens": budget.tokens or 0, "seconds": context.limits.seconds}
    rows = list(rows_of("", nodes, state["ledger"]))
    runtime.stream_writer({"tree": {"rows": rows, "used": used, "most": most}})
