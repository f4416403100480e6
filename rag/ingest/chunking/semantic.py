"""Splitting by meaning: SemanticChunker's distances between neighbouring sentences, with limits on the size.

SemanticChunker alone cuts wherever a distance exceeds a percentile, which makes chunks of any size and embeds every
sentence three times. Here the distances come from static word vectors, which cost less than a hundredth of an
encoding, and dynamic programming chooses the cuts: where distances are large, with every chunk within the maximum and
near the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, split_units
from rag.ingest.chunking.recursive import RecursiveChunker
from rag.models.tokens import normalise
from rag.types import Chunk

PARAGRAPH_GAIN = 0.6
HEADING_GAIN = 4.0
MEANING_GAIN = 0.15
MAX_UNITS = 50_000
"""Pages with more units than this, a long book's worth, are filled up instead, which takes only seconds."""


class SemanticSplitter:
    """Chunks that end where the subject changes."""

    name = "semantic"

    def __init__(self, maximum: float = MAXIMUM, target: float = 0.0) -> None:
        """`target` is the preferred size of a chunk, by default seven ninths of the maximum."""
        self.maximum = maximum
        self.target = target or round(maximum * 7 / 9)

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        if not units:
            return []
        if len(units) > MAX_UNITS:
            return make_chunks(text, RecursiveChunker(self.maximum).fill(units))
        gains = self._score_cuts([text[u.start : u.end] for u in units], units, vectors)
        cuts = best_cuts(units, gains, self.maximum, self.target)
        bounds = [0, *cuts, len(units)]
        return make_chunks(text, [units[a:b] for a, b in pairwise(bounds)])

    def _score_cuts(self, sentences: list[str], units: Sequence[Unit], vectors: SentenceVectors) -> NDArray[np.float64]:
        """Return the gain of a cut before each unit, shape (n,), in units of the size penalty."""
        gains = np.zeros(len(units))
        if len(units) > 2:
            distances = semantic_distances(vectors(sentences))
            gains[1:] = MEANING_GAIN * (distances - distances.mean()) / (distances.std() + 1e-9)
        for i, unit in enumerate(units[1:], 1):
            if unit.kind == "heading" and units[i - 1].kind != "heading":
                gains[i] += HEADING_GAIN
            elif units[i - 1].kind == "heading":
                gains[i] = -10 * HEADING_GAIN
            elif unit.paragraph:
                gains[i] += PARAGRAPH_GAIN
        return gains


def semantic_distances(sums: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return cosine distances between neighbours, shape (n - 1,), each sentence combined with those around it.

    sums: (n, m). This is what SemanticChunker computes with a buffer of one sentence; it embeds each sentence three
    times, with its neighbours, whereas here the vectors of the three are added up.
    """
    vectors = sums.copy()
    vectors[1:] += sums[:-1]
    vectors[:-1] += sums[1:]
    vectors = normalise(vectors)
    distances: NDArray[np.float64] = 1.0 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:], dtype=np.float64)
    return distances


def best_cuts(units: Sequence[Unit], gains: NDArray[np.float64], maximum: float, target: float) -> list[int]:
    """Return the indices of the units that begin a new chunk, chosen to maximise gains less size penalties.

    Dynamic programming over cut positions; O(n · m) for n units, at most m of which fit a chunk. A chunk of size s
    costs ((s - target) / target) ** 2. A single unit always fits.
    """
    n = len(units)
    best, back = [0.0] + [float("inf")] * n, [0] * (n + 1)
    for end in range(1, n + 1):
        extra = 0.0
        for begin in range(end - 1, -1, -1):
            extra += units[begin].extra
            size = units[end - 1].end - units[begin].start + extra
            if size > maximum and begin < end - 1:
                break
            cost = best[begin] + ((size - target) / target) ** 2 - (gains[begin] if begin else 0.0)
            if cost < best[end]:
                best[end], back[end] = cost, begin
    cuts = []
    while n:
        n = back[n]
        if n:
            cuts.append(n)
    return cuts[::-1]
