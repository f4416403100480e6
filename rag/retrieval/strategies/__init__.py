"""Search strategies: each has a file and a row in `STRATEGIES`; `tests/retrieval/test_retriever.py` runs them all."""

from __future__ import annotations

from rag.retrieval.strategies.auto import Auto
from rag.retrieval.strategies.base import (
    AcrossLanguages,
    Engine,
    Expander,
    Found,
    LegSearch,
    Need,
    SearchRequest,
    Strategy,
    Tuning,
)
from rag.retrieval.strategies.classic import Classic
from rag.retrieval.strategies.hyde import Hyde
from rag.retrieval.strategies.multi_query import MultiQuery
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

__all__ = [
    "DEFAULT_STRATEGY",
    "STRATEGIES",
    "WRITTEN",
    "Engine",
    "Expander",
    "Found",
    "Need",
    "SearchRequest",
    "Strategy",
    "Tuning",
]
