"""The simplest possible search: sentences up to a length, ranked by BM25, or by BM25 and vectors fused.

The app's own search has to beat it. A piece is indexed with its page's title. BM25 as in Robertson and Zaragoza 2009,
with k1 = 1.2 and b = 0.75, over stemmed words; reciprocal rank fusion with k = 60 (Cormack et al. 2009).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.words import words_of
from rag.models.embedding import EmbeddingModel
from rag.text import split_sentences

PIECE: Final = {"en": 600, "zh": 300}
"""Characters."""
_K1, _B = 1.2, 0.75
_RRF_K: Final = 60
_FUSION_DEPTH: Final = 50  # of each ranking


@dataclass(frozen=True, slots=True)
class Piece:
    title: str
    text: str


def pieces_of(pages: Sequence[dict[str, Any]], size: int | None = None) -> list[Piece]:
    """Return the pages' sentences, grouped up to `size` characters; 0 for each sentence alone."""
    maximum = PIECE["zh" if pages[0]["lang"] == "zh" else "en"] if size is None else size
    return [Piece(page.get("title", ""), text) for page in pages for text in _pack(page["text"], maximum)]


def _pack(text: str, size: int) -> Iterator[str]:
    first = last = 0
    for start, end in split_sentences(text):
        if last and end - first > size:
            yield text[first:last]
            last = 0
        first, last = (first if last else start), end
    if last:
        yield text[first:last]


class PlainSearch:
    """A search that ranks pieces."""

    def __init__(self, pieces: Sequence[Piece], model: EmbeddingModel) -> None:
        self._pieces = pieces
        self._texts = [f"{piece.title}\n{piece.text}" for piece in pieces]
        self._model = model
        self._weights = self._bm25()

    def by_words(self, question: str, k: int = 20) -> list[str]:
        return [self._pieces[place].text for place in self._rank_by_words(question)[:k]]

    def by_fusion(self, question: str, k: int = 20) -> list[str]:
        """Return the best pieces, by words alone if the model cannot read the question."""
        rankings = [self._rank_by_words(question)[:_FUSION_DEPTH]]
        if self._model.can_read(question):
            near = self._vectors @ self._model.encode_query(question)
            rankings.append(np.argsort(-near)[:_FUSION_DEPTH].tolist())
        votes: defaultdict[int, float] = defaultdict(float)
        for ranking in rankings:
            for rank, place in enumerate(ranking, 1):
                votes[place] += 1 / (_RRF_K + rank)
        return [self._pieces[place].text for place in sorted(votes, key=lambda place: -votes[place])[:k]]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self._model.encode_passages(self._texts)

    def _rank_by_words(self, question: str) -> list[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in words_of(question)[0]:
            for place, weight in self._weights.get(term, ()):
                scores[place] += weight
        return sorted(scores, key=lambda place: -scores[place])

    def _bm25(self) -> dict[str, list[tuple[int, float]]]:
        """Return the postings of each term: indices of pieces, with its weight in each."""
        counts = [Counter(words_of(text)[0]) for text in self._texts]
        average = sum(map(Counter.total, counts)) / max(1, len(counts))
        document_counts = Counter(term for count in counts for term in count)
        weights = defaultdict(list)
        for place, count in enumerate(counts):
            length_penalty = _K1 * (1 - _B + _B * count.total() / average)
            for term, frequency in count.items():
                idf = math.log(1 + (len(counts) - document_counts[term] + 0.5) / (document_counts[term] + 0.5))
                weights[term].append((place, idf * frequency * (_K1 + 1) / (frequency + length_penalty)))
        return dict(weights)
