"""The simplest search that could work: pieces of a fixed length, ranked by BM25, or by BM25 and vectors fused.

What the app's own search has to beat. BM25 as in Robertson and Zaragoza 2009, with k1 = 1.2 and b = 0.75 over the
words of `rag.text.terms`; reciprocal rank fusion with k = 60 (Cormack et al. 2009).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel
from rag.text import terms

PIECE: Final = {"en": 600, "zh": 300}
"""Characters."""
_K1, _B = 1.2, 0.75
_RRF_K: Final = 60
_FUSED: Final = 50  # of each ranking


def pieces_of(pages: Sequence[dict[str, Any]]) -> list[str]:
    """The pages, cut every so many characters."""
    size = PIECE["zh" if pages[0]["lang"] == "zh" else "en"]
    return [page["text"][at : at + size] for page in pages for at in range(0, len(page["text"]), size)]


class PlainSearch:
    """Ranks pieces of text."""

    def __init__(self, pieces: Sequence[str], model: EmbeddingModel) -> None:
        self.pieces = pieces
        self._model = model
        self._weights = self._bm25()

    def by_words(self, question: str, k: int = 20) -> list[str]:
        return [self.pieces[place] for place in self._ranked_by_words(question)[:k]]

    def fused(self, question: str, k: int = 20) -> list[str]:
        """By words alone where the model cannot read the question."""
        rankings = [self._ranked_by_words(question)[:_FUSED]]
        if self._model.can_read(question):
            near = self._vectors @ self._model.encode_query(question)
            rankings.append(np.argsort(-near)[:_FUSED].tolist())
        votes: defaultdict[int, float] = defaultdict(float)
        for ranking in rankings:
            for rank, place in enumerate(ranking, 1):
                votes[place] += 1 / (_RRF_K + rank)
        return [self.pieces[place] for place in sorted(votes, key=lambda place: -votes[place])[:k]]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self._model.encode_passages(self.pieces)

    def _ranked_by_words(self, question: str) -> list[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in set(terms(question)):
            for place, weight in self._weights.get(term, ()):
                scores[place] += weight
        return sorted(scores, key=lambda place: -scores[place])

    def _bm25(self) -> dict[str, list[tuple[int, float]]]:
        """Where each term stands, and what it weighs there."""
        counts = [Counter(terms(piece)) for piece in self.pieces]
        average = sum(map(Counter.total, counts)) / max(1, len(counts))
        holding = Counter(term for count in counts for term in count)
        weights = defaultdict(list)
        for place, count in enumerate(counts):
            longer = _K1 * (1 - _B + _B * count.total() / average)
            for term, often in count.items():
                idf = math.log(1 + (len(counts) - holding[term] + 0.5) / (holding[term] + 0.5))
                weights[term].append((place, idf * often * (_K1 + 1) / (often + longer)))
        return dict(weights)
