"""The graph of the tree: its edges, the context of a run, and the result of an interrupted one."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from rag.errors import RagError
from rag.graphs.common import CALLS_RESERVED, check_text_so_far, question_of, require_quoter, trace_step
from rag.graphs.common import prepare as prepare_graph
from rag.graphs.judge import nodes, writing
from rag.graphs.judge.state import JudgeInput, LevelOutput, LevelState, TreeContext, TreeState
from rag.graphs.judge.tree import branch, rows_of
from rag.graphs.judge.writing import quote_tree
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.judge import ChatJudge, RuleJudge
from rag.runs.run import PreparedGraph, Run

_RECURSION_LIMIT = 40  # twelve nodes, one after another, take two steps each


@cache
def graph_of(saver: Any = None) -> Any:
    """Build enter → pick → parallel levels → pick …, then write. A level is a subgraph; `saver` stores checkpoints."""
    builder = StateGraph(TreeState, context_schema=TreeContext)
    builder.add_node("enter", trace_step("enter", nodes.enter))
    builder.add_node("pick", trace_step("pick", nodes.pick))
    builder.add_node("level", _build_level())
    builder.add_node("write", trace_step("write", writing.write))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["pick", END])
    builder.add_conditional_edges("pick", _after_pick, ["level", "write"])
    builder.add_edge("level", "pick")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver).with_config(recursion_limit=_RECURSION_LIMIT)


def _build_level() -> Any:
    """Build search → judge, all passages at once or each in its own request → close. It is a node of the tree."""
    builder = StateGraph(LevelState, context_schema=TreeContext, output_schema=LevelOutput)
    builder.add_node("search", trace_step("search", nodes.search))
    builder.add_node("judge", trace_step("judge", nodes.judge), input_schema=JudgeInput)
    builder.add_node("close", trace_step("close", nodes.close))
    builder.add_edge(START, "search")
    builder.add_conditional_edges("search", _after_search, ["judge", "close"])
    builder.add_edge("judge", "close")
    builder.add_edge("close", END)
    return builder.compile()


def _after_enter(state: TreeState) -> Literal["pick", "__end__"]:
    return "__end__" if state["outcome"] else "pick"


def _after_pick(state: TreeState, runtime: Runtime[TreeContext]) -> list[Send] | Literal["write"]:
    """Send each level its share of the remaining calls, so that none uses up those of others or of the answer."""
    running = [node for node in state["nodes"] if node["status"] == "running"]
    if not running or state["stop"]:
        return "write"
    context = runtime.context
    share = max(0, context.budget.remaining - CALLS_RESERVED) // len(running)
    limit = nodes.CALLS_PER_JUDGEMENT * nodes.calls_per_level(context)
    return [Send("level", LevelState(node=one, whole=question_of(state), allowed=min(limit, share))) for one in running]


def _after_search(state: LevelState, runtime: Runtime[TreeContext]) -> list[Send] | Literal["close"]:
    passages = state["passages"]
    one_by_one = runtime.context.options.judge_each and runtime.context.model is not None
    parts = [[passage] for passage in passages] if one_by_one else [passages] if passages else []
    share = state["allowed"] // max(1, len(parts))
    return [
        Send("judge", JudgeInput(node=state["node"], whole=state["whole"], allowed=share, passages=part))
        for part in parts
    ] or "close"


async def prepare(run: Run) -> PreparedGraph:
    """Return the graph with its input. Raises RagError("tree_unknown") if the earlier tree is not stored any more."""
    return await prepare_graph(run, graph_of, _context, partial(_earlier_tree, run))


async def _earlier_tree(run: Run, graph: Any) -> dict[str, Any]:
    """Return the earlier tree with the person's changes, and its ledger, as `begun`; empty for none."""
    change = run.question.options.branch
    if not change:
        return {"begun": {}}
    config = {"thread_id": run.thread, "checkpoint_id": change["checkpoint"]}
    snapshot = await graph.aget_state({"configurable": config}) if run.thread and change["checkpoint"] else None
    if snapshot is None or not snapshot.values.get("nodes"):
        raise RagError("tree_unknown")
    return {"begun": {"nodes": branch(snapshot.values["nodes"], change), "ledger": snapshot.values["ledger"]}}


def _context(run: Run) -> TreeContext:
    cache, reasoner = run.cache, run.reasoner
    return TreeContext(
        search=cache.search,
        rules=RuleJudge(require_quoter(run)),
        budget=run.budget,
        seconds=run.seconds,
        changes=run.changes,
        reasoner=reasoner,
        model=ChatJudge(reasoner) if isinstance(reasoner, ChatReasoner) else None,
        vector=cache.retriever.vector,
        answerable=cache.answerable,
        condenser=run.condenser,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def rescue(run: Run) -> dict[str, Any]:
    """Return the last state of an interrupted run, with its text so far, or quotes from the results of its levels."""
    state: Any = run.state
    if result := await check_text_so_far(run):
        return {**state, **result}
    return {**state, **await quote_tree(state, _context(run))} if state.get("ledger") else run.state


def trail(run: Run) -> dict[str, Any]:
    """Return the data stored with the answer: the tree as rows, why it ended, and where its state is."""
    state = run.state
    rows = list(rows_of(run.id, state.get("nodes", ()), state.get("ledger", {})))
    fields = {key: state[key] for key in ("stop", "notes", "checkpoint") if state.get(key)}
    branch = run.question.options.branch
    return {"tree": rows, **fields, **({"branch": dict(branch)} if branch else {})}
