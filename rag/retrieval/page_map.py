"""A map of a library: pages with similar words are near each other, and each topic has a name.

Terms have BM25 weights times inverse document frequency, as in latent semantic analysis (Deerwester et al. 1990); t-SNE
(van der Maaten and Hinton 2008) projects the reduced vectors to the plane, and k-means groups them. No embedding model
is used, so the map does not depend on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rag.models.embedding import SparseEncoder
from rag.text import lazy_regex, sentence_spans
from rag.types import Page, SparseVector

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

MIN_PAGES: Final = 8
"""Minimum pages for a map; with fewer, the titles are quicker to read."""
_MAX_CHARACTERS = 8_000  # characters of a page
_DIMENSIONS, _PERPLEXITY = 50, 30.0
_TOPICS = range(2, 13)
_WORD = lazy_regex(r"[^\W\d_\u3400-\u9fff]{3,}")
_HAN_RUN = lazy_regex(r"[\u3400-\u4dbf\u4e00-\u9fff]{2,}")
_NAME_WORDS, _MAX_TERMS, _MAX_TEXTS = 2, 12, 5  # words per name, candidate terms, pages searched per term
_NOT_IN_TITLE = 1e-6  # the factor of a word's weight


@dataclass(frozen=True, slots=True)
class PageMap:
    """Positions (x, y) in 0 to 1 by url_hash, the topics' names, largest first, and the index of each page's topic."""

    positions: Mapping[str, tuple[float, float]]
    topics: tuple[str, ...]
    topic_of: Mapping[str, int]

    def pages_of(self, topic: str) -> set[str]:
        """Return the hashes of a topic's pages; none if there is no such topic."""
        return {page for page, index in self.topic_of.items() if self.topics[index] == topic}


def map_pages(pages: Sequence[Page], texts: Mapping[str, str], encoder: SparseEncoder) -> PageMap | None:
    """Map pages by their titles and `texts`, deterministically; return None for fewer than `MIN_PAGES`.

    Takes about a second for 100 pages, four for 600.
    """
    if len(pages) < MIN_PAGES:
        return None
    from sklearn.cluster import KMeans
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    contents = [f"{page.title}\n{texts.get(page.url_hash, '')}"[:_MAX_CHARACTERS] for page in pages]
    weights, terms = _weights([encoder.encode_passage(text) for text in contents])
    reduced = _project(weights)
    near = min(_PERPLEXITY, (len(pages) - 1) / 3)
    count = min(max(round(math.sqrt(len(pages) / 2)), _TOPICS.start), _TOPICS.stop - 1)
    with threadpool_limits(1):  # on a busy machine, threads wait for each other
        start = "pca" if np.ptp(reduced, axis=0).max() > 1e-6 else "random"  # PCA fails if all pages are alike
        plane = TSNE(init=start, perplexity=near, random_state=0).fit_transform(reduced)
        groups = KMeans(count, n_init=4, random_state=0).fit_predict(reduced)
    order = [group for group, _ in Counter(groups.tolist()).most_common()]
    topic_of = {page.url_hash: order.index(group) for page, group in zip(pages, groups.tolist(), strict=True)}
    places = (plane - plane.min(0)) / np.maximum(np.ptp(plane, axis=0), 1e-9)
    return PageMap(
        {page.url_hash: (float(x), float(y)) for page, (x, y) in zip(pages, places, strict=True)},
        _names(weights, terms, [topic_of[page.url_hash] for page in pages], contents, encoder),
        topic_of,
    )


def _weights(vectors: Sequence[SparseVector]) -> tuple[csr_array, list[int]]:
    """Return a unit row of BM25 weights times inverse document frequency per page, and the term of each column."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import TfidfTransformer

    rows: list[dict[int, float]] = [dict(zip(vector.indices, vector.values, strict=True)) for vector in vectors]
    rows[0] = {0: 0.0, 1: 0.0, **rows[0]}  # at least two columns
    columns = DictVectorizer()
    return csr_array(TfidfTransformer().fit_transform(columns.fit_transform(rows))), columns.feature_names_


def _project(weights: csr_array) -> NDArray[np.float64]:
    """Reduce pages to unit vectors (n, up to 50)."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    dimensions = min(_DIMENSIONS, *(size - 1 for size in weights.shape))
    reduced: NDArray[np.float64] = normalize(TruncatedSVD(dimensions, random_state=0).fit_transform(weights))
    return reduced


def _names(
    weights: csr_array, terms: Sequence[int], groups: Sequence[int], texts: Sequence[str], encoder: SparseEncoder
) -> tuple[str, ...]:
    """Name each group by the words with the most excess weight over all pages; no word names two groups.

    Words of titles come first: in a small library, many pages of a group share common words.
    """
    names: list[str] = []
    used: set[int] = set()
    mean = weights.mean(axis=0)
    for group in range(max(groups) + 1):
        members = [index for index, own in enumerate(groups) if own == group]
        excess = weights[members].mean(axis=0) - mean
        titles = Counter(
            term for index in members for term in encoder.encode_passage(texts[index].partition("\n")[0]).indices
        )
        excess *= [titles[term] or _NOT_IN_TITLE for term in terms]
        words: dict[int, str] = {}
        for column in np.argsort(-excess, kind="stable")[:_MAX_TERMS]:
            examples = [texts[index] for index in members if weights[index, column]][:_MAX_TEXTS]
            if terms[column] not in used and (word := _spelling(terms[column], examples, encoder)):
                words[terms[column]] = word
            if len(words) == _NAME_WORDS:
                break
        used |= words.keys()
        names.append(" · ".join(words.values()) or str(group + 1))
    return tuple(names)


def _spelling(term: int, texts: Sequence[str], encoder: SparseEncoder) -> str:
    """Return the most frequent spelling of a term in these texts; empty if it is not a word, such as a number."""
    spellings: Counter[str] = Counter()
    for text in texts:
        for start, end in sentence_spans(text):
            if term in encoder.terms(text[start:end]):
                words = ((word, encoder.terms_of_word(word)) for word in _words(text[start:end]))
                # A repeated single character is no word.
                spellings.update(word for word, own in words if own == (term,) != encoder.terms_of_word(word[0]))
    return min(spellings, key=lambda word: (-spellings[word], word), default="")


def _words(text: str) -> Iterator[str]:
    """Yield possible words: Latin ones, and two to four Chinese characters in a row."""
    yield from _WORD.findall(text)
    for run in _HAN_RUN.findall(text):
        yield from (run[at : at + size] for size in (2, 3, 4) for at in range(len(run) - size + 1))
