"""What a strategy is, and what it asks of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rag.models.embedding import EmbeddingModel
from rag.models.sparse import SparseEncoder
from rag.retrieval.filters import Filters
from rag.retrieval.fusion import weighted
from rag.store.library import Library
from rag.store.search import Fusion, Hit

BOTH = frozenset({"dense", "sparse"})
PREFETCH = 60


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find: `k` passages chosen from `fetch_k` candidates; `lambda_mult` weighs relevance in MMR."""

    question: str
    k: int = 10
    fetch_k: int = 20
    lambda_mult: float = 0.7
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates best first, with scores that can be compared with each other, and what was done to find them.

    `legs` took part; `notes` is plain data for the panel that explains a search, such as the queries
    that were asked or why a strategy was picked. With `diversify` MMR chooses among the candidates.
    """

    hits: Sequence[Hit]
    legs: tuple[str, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    diversify: bool = False


class Strategy(Protocol):
    """One way of finding candidates. Stateless; one object serves all threads."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...

    def find(self, request: SearchRequest, engine: Engine) -> Found: ...


class Engine:
    """The library seen by a strategy: encodes texts and asks the legs."""

    def __init__(self, library: Library, model: EmbeddingModel, sparse: SparseEncoder) -> None:
        self.library = library
        self.model = model
        self.sparse = sparse

    def hits(
        self,
        request: SearchRequest,
        *,
        text: str = "",
        legs: frozenset[str] = BOTH,
        fuse: Fusion = weighted,
        limit: int = 0,
    ) -> tuple[list[Hit], tuple[str, ...]]:
        """The best `limit` chunks (by default fetch_k) for `text` (by default the question), and the legs that voted.

        A leg that cannot read the text does not vote; where none of `legs` can, keywords do.
        """
        text = text or request.question
        limit = limit or max(request.fetch_k, request.k)
        dense = self.model.encode_query(text) if "dense" in legs and self.model.can_read(text) else None
        sparse = self.sparse.encode_query(text) if "sparse" in legs or dense is None else None
        hits = self.library.search(
            dense=dense,
            sparse=sparse,
            limit=limit,
            prefetch=max(PREFETCH, limit),
            with_vectors=True,
            only=request.filters.as_filter(),
            fuse=fuse,
        )
        voted = (("dense", dense), ("sparse", sparse))
        return hits, tuple(leg for leg, vector in voted if vector is not None)
