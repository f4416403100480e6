"""The tree put together: who follows whom."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from rag.graphs.judge import level, nodes, writing
from rag.graphs.judge.limits import CALLS_KEPT
from rag.graphs.judge.state import LevelState, TreeContext, TreeState, asked
from rag.runs.nodes import timed

_RECURSION_LIMIT = 40  # twelve nodes, one after another, take two steps each


def build(checkpointer: Any = None) -> Any:
    """enter → pick → levels side by side → pick …, then write. A level is a graph of its own."""
    builder = StateGraph(TreeState, context_schema=TreeContext)
    builder.add_node("enter", timed("enter", nodes.enter))
    builder.add_node("pick", timed("pick", nodes.pick))
    builder.add_node("level", level.build())
    builder.add_node("write", timed("write", writing.write))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["pick", END])
    builder.add_conditional_edges("pick", _after_pick, ["level", "write"])
    builder.add_edge("level", "pick")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=checkpointer).with_config(recursion_limit=_RECURSION_LIMIT)


@cache
def graph_of(saver: Any = None) -> Any:
    """The graph, built on first use and shared by all runs; `saver` keeps its checkpoints."""
    return build(saver)


def _after_enter(state: TreeState) -> Literal["pick", "__end__"]:
    return "__end__" if state["outcome"] else "pick"


def _after_pick(state: TreeState, runtime: Runtime[TreeContext]) -> list[Send] | Literal["write"]:
    """Each level with its share of the calls that are left: none can use up what the others or the answer need."""
    running = [node for node in state["nodes"] if node["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    context = runtime.context
    share = max(0, context.budget.left - CALLS_KEPT) // len(running)
    most = level.CALLS_A_JUDGEMENT * nodes.calls_a_level(context)
    return [Send("level", LevelState(node=one, whole=asked(state), allowed=min(most, share))) for one in running]
