"""What a summary is driven with."""

from __future__ import annotations

from typing import Any

from rag.checking.verifier import Verifier
from rag.graphs.summary.graph import graph_of
from rag.graphs.summary.state import SummaryContext
from rag.graphs.summary.writing import rescued
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.reasoner import Condenser
from rag.runs import nodes
from rag.runs.run import Prepared, Run

__all__ = ["graph_of", "prepared", "rescued"]


async def prepared(run: Run) -> Prepared:
    """The graph with what goes into it."""

    async def nothing_more(_: Any) -> dict[str, Any]:
        return {}

    return await nodes.prepared(run, graph_of, context_of, nothing_more)


def context_of(run: Run) -> SummaryContext:
    reasoner = run.reasoner
    return SummaryContext(
        reader=run.shelf.reader,
        asked=run.question,
        budget=run.budget,
        writer=reasoner.name,
        model=reasoner if isinstance(reasoner, ChatReasoner) else None,
        condenser=reasoner if isinstance(reasoner, Condenser) else None,
        verifiers=[one for one in (reasoner, run.verifier) if isinstance(one, Verifier)],
    )
