"""What a tree is driven with, where an earlier one is found again, and what is made of one that broke off."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rag.checking.verifier import Verifier
from rag.errors import RagError
from rag.graphs.judge.graph import graph_of
from rag.graphs.judge.state import TreeContext
from rag.graphs.judge.tree import branched, rows_of
from rag.graphs.judge.writing import rescued
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.judge_chat import ChatJudge
from rag.reasoning.judge_rules import RuleJudge
from rag.reasoning.reasoner import Condenser
from rag.runs import nodes
from rag.runs.run import Prepared, Run

__all__ = ["graph_of", "prepared", "rescued", "trail"]


async def prepared(run: Run) -> Prepared:
    """The graph with what goes into it. Raises RagError("tree_unknown") where the earlier tree is no longer kept."""
    return await nodes.prepared(run, graph_of, context_of, partial(_begun, run))


async def _begun(run: Run, graph: Any) -> dict[str, Any]:
    """The earlier tree as `begun`, with what the person changes of it and what it had found; empty for none."""
    change = run.question.options.branch
    if not change:
        return {"begun": {}}
    place = {"thread_id": run.thread, "checkpoint_id": change["checkpoint"]}
    found = await graph.aget_state({"configurable": place}) if run.thread and change["checkpoint"] else None
    if found is None or not found.values.get("nodes"):
        raise RagError("tree_unknown")
    return {"begun": {"nodes": branched(found.values["nodes"], change), "ledger": found.values["ledger"]}}


def context_of(run: Run) -> TreeContext:
    shelf, reasoner = run.shelf, run.reasoner
    quoter = run.quoter if isinstance(run.quoter, ExtractiveReasoner) else reasoner
    if not isinstance(quoter, ExtractiveReasoner):
        raise TypeError("a tree needs what quotes, beside what writes")
    return TreeContext(
        search=shelf.search,
        rules=RuleJudge(quoter),
        budget=run.budget,
        seconds=run.seconds,
        changes=run.changes,
        reasoner=reasoner,
        model=ChatJudge(reasoner) if isinstance(reasoner, ChatReasoner) else None,
        vector=shelf.vector,
        answerable=shelf.answerable,
        condenser=reasoner if isinstance(reasoner, Condenser) else None,
        verifiers=[one for one in (reasoner, run.verifier) if isinstance(one, Verifier)],
        options=run.question.options,
    )


def trail(run: Run, state: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept with the answer: the tree as rows, why it ended, and where all of its state is."""
    rows = list(rows_of(run.id, state.get("nodes", ()), state.get("ledger", {})))
    kept = {key: state[key] for key in ("stop", "notes", "checkpoint") if state.get(key)}
    branch = run.question.options.branch
    return {"tree": rows, **kept, **({"branch": dict(branch)} if branch else {})}
