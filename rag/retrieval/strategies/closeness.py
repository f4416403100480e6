"""How closely a passage says what a question asks, told without a model: the reranker that needs no weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from rag.models.sparse import SparseEncoder
from rag.retrieval.following import term_weights
from rag.store.library import Library
from rag.text import sentence_spans

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
    """Scores texts for one question; the terms of those `before` it count as they do in the search."""

    def __init__(self, question: str, library: Library, sparse: SparseEncoder, before: Sequence[str] = ()) -> None:
        self._words = sparse.terms_of_word
        asked = _read(question, self._words)
        own = dict.fromkeys(frozenset().union(*asked.sentences), 1.0)
        weights = {**term_weights(question, before, sparse), **own}
        idf = library.idf(sorted(weights))
        self._idf = {term: weight * idf[term] for term, weight in weights.items()}
        self._pairs = _weighed(pairwise(asked.words), self._idf)
        self._paired = frozenset(chain.from_iterable(self._pairs))

    def score(self, text: str) -> float:
        """0 to SENTENCE + PAIRS: what the best sentence holds of the question's terms, and the text of its word pairs.

        Terms weigh by IDF. A pair in order and adjacent counts fully, one a few words apart half.
        """
        read = _read(text, self._words)
        sentence = max((_share(self._idf, terms) for terms in read.sentences), default=0.0)
        adjacent, near = self._pairs_in(read.words)
        return SENTENCE * sentence + PAIRS * (_share(self._pairs, adjacent) + _share(self._pairs, near)) / 2

    def _pairs_in(self, words: Sequence[int]) -> tuple[set[Pair], set[Pair]]:
        """The pairs of the question's words that stand side by side in order, and those near each other in any."""
        places = [(place, word) for place, word in enumerate(words) if word in self._paired]
        adjacent: set[Pair] = set()
        near: set[Pair] = set()
        for number, (place, word) in enumerate(places):
            for other, following in places[number + 1 : number + 1 + _NEAR]:
                if other - place > _NEAR:
                    break
                near.update(((word, following), (following, word)))
                if other == place + 1:
                    adjacent.add((word, following))
        return adjacent, near


@lru_cache(maxsize=2048)
def _read(text: str, terms_of_word: Callable[[str], tuple[int, ...]]) -> _Text:
    """Remembered: the same passages are found again by later questions."""
    sentences: list[frozenset[int]] = []
    words: list[int] = []
    for start, end in sentence_spans(text):
        runs = _RUN.findall(text, start, end)
        terms = list(map(terms_of_word, runs))
        sentences.append(frozenset(chain.from_iterable(terms)))
        words.extend(found[0] for run, found in zip(runs, terms, strict=True) if found and not _HAN.match(run))
    return _Text(tuple(sentences), tuple(words))


def _weighed(pairs: Iterable[Pair], idf: Mapping[int, float]) -> dict[Pair, float]:
    return {pair: idf.get(pair[0], 0.0) + idf.get(pair[1], 0.0) for pair in pairs}


def _share(weights: Mapping[int, float] | Mapping[Pair, float], found: frozenset[int] | set[Pair]) -> float:
    """The share of the weight that is among `found`, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for key, weight in weights.items() if key in found) / total if total else 0.0
