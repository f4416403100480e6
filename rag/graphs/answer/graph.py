"""The loop put together: who follows whom, in fast and in deep mode.

And what a run of it is driven with, and leaves in its conversation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from rag.graphs.answer import nodes
from rag.graphs.answer.nodes import read_passages
from rag.graphs.answer.state import MAX_REWRITES, LoopContext, LoopState, StepRecord, is_long
from rag.graphs.common import prepare as driven
from rag.reasoning.questions import is_about_conversation
from rag.runs.run import PreparedGraph, Run
from rag.tracing import span

Graph = CompiledStateGraph[LoopState, LoopContext, LoopState, LoopState]
NodeFunction = Callable[[LoopState, Runtime[LoopContext]], Awaitable[nodes.Result]]

_RECURSION_LIMIT = 24  # a deep run that rewrites three times takes 17 steps
__all__ = ["graph_of", "prepare", "read_passages", "remember"]


def build_fast(checkpointer: Any = None) -> Graph:
    """enter → agent → retrieve → generate: one model call, or two for a follow-up; no judging, no second search."""
    builder = _begin()
    builder.add_conditional_edges("retrieve", after_fast_search, ["generate", END])
    return _compiled(builder, checkpointer)


def build_deep(checkpointer: Any = None) -> Graph:
    """As fast, with a look at what was found in between, and up to three searches in other words."""
    builder = _begin()
    builder.add_node("grade", traced_step("grade", nodes.grade))
    builder.add_node("rewrite", traced_step("rewrite", nodes.rewrite))
    builder.add_conditional_edges("retrieve", after_deep_search, ["grade", "generate", END])
    builder.add_conditional_edges("grade", after_grade, ["generate", "rewrite", END])
    builder.add_conditional_edges("rewrite", after_rewrite, ["agent", "generate", END])
    return _compiled(builder, checkpointer)


def _begin() -> StateGraph[LoopState, LoopContext, LoopState, LoopState]:
    builder = StateGraph(LoopState, context_schema=LoopContext)
    builder.add_node("enter", traced_step("enter", nodes.enter))
    builder.add_node("condense", traced_step("condense", nodes.condense))
    builder.add_node("agent", traced_step("agent", nodes.agent))
    builder.add_node("retrieve", traced_step("retrieve", nodes.retrieve))
    builder.add_node("generate", traced_step("generate", nodes.generate))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", after_enter, ["condense", "agent", END])
    builder.add_edge("condense", "agent")
    builder.add_conditional_edges("agent", after_agent, ["retrieve", END])
    builder.add_edge("generate", END)
    return builder


def _compiled(builder: StateGraph[LoopState, LoopContext, LoopState, LoopState], checkpointer: Any) -> Graph:
    graph = builder.compile(checkpointer=checkpointer)
    return graph.with_config(recursion_limit=_RECURSION_LIMIT)


def traced_step(name: str, function: NodeFunction) -> Callable[..., Awaitable[LoopState]]:
    """Wrap a step so that it is a span, with its decision, and that is streamed and kept."""

    async def node(state: LoopState, runtime: Runtime[LoopContext]) -> LoopState:
        runtime.stream_writer({"step": {"node": name, "state": "started"}})
        meter = runtime.context.budget.meter
        tokens = meter.tokens
        with span(name, "node") as done:
            update, detail = await function(state, runtime)
            done.attributes.update(detail)
            if spent := meter.tokens - tokens:
                done.attributes.update(tokens=spent, tokens_estimated=meter.estimated)
        step: StepRecord = {"node": name, "ms": done.ms, "detail": done.attributes}
        runtime.stream_writer({"step": {**step, "state": "finished"}})
        return {**update, "steps": [*update.get("steps", state.get("steps", [])), step]}

    return node


def after_enter(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["condense", "agent", "__end__"]:
    """A question that the person completed, the first of a conversation, and one about it need no completing."""
    if state["outcome"]:
        return "__end__"
    if len(state["messages"]) < 2:
        return "agent"
    follows = not (state["standalone"] or is_about_conversation(state["question"]))
    return "condense" if follows or is_long(state, runtime.context.options.remembers) else "agent"


def after_agent(state: LoopState) -> Literal["retrieve", "__end__"]:
    """A model that failed to decide still gets its question searched: the passages are quoted."""
    return "__end__" if state["outcome"] == "conversation" else "retrieve"


def after_fast_search(state: LoopState) -> Literal["generate", "__end__"]:
    return "__end__" if state["outcome"] else "generate"


def after_deep_search(state: LoopState) -> Literal["grade", "generate", "__end__"]:
    """A model that failed is not asked to judge."""
    if state["outcome"]:
        return "__end__"
    return "generate" if state["broken"] else "grade"


def after_grade(state: LoopState, runtime: Runtime[LoopContext]) -> Literal["generate", "rewrite", "__end__"]:
    """Rewrite only while rewrites are left and calls remain for the answer after it."""
    if state["outcome"]:
        return "__end__"
    spent = state["loop_step"] >= MAX_REWRITES or runtime.context.budget.left < 2
    return "generate" if state["relevant"] or state["broken"] or spent else "rewrite"


def after_rewrite(state: LoopState) -> Literal["agent", "generate", "__end__"]:
    if state["outcome"]:
        return "__end__"
    return "generate" if state["exhausted"] or state["broken"] else "agent"


@cache
def graph_of(mode: str, saver: Any = None) -> Graph:
    """Return the graph of `mode`, built on first use and shared by all runs; `saver` keeps its conversations."""
    return (build_deep if mode == "deep" else build_fast)(saver)


async def prepare(run: Run) -> PreparedGraph:
    async def given(_: Any) -> dict[str, Any]:
        return {"run_mode": run.mode.name}

    return await driven(run, partial(graph_of, run.mode.name), _context, given)


def _context(run: Run) -> LoopContext:
    cache = run.cache
    return LoopContext(
        reasoner=run.reasoner,
        search=cache.search,
        passages_of=cache.passages_of,
        budget=run.budget,
        answerable=cache.answerable,
        sure=cache.sure,
        fast=run.mode.name == "fast",
        condenser=run.condenser,
        quoter=run.quoter,
        verifiers=run.verifiers,
        options=run.question.options,
    )


async def remember(run: Run) -> None:
    """Add what a broken-off run had written to its conversation, which knows only the question."""
    if not run.thread or run.saver is None or not run.text.strip():
        return
    graph, config = graph_of(run.mode.name, run.checkpointer()), run.config()
    kept = await graph.aget_state(config)
    if kept.values.get("question") == run.question.text.strip():
        await graph.aupdate_state(config, {"messages": [AIMessage(run.text)]}, as_node="generate")
