"""Search strategies, each a row in `STRATEGIES`; `tests/retrieval/test_retriever.py` runs them all."""

from __future__ import annotations

from rag.retrieval.strategies.auto import Auto
from rag.retrieval.strategies.base import AcrossLanguages, Classic, LegSearch, Strategy
from rag.retrieval.strategies.expanded import Hyde, MultiQuery
from rag.retrieval.strategies.rerank import Rerank

DEFAULT_STRATEGY = "rerank"
STRATEGIES: dict[str, Strategy] = {
    strategy.name: AcrossLanguages(strategy)
    for strategy in (
        LegSearch("dense", frozenset({"dense"})),
        LegSearch("keyword", frozenset({"sparse"})),
        LegSearch("hybrid", by_rank=True),
        LegSearch("weighted"),
        LegSearch("mmr", diversify=True),
        Hyde(),
        MultiQuery(),
        Rerank(),
        Auto(),
        Classic(),
    )
}
EXPANDED = frozenset({"hyde", "multi_query"})
"""The strategies that search with texts from an expander."""
