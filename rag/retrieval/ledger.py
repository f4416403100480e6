"""Passages outside of any index: pages read for one question, and the sources of an earlier report."""

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
"""Key in the `ranks` of a passage that was found among the sources of an earlier report."""

MIN_COVERAGE: Final = 0.7
"""Minimum share of the question, without title terms, in one place, at which a search adds no evidence. The probability
of an answer is less reliable here (docs/quality.md, `benchmarks.ledger`)."""


def select_best(query: str, passages: Sequence[Passage], sparse: SparseEncoder, k: int) -> list[Passage]:
    """Return the best passages, up to k, cut to their useful part and scored by the share of the query's terms in each;
    terms that fewer passages have weigh more."""
    term_sets = [sparse.terms(f"{passage.title}\n{passage.text}") for passage in passages]
    weights = {term: 1 / (1 + sum(term in sparse.terms(p.text) for p in passages)) for term in sparse.terms(query)}
    scored = [replace(passage, score=_share(weights, own)) for passage, own in zip(passages, term_sets, strict=True)]
    best = sorted((passage for passage in scored if passage.score > 0), key=lambda passage: -passage.score)[: 2 * k]
    return list(assemble(best, weights, sparse, k).passages)


def _share(weights: Mapping[int, float], terms: frozenset[int]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms) / (sum(weights.values()) or 1.0)


@dataclass(frozen=True, slots=True)
class CachedEvidence:
    """Results that needed no search."""

    passages: Sequence[Passage]


@dataclass
class Ledger:
    """The sources of an earlier report in the conversation, which are searched first.

    `read` returns the passages and may block; `idf` gives that of terms in the library.
    """

    read: Callable[[], Sequence[Passage]]
    sparse: SparseEncoder
    idf: Callable[[Sequence[int]], Mapping[int, float]]

    def find(self, question: str, k: int) -> CachedEvidence | None:
        """Return the passages if one place in them has nearly the whole question; else None."""
        best = select_best(question, self.passages, self.sparse, k)
        idf = self.idf(sorted(self.sparse.encode_query(question).indices))
        if features_of(idf, best, self.sparse)["asked"] < MIN_COVERAGE:
            return None
        return CachedEvidence([replace(passage, ranks={LEG: place}) for place, passage in enumerate(best, 1)])

    @cached_property
    def passages(self) -> Sequence[Passage]:
        return self.read()
