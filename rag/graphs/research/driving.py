"""What a run of research is driven with, and what is made of one that broke off."""

from __future__ import annotations

from typing import Any

from rag.checking.verifier import Verifier
from rag.graphs.research.graph import graph_of
from rag.graphs.research.state import ResearchContext
from rag.graphs.research.writing import quoted
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Condenser
from rag.reasoning.research_chat import ChatResearcher
from rag.reasoning.research_rules import RuleResearcher
from rag.runs import nodes
from rag.runs.run import Prepared, Run

__all__ = ["graph_of", "prepared", "rescued"]


async def prepared(run: Run) -> Prepared:
    return await nodes.prepared(run, graph_of, context_of, _nothing_more)


async def _nothing_more(_: Any) -> dict[str, Any]:
    return {}


def context_of(run: Run) -> ResearchContext:
    shelf, reasoner = run.shelf, run.reasoner
    quoter = run.quoter if isinstance(run.quoter, ExtractiveReasoner) else reasoner
    if not isinstance(quoter, ExtractiveReasoner):
        raise TypeError("research needs what quotes, beside what writes")
    nobody = run.question.options.web == "ask" and not run.thread  # what is not kept cannot wait for a person
    return ResearchContext(
        search=shelf.search,
        rules=RuleResearcher(quoter),
        budget=run.budget,
        seconds=run.seconds,
        changes=run.changes,
        model=ChatResearcher(reasoner) if isinstance(reasoner, ChatReasoner) else None,
        web=None if nobody else shelf.web,
        titles=shelf.titles,
        answerable=shelf.answerable,
        holds=shelf.holds,
        may_wait=bool(run.thread),
        condenser=reasoner if isinstance(reasoner, Condenser) else None,
        verifiers=[one for one in (reasoner, run.verifier) if isinstance(one, Verifier)],
        options=run.question.options,
    )


async def rescued(run: Run) -> dict[str, Any]:
    """The last state of a run that broke off, with a report of quotes from what its steps had found."""
    state: Any = run.state
    return {**state, **await quoted(state, context_of(run))} if state.get("ledger") else dict(state)
