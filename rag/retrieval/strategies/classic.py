"""Retrieval as in tutorials: MMR over the dense vectors by langchain-qdrant's QdrantVectorStore."""

from __future__ import annotations

from dataclasses import dataclass

from rag.retrieval.strategies.base import Engine, Found, SearchRequest


@dataclass(frozen=True, slots=True)
class Classic:
    """Whole passages, selected by MMR from those nearest in meaning; keywords if the model cannot read the question."""

    name: str = "classic"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        dense, _ = engine.query(request.question, frozenset({"dense"}), request.before)
        if dense is None:
            return Found(*engine.hits(request, limit=request.k), whole=True)
        hits = engine.library.search_diverse(
            dense,
            limit=request.k,
            fetch_k=request.fetch_k,
            lambda_mult=request.lambda_mult,
            scope=request.filters,
        )
        return Found(hits, ("dense",), whole=True)
