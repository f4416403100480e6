"""The graphs of the answer loop, fast and deep, with the context of a run and the text of an interrupted one."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from rag.graphs.answer import nodes
from rag.graphs.answer.nodes import read_passages
from rag.graphs.answer.state import MAX_REWRITES, LoopContext, LoopState, is_long
from rag.graphs.common import prepare as prepare_graph
from rag.graphs.common import trace_step
from rag.reasoning.questions import is_about_conversation
from rag.runs.run import PreparedGraph, Run

Builder = StateGraph[LoopState, LoopContext, LoopState, LoopState]
Graph = CompiledStateGraph[LoopState, LoopContext, LoopState, LoopState]

_RECURSION_LIMIT = 24  # a deep run that rewrites three times takes 17 steps
__all__ = ["graph_of", "prepare", "read_passages", "remember"]


def build_fast(checkpointer: Any = None) -> Graph:
    """Build enter → agent → retrieve → generate: one model call, or two for a follow-up; no grading, one search."""
    builder = _start_builder()
    builder.add_conditional_edges("retrieve", after_fast_search, ["generate", END])
    return _compile(builder, checkpointer)


def build_deep(checkpointer: Any = None) -> Graph:
    """Build the fast graph with grading after the search, and up to three more searches in other words."""
    builder = _start_builder()
    _add_steps(builder, "grade", "rewrite")
    builder.add_conditional_edges("retrieve", after_deep_search, ["grade", "generate", END])
    builder.add_conditional_edges("grade", after_grade, ["generate", "rewrite", END])
    builder.add_conditional_edges("rewrite", after_rewrite, ["agent", "generate", END])
    return _compile(builder, checkpointer)


def _start_builder() -> Builder:
    builder = StateGraph(LoopState, context_schema=LoopContext)
    _add_steps(builder, "enter", "condense", "agent", "retrieve", "generate")
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", after_enter, ["condense", "agent", END])
    builder.add_edge("condense", "agent")
    builder.add_conditional_edges("agent", after_agent, ["retrieve", END])
    builder.add_edge("generate", END)
    return builder


def _add_steps(builder: Builder, *names: str) -> None:
    for name in names:
        builder.add_node(name, trace_step(name, getattr(nodes, name), stores=True))


def _compile(builder: Builder, checkpointer: Any) -> Graph:
    graph = builder.compile(checkpointer=checkpointer)
    return graph.with_config(recursion_limit=_RECURSION_LIMIT)


def after_enter(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["condense", "agent", "__end__"]:
    """Skip `condense` for a question that the person completed, the first one, and one about the conversation."""
    if state["outcome"]:
        return "__end__"
    if len(state["messages"]) < 2:
        return "agent"
    follows = not (state["standalone"] or is_about_conversation(state["question"]))
    return "condense" if follows or is_long(state, runtime.context.options.memory_scope) else "agent"


def after_agent(state: LoopState) -> Literal["retrieve", "__end__"]:
    """Search even if the model failed to decide; the passages are then quoted."""
    return "__end__" if state["outcome"] == "conversation" else "retrieve"


def after_fast_search(state: LoopState) -> Literal["generate", "__end__"]:
    return "__end__" if state["outcome"] else "generate"


def after_deep_search(state: LoopState) -> Literal["grade", "generate", "__end__"]:
    """Skip grading if the model failed."""
    if state["outcome"]:
        return "__end__"
    return "generate" if state["broken"] else "grade"


def after_grade(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["generate", "rewrite", "__end__"]:
    """Rewrite only while rewrites remain, and calls for the answer after it."""
    if state["outcome"]:
        return "__end__"
    is_exhausted = state["loop_step"] >= MAX_REWRITES or runtime.context.budget.remaining < 2
    return "generate" if state["relevant"] or state["broken"] or is_exhausted else "rewrite"


def after_rewrite(state: LoopState) -> Literal["agent", "generate", "__end__"]:
    if state["outcome"]:
        return "__end__"
    return "generate" if state["exhausted"] or state["broken"] else "agent"


@cache
def graph_of(mode: str, saver: Any = None) -> Graph:
    """Return the graph of `mode`, built on first use and shared by all runs; `saver` keeps its conversations."""
    return (build_deep if mode == "deep" else build_fast)(saver)


async def prepare(run: Run) -> PreparedGraph:
    async def extra_input(_: Any) -> dict[str, Any]:
        return {"run_mode": run.mode.name}

    return await prepare_graph(run, partial(graph_of, run.mode.name), _context, extra_input)


def _context(run: Run) -> LoopContext:
    cache = run.cache
    return LoopContext(
        reasoner=run.reasoner,
        search=cache.search,
        passages_of=cache.passages_of,
        budget=run.budget,
        answerable=cache.answerable,
        sure=cache.is_sure,
        fast=run.mode.name == "fast",
        condenser=run.condenser,
        quoter=run.quoter,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def remember(run: Run) -> None:
    """Add the text of an interrupted run to its conversation, which has only the question."""
    if not run.thread or run.saver is None or not run.text.strip():
        return
    graph, config = graph_of(run.mode.name, run.checkpointer()), run.config()
    snapshot = await graph.aget_state(config)
    if snapshot.values.get("question") == run.question.text.strip():
        await graph.aupdate_state(config, {"messages": [AIMessage(run.text)]}, as_node="generate")
