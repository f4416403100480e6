"""The steps of the tree and of its levels. Each returns a state update, and its decision for the trace."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Literal

from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from rag.errors import ModelError, RagError
from rag.graphs.common import (
    CALLS_RESERVED,
    Result,
    check_question,
    limit_reached,
    model_or_rules,
    question_of,
    start_turn,
    time_left,
    usage,
    usage_fields,
)
from rag.graphs.judge.state import (
    JudgeInput,
    JudgementRecord,
    LevelState,
    NodeRecord,
    Status,
    TreeContext,
    TreeState,
    blank_state,
)
from rag.graphs.judge.tree import find_answers, grow, next_levels, rows_of
from rag.reasoning.judge import Judgement
from rag.runs.serialization import passage_of, record, step_note
from rag.store.sql.conversation_table import Change
from rag.text import unique_terms
from rag.tracing import span
from rag.types import Notice, Passage

log = logging.getLogger(__name__)

_SAME_QUESTION: Final = 0.97
"""Minimum cosine of the vectors of two questions that ask the same. At .92, one in forty questions of MuSiQue reached
it with a part of itself, as "when" and "where" of one thing do; from .97 on, none did."""

CALLS_PER_JUDGEMENT: Final = 2
"""A reply in the wrong format is requested a second time."""
_NS_END: Final = "|"

Running = Runtime[TreeContext]


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
    update: dict[str, Any] = {"nodes": Overwrite(nodes), "spent": usage(context)}
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
    if any(one.kind == "finish" for one in changes):
        return "stopped_by_person"
    return limit_reached(context, searches_left(state, context))


def _free_slots(state: TreeState, context: TreeContext) -> int:
    """Return how many levels may start in parallel, so that the remaining calls are enough for each."""
    limit = min(context.limits.at_once, searches_left(state, context))
    if context.model is None:
        return limit
    return min(limit, max(1, (context.budget.remaining - CALLS_RESERVED) // calls_per_level(context)))


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


def stream_tree(runtime: Running, nodes: Sequence[NodeRecord], state: TreeState) -> None:
    """Stream the tree and the run's usage, for display."""
    rows = list(rows_of("", nodes, state["ledger"]))
    context = runtime.context
    runtime.stream_writer({"tree": {"rows": rows, **usage_fields(context, context.limits.seconds)}})


def searches_left(state: TreeState, context: TreeContext) -> int:
    limits = context.limits
    default = limits.nodes if context.model is not None else limits.searches_by_rules
    return max(0, min(context.options.searches or default, limits.nodes) - state["searches"])


async def search(state: LevelState, runtime: Running) -> Result:
    """Search for the question. A failure is recorded, and doesn't affect other branches."""
    context, node, began = runtime.context, state["node"], time.perf_counter()
    try:
        results = await asyncio.to_thread(_find, node["question"], context)
    except RagError as error:
        failure: NodeRecord = {**node, "status": "failed", "failure": record(error.notice)}
        return {"node": failure, "searches": 1, "passages": []}, step_note("step_failed", reason=error.code)
    records = {result.id: asdict(result) for result in results}
    update = {
        "node": {**node, "found": list(records)},
        "ledger": records,
        "searches": 1,
        "passages": list(records.values())[: context.limits.judged],
        "ms": 1000 * (time.perf_counter() - began),
    }
    return update, step_note("found", queries=[node["question"]], passages=len(records))


def _find(question: str, context: TreeContext) -> Sequence[Passage]:
    limit = context.limits.recall
    with span("retrieve", "tool", query=question):
        return list(context.search(question, k=limit))[:limit]


async def judge(state: JudgeInput, runtime: Running) -> Result:
    """Judge the passages."""
    context, began = runtime.context, time.perf_counter()
    question, whole = state["node"]["question"], state["whole"]
    passages = [passage_of(data) for data in state["passages"]]
    model = partial(context.model.judge, question, whole, passages) if context.model else None
    before = context.budget.used
    with context.budget.share(state["allowed"]):
        judgements, notes = await model_or_rules(
            time_left(context), model, partial(context.rules.judge, question, whole, passages)
        )
    by: Literal["model", "rules"] = "rules" if model is None or notes else "model"
    verdicts = [_record(judgement, passage, by) for judgement, passage in zip(judgements, passages, strict=True)]
    ms = 1000 * (time.perf_counter() - began)
    update = {"verdicts": verdicts, "notes": notes, "ms": ms, "calls": min(1, context.budget.used - before)}
    scores = [verdict["score"] for verdict in verdicts]
    return update, step_note("judged", query=question, scores=scores, by=by)


def _record(judgement: Judgement, passage: Passage, by: Literal["model", "rules"]) -> JudgementRecord:
    return {**asdict(judgement), "passage": passage.id, "by": by}  # type: ignore[typeddict-item]


async def close(state: LevelState, _: Running) -> Result:
    """Return the finished level: its verdicts in the order of its passages, and where its state is."""
    node = state["node"]
    places = {key: place for place, key in enumerate(node.get("found", ()))}
    finished: NodeRecord = {
        **node,
        "judgements": sorted(state.get("verdicts", []), key=lambda one: places[one["passage"]]),
        "status": "failed" if node["status"] == "failed" else "done",
        "checkpoint": str(get_config()["configurable"].get("checkpoint_ns", "")).rpartition(_NS_END)[0],
        "calls": state.get("calls", 0),
        "ms": round(state.get("ms", 0.0), 1),
    }
    return {"nodes": [finished]}, step_note("closed", query=node["question"])
