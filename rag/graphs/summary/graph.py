"""The summary graph: its edges, and the context of a run."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from rag.graphs.common import prepare as prepare_graph
from rag.graphs.common import question_of, trace_step
from rag.graphs.summary import nodes, writing
from rag.graphs.summary.state import NoteInput, SummaryContext, SummaryState
from rag.graphs.summary.writing import rescue
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import PreparedGraph, Run

__all__ = ["graph_of", "prepare", "rescue"]


@cache
def graph_of(saver: Any = None) -> Any:
    """Build enter → read → (notes in parallel, for several requests) → write → verify; `saver` stores checkpoints."""
    builder = StateGraph(SummaryState, context_schema=SummaryContext)
    builder.add_node("enter", trace_step("enter", nodes.enter))
    builder.add_node("read", trace_step("read", nodes.read))
    builder.add_node("note", trace_step("note", nodes.note))
    builder.add_node("write", trace_step("write", writing.write))
    builder.add_node("verify", trace_step("verify", writing.verify))
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", _after_enter, ["read", END])
    builder.add_conditional_edges("read", _after_read, ["note", "write", END])
    builder.add_edge("note", "write")
    builder.add_edge("write", "verify")
    builder.add_edge("verify", END)
    return builder.compile(checkpointer=saver)


def _after_enter(state: SummaryState) -> Literal["read", "__end__"]:
    return "__end__" if state["outcome"] else "read"


def _after_read(state: SummaryState) -> list[Send] | Literal["write", "__end__"]:
    if state["outcome"]:
        return "__end__"
    passages = state["passages"]
    inputs = [
        NoteInput(question=question_of(state), passages=[passages[n - 1] for n in numbers], numbers=numbers)
        for numbers in state["batches"]
    ]
    return [Send("note", note_input) for note_input in inputs] or "write"


async def prepare(run: Run) -> PreparedGraph:
    return await prepare_graph(run, graph_of, _context)


def _context(run: Run) -> SummaryContext:
    reasoner = run.reasoner
    return SummaryContext(
        reader=run.cache.retriever.reader,
        asked=run.question,
        budget=run.budget,
        writer=reasoner.name,
        search=run.cache.search,
        model=reasoner if isinstance(reasoner, ChatReasoner) else None,
        condenser=run.condenser,
        verifiers=run.verifiers,
    )
