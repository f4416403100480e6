"""One level of the tree as a subgraph: search, judge each passage, and collect the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Literal

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from rag.errors import RagError
from rag.graphs.common import Result, model_or_rules, trace_step
from rag.graphs.judge.nodes import time_left
from rag.graphs.judge.state import (
    JudgeInput,
    JudgementRecord,
    LevelOutput,
    LevelState,
    NodeRecord,
    TreeContext,
)
from rag.reasoning.judge import Judgement
from rag.runs.serialization import passage_of, record, step_note
from rag.tracing import span
from rag.types import Passage

CALLS_PER_JUDGEMENT: Final = 2
"""A reply in the wrong format is requested a second time."""
_NS_END: Final = "|"

Running = Runtime[TreeContext]


def build() -> Any:
    """Build search → judge, all passages at once or each in its own request → close. It is a node of the tree."""
    builder = StateGraph(LevelState, context_schema=TreeContext, output_schema=LevelOutput)
    builder.add_node("search", trace_step("search", search))
    builder.add_node("judge", trace_step("judge", judge), input_schema=JudgeInput)
    builder.add_node("close", trace_step("close", close))
    builder.add_edge(START, "search")
    builder.add_conditional_edges("search", _after_search, ["judge", "close"])
    builder.add_edge("judge", "close")
    builder.add_edge("close", END)
    return builder.compile()


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


def _after_search(state: LevelState, runtime: Running) -> list[Send] | Literal["close"]:
    passages = state["passages"]
    one_by_one = runtime.context.options.judge_each and runtime.context.model is not None
    parts = [[passage] for passage in passages] if one_by_one else [passages] if passages else []
    share = state["allowed"] // max(1, len(parts))
    return [
        Send("judge", JudgeInput(node=state["node"], whole=state["whole"], allowed=share, passages=part))
        for part in parts
    ] or "close"


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
