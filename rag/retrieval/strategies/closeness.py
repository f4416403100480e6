"""How closely a passage says what a question asks, told without a model: the reranker that needs no weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from rag.models.sparse import SparseEncoder
from rag.store.library import Library
from rag.text import split_sentences

SENTENCE, PAIRS = 0.2, 0.2
"""What they add to a fused score of 1 at best. Chosen on chroma and the xquad sets, none kept back; see 0004."""

_NEAR = 3  # words apart
_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+|[^\\W_\u3400-\u4dbf\u4e00-\u9fff]+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Text:
    """The terms of each sentence, and the words of the whole text in order, each as a term; Han runs have no order."""

    sentences: tuple[frozenset[int], ...]
    words: tuple[int, ...]


class Closeness:
    """Scores texts for one question."""

    def __init__(self, question: str, library: Library, sparse: SparseEncoder) -> None:
        self._sparse = sparse
        asked = self._read(question)
        self._idf = library.idf(sorted(frozenset().union(*asked.sentences)))
        self._pairs = _weighed(pairwise(asked.words), self._idf)

    def score(self, text: str) -> float:
        """0 to SENTENCE + PAIRS: what the best sentence holds of the question's terms, and the text of its word pairs.

        Terms weigh by IDF. A pair in order and adjacent counts fully, one a few words apart half.
        """
        read = self._read(text)
        sentence = max((_share(self._idf, terms) for terms in read.sentences), default=0.0)
        words = read.words
        adjacent = set(pairwise(words))
        near = {pair for step in range(1, _NEAR + 1) for pair in zip(words, words[step:], strict=False)}
        near |= {(second, first) for first, second in near}
        return SENTENCE * sentence + PAIRS * (_share(self._pairs, adjacent) + _share(self._pairs, near)) / 2

    def _read(self, text: str) -> _Text:
        sentences: list[frozenset[int]] = []
        words: list[int] = []
        for start, end in split_sentences(text):
            found: set[int] = set()
            for run in _RUN.findall(text[start:end]):
                terms = self._sparse.terms_of_word(run)
                found.update(terms)
                if terms and not _HAN.match(run):
                    words.append(terms[0])
            sentences.append(frozenset(found))
        return _Text(tuple(sentences), tuple(words))


def _weighed(pairs: Iterable[Pair], idf: Mapping[int, float]) -> dict[Pair, float]:
    return {pair: idf.get(pair[0], 0.0) + idf.get(pair[1], 0.0) for pair in pairs}


def _share(weights: Mapping[int, float] | Mapping[Pair, float], found: frozenset[int] | set[Pair]) -> float:
    """The share of the weight that is among `found`, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for key, weight in weights.items() if key in found) / total if total else 0.0
