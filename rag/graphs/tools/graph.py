"""The graph of the tool mode, and the context of a run."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from rag.graphs.common import prepare as prepare_graph
from rag.graphs.common import require_quoter, trace_step
from rag.graphs.tools import nodes
from rag.graphs.tools.state import ToolContext, ToolState
from rag.runs.run import PreparedGraph, Run
from rag.text import is_chinese
from rag.tools.tool import Work


@cache
def graph_of(saver: Any = None) -> Any:
    """Build enter → call → write, or enter → talk, on first use; all runs share the graph."""
    builder = StateGraph(ToolState, context_schema=ToolContext)
    for name, node in (("enter", nodes.enter), ("talk", nodes.talk), ("call", nodes.call), ("write", nodes.write)):
        builder.add_node(name, trace_step(name, node))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["talk", "call", END])
    builder.add_edge("talk", END)
    builder.add_edge("call", "write")
    builder.add_edge("write", END)
    return builder.compile(checkpointer=saver)


def _after_enter(state: ToolState, runtime: Runtime[ToolContext]) -> Literal["talk", "call", "__end__"]:
    if state["outcome"]:
        return "__end__"
    return "talk" if runtime.context.options.route in ("small_talk", "unknown") else "call"


async def prepare(run: Run) -> PreparedGraph:
    return await prepare_graph(run, graph_of, _context)


async def rescue(run: Run) -> dict[str, Any]:
    return run.state


def _context(run: Run) -> ToolContext:
    return ToolContext(
        work=_work(run),
        reasoner=run.reasoner,
        rules=require_quoter(run),
        budget=run.budget,
        answerable=run.cache.answerable,
        condenser=run.condenser,
        verifiers=run.verifiers,
        options=run.question.options,
    )


def _work(run: Run) -> Work:
    cache, options = run.cache, run.question.options
    reader = cache.retriever.reader

    def text(url_hash: str) -> str:
        page = reader.read(url_hash) if reader else None
        return page.text if page else ""

    return Work(
        language="zh" if is_chinese(run.question.text) else "en",
        now=datetime.now().astimezone(),
        search=cache.search,
        pages=reader.list_pages if reader else tuple,
        text=text,
        web=cache.retriever.web if options.web == "allowed" or options.route == "web" else None,
        code=options.code,
    )
