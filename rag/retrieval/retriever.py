"""One search: encode the question, ask both legs, fuse, choose."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag.models.embedding import EmbeddingModel
from rag.models.sparse import SparseEncoder
from rag.retrieval.fusion import weighted
from rag.retrieval.mmr import mmr, pairwise_similarity
from rag.store.library import Library
from rag.store.search import Fusion, Hit, reciprocal_rank_fusion
from rag.types import Passage

K, FETCH_K, LAMBDA = 10, 20, 0.7
_PREFETCH = 60


@dataclass(frozen=True, slots=True)
class Strategy:
    """Which legs are asked, how they are fused, and whether MMR chooses among what they found."""

    name: str
    legs: frozenset[str]
    fuse: Fusion
    diversify: bool = False


_BOTH = frozenset({"dense", "sparse"})
STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("dense", frozenset({"dense"}), weighted),
        Strategy("keyword", frozenset({"sparse"}), weighted),
        Strategy("rrf", _BOTH, reciprocal_rank_fusion),
        Strategy("hybrid", _BOTH, weighted),
        Strategy("mmr", _BOTH, weighted, diversify=True),
    )
}
DEFAULT_STRATEGY = "mmr"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that was considered, and what became of it.

    `place` is its rank in the context, None if it was left out; `repeats` is the id of the picked
    passage that it is most like, with their `similarity` (0 to 1).
    """

    passage: Passage
    place: int | None
    repeats: str | None = None
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a search found: `passages` in context order, all `candidates`, milliseconds by stage."""

    question: str
    strategy: str
    passages: tuple[Passage, ...]
    candidates: tuple[Candidate, ...]
    legs: tuple[str, ...]
    ms: Mapping[str, float] = field(default_factory=dict)


class Retriever:
    """Searches one library. Thread-safe; raises StoreError when the database fails."""

    def __init__(self, library: Library, model: EmbeddingModel, sparse: SparseEncoder) -> None:
        self._library = library
        self._model = model
        self._sparse = sparse

    def search(
        self,
        question: str,
        *,
        k: int = K,
        fetch_k: int = FETCH_K,
        lambda_mult: float = LAMBDA,
        strategy: str = DEFAULT_STRATEGY,
    ) -> Retrieval:
        """Find the k best of fetch_k candidates. A leg that cannot read the question does not vote."""
        chosen = STRATEGIES[strategy]
        began = time.perf_counter()
        readable = "dense" in chosen.legs and self._model.can_read(question)
        dense = self._model.encode_query(question) if readable else None
        sparse = self._sparse.encode_query(question) if "sparse" in chosen.legs or not readable else None
        encoded = time.perf_counter()
        limit = max(fetch_k, k) if chosen.diversify else k
        hits = self._library.search(
            dense=dense,
            sparse=sparse,
            limit=limit,
            prefetch=max(_PREFETCH, limit),
            with_vectors=chosen.diversify,
            fuse=chosen.fuse,
        )
        found = time.perf_counter()
        candidates = _diverse(hits, k, lambda_mult) if chosen.diversify else _in_order(hits, k)
        done = time.perf_counter()
        return Retrieval(
            question,
            strategy,
            tuple(candidate.passage for candidate in candidates if candidate.place is not None),
            tuple(candidates),
            tuple(leg for leg, vector in (("dense", dense), ("sparse", sparse)) if vector is not None),
            _milliseconds(encode=encoded - began, search=found - encoded, choose=done - found),
        )

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Read passages again by id; those that are gone are left out."""
        return self._library.passages(ids)


def _diverse(hits: Sequence[Hit], k: int, lambda_mult: float) -> list[Candidate]:
    if not hits:
        return []
    best = max(hit.passage.score for hit in hits) or 1.0
    similarity = pairwise_similarity([hit.vector for hit in hits], [hit.terms for hit in hits])
    picks = mmr([hit.passage.score / best for hit in hits], similarity, k, lambda_mult)
    return [
        Candidate(
            hits[pick.candidate].passage,
            pick.place,
            None if pick.repeats is None else hits[pick.repeats].passage.id,
            pick.similarity,
        )
        for pick in picks
    ]


def _in_order(hits: Sequence[Hit], k: int) -> list[Candidate]:
    return [Candidate(hit.passage, i if i <= k else None) for i, hit in enumerate(hits, 1)]


def _milliseconds(**seconds: float) -> dict[str, float]:
    return {stage: round(1000 * value, 2) for stage, value in seconds.items()}
