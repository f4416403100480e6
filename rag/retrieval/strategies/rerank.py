"""Reranking of the candidates of the weighted search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag.errors import ModelError
from rag.models.reranker import Reranker
from rag.retrieval.strategies.base import Engine, Found, SearchRequest
from rag.store.values import Hit
from rag.tracing import span

SECONDS = 6.0
"""Time limit of a cross-encoder; candidates that it does not reach keep their order after the others."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """A search reranked by a cross-encoder, whose `rerank` score then counts.

    If none is configured or it cannot be loaded, the fused score and MMR decide, and the notes say why.
    """

    name: str = "rerank"

    def find(self, request: SearchRequest, engine: Engine) -> Found:
        tuning = request.tuning
        by_rank = engine.reranker is not None and tuning.pre_ranker == "rrf"
        hits, legs = engine.hits(request, fuse=tuning.fuse_by_rank if by_rank else tuning.fuse_by_score)
        notes: dict[str, Any] = {"reranker": {"code": "rerank_without_weights", "params": {}}}
        if engine.reranker is None:
            return Found(hits, legs, notes, diversify=True)
        candidates = hits[: tuning.pre_top_k or len(hits)]
        try:
            ranked, reached = _score_again(request.question, candidates, engine.reranker)
        except ModelError as error:
            notes["fell_back"] = {"code": error.code, "params": dict(error.notice.params)}
            return Found(hits, legs, notes, diversify=True)
        params = {"model": engine.reranker.name, "reached": reached, "of": len(candidates)}
        return Found(ranked, legs, {"reranker": {"code": "rerank_with", "params": params}})


def _score_again(question: str, hits: Sequence[Hit], reranker: Reranker) -> tuple[list[Hit], int]:
    """Return the hits with the reranker's scores, best first, and how many it reached in time."""
    with span(reranker.name, "rerank", of=len(hits)):
        scores = reranker.scores(question, [_whole(hit) for hit in hits], seconds=SECONDS)
    known = [score for score in scores if score is not None]
    # Candidates that it did not reach rank below all others, in their previous order.
    floor = min(known, default=1.0)
    missing = len(hits) - len(known)
    rest = (floor * (missing - place) / (missing + 1) for place in range(missing))
    return _sort_by_score(hits, [next(rest) if score is None else score for score in scores]), len(known)


def _whole(hit: Hit) -> str:
    """Return the passage under its headings, as embedded."""
    passage = hit.passage
    above = " › ".join(dict.fromkeys(filter(None, (passage.title, *passage.section))))
    return f"{above}\n{passage.text}" if above else passage.text


def _sort_by_score(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    order = sorted(range(len(hits)), key=lambda place: (-scores[place], place))
    return [_with_score(hits[place], scores[place], rank) for rank, place in enumerate(order, 1)]


def _with_score(hit: Hit, score: float, rank: int) -> Hit:
    passage = hit.passage
    scores = {**passage.scores, "rerank": score}
    return replace(hit, passage=replace(passage, score=score, scores=scores, ranks={**passage.ranks, "rerank": rank}))
