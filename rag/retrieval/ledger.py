"""Passages in hand that no index holds: pages read for one question, and what an earlier report was written from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.retrieval.answerable import features_of
from rag.retrieval.context import assemble
from rag.types import Passage

LEG: Final = "ledger"
"""Among the `ranks` of a passage: it was found in what an earlier report was written from."""

ENOUGH: Final = 0.7
"""The share of what is asked, beside what titles say, that a place has to say: then a search finds no more of the
evidence. How likely the answer is there tells too little (docs/quality.md, `benchmarks.ledger`)."""


def best_of(query: str, passages: Sequence[Passage], sparse: SparseEncoder, k: int) -> list[Passage]:
    """The best passages, at most k, cut to what is worth reading, scored by the share of the query's terms that each
    holds; a term weighs the less, the more of the passages hold it."""
    held = [sparse.terms(f"{one.title}\n{one.text}") for one in passages]
    weights = {term: 1 / (1 + sum(term in sparse.terms(one.text) for one in passages)) for term in sparse.terms(query)}
    scored = [replace(one, score=_share(weights, terms)) for one, terms in zip(passages, held, strict=True)]
    best = sorted((one for one in scored if one.score > 0), key=lambda one: -one.score)[: 2 * k]
    return list(assemble(best, weights, sparse, k).passages)


def _share(weights: Mapping[int, float], held: frozenset[int]) -> float:
    return sum(weight for term, weight in weights.items() if term in held) / (sum(weights.values()) or 1.0)


@dataclass(frozen=True, slots=True)
class CachedEvidence:
    """What was found without a search."""

    passages: Sequence[Passage]


@dataclass
class Ledger:
    """What an earlier report of the conversation was written from, which a question is looked for in first.

    `read` brings the passages and may block; `idf` tells how rare terms are in the library.
    """

    read: Callable[[], Sequence[Passage]]
    sparse: SparseEncoder
    idf: Callable[[Sequence[int]], Mapping[int, float]]

    def find(self, question: str, k: int) -> CachedEvidence | None:
        """The passages, where one place in them says nearly all that is asked; else None."""
        best = best_of(question, self.passages, self.sparse, k)
        idf = self.idf(sorted(self.sparse.encode_query(question).indices))
        if features_of(idf, best, self.sparse)["asked"] < ENOUGH:
            return None
        return CachedEvidence([replace(one, ranks={LEG: place}) for place, one in enumerate(best, 1)])

    @cached_property
    def passages(self) -> Sequence[Passage]:
        return self.read()
