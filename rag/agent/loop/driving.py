"""What a run of the loop is driven with, and what it leaves in its conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage

from rag.agent.citing.verifier import Verifier
from rag.agent.conversing.condense import Condenser
from rag.agent.conversing.memory import RuleSummariser, Summariser
from rag.agent.loop.graph import Graph, build_deep, build_fast
from rag.agent.loop.nodes import read_passages
from rag.agent.loop.state import LoopContext
from rag.agent.loop.talk import messages_of
from rag.agent.run import Prepared, Run, log_problem

__all__ = ["graph_of", "prepare", "read_passages", "remember"]


@cache
def graph_of(mode: str, saver: Any = None) -> Graph:
    """Return the graph of `mode`, built on first use and shared by all runs; `saver` keeps its conversations."""
    return (build_deep if mode == "deep" else build_fast)(saver)


async def prepare(run: Run) -> Prepared:
    graph = graph_of(run.mode.name, run.checkpointer())
    known = await _known(graph, run.config()) if run.thread else {}
    if known is None:  # the answer matters more than that it is kept: the history will do
        graph, run.thread = graph_of(run.mode.name), ""
    given: dict[str, Any] = {"question": run.question.text, "run_mode": run.mode.name}
    if not known or not known.get("messages"):
        given["messages"] = messages_of(run.history)
    return Prepared(graph, given, _context(run))


async def _known(graph: Graph, config: Any) -> dict[str, Any] | None:
    """What the conversation knows; None where it cannot be read."""
    found: Sequence[Any] = await asyncio.gather(graph.aget_state(config), return_exceptions=True)
    if isinstance(found[0], BaseException):
        log_problem("a conversation could not be read", found[0])
        return None
    values: dict[str, Any] = found[0].values
    return values


def _context(run: Run) -> LoopContext:
    shelf, reasoner = run.shelf, run.reasoner
    return LoopContext(
        reasoner=reasoner,
        search=shelf.search,
        passages_of=shelf.passages_of,
        budget=run.budget,
        answerable=shelf.answerable,
        condenser=reasoner if isinstance(reasoner, Condenser) else None,
        summariser=reasoner if isinstance(reasoner, Summariser) else RuleSummariser(),
        quoter=run.quoter,
        verifiers=[one for one in (reasoner, run.verifier) if isinstance(one, Verifier)],
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
