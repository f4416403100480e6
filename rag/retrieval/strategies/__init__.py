"""Ways of finding passages: each a small file and a row here.

Hands on `STRATEGIES` and the default's name; `tests/retrieval/test_retriever.py` runs every one of them.
"""

from __future__ import annotations

from rag.retrieval.strategies.base import Engine, Found, SearchRequest, Strategy
from rag.retrieval.strategies.legs import LegSearch
from rag.store.search import reciprocal_rank_fusion

DEFAULT_STRATEGY = "mmr"
STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        LegSearch("dense", frozenset({"dense"})),
        LegSearch("keyword", frozenset({"sparse"})),
        LegSearch("hybrid", fuse=reciprocal_rank_fusion),
        LegSearch("weighted"),
        LegSearch("mmr", diversify=True),
    )
}

__all__ = ["DEFAULT_STRATEGY", "STRATEGIES", "Engine", "Found", "SearchRequest", "Strategy"]
