"""The sentences of a chunk and their terms, which are stored with it: finding them takes longer than a search.

In packed form this is base64 of little-endian numbers: the length of the text and n, in 16 bits; n starts, ends, first
sentences and numbers of terms, in 16 bits; all terms, in 32 bits.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag.models.sparse import SparseEncoder
from rag.text import fenced_blocks, split_sentences

_MAX_LENGTH = 1 << 16  # characters; offsets are stored in 16 bits


class SentenceIndex(NamedTuple):
    """The n sentences of a text, and their t terms.

    start, end: offsets in the text, (n,). first: the first sentence that has to be read with each one, (n,). terms: as
    of `SparseEncoder.terms`, (t,); `of` is the sentence of each, (t,).
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    of: NDArray[np.int64]
    terms: NDArray[np.int64]


def index_sentences(text: str, encoder: SparseEncoder) -> SentenceIndex:
    """Return the sentences of a text, each code block as one, each table row with the header that it needs."""
    bounds = _find_bounds(text)
    terms = encoder.terms_within(text, tuple((start, end) for start, end, _ in bounds))
    columns = np.array(bounds, dtype=np.int64).reshape(-1, 3)
    of = np.repeat(np.arange(len(bounds)), [len(each) for each in terms])
    flat = np.fromiter((term for each in terms for term in sorted(each)), dtype=np.int64, count=len(of))
    return SentenceIndex(columns[:, 0], columns[:, 1], columns[:, 2], of, flat)


def pack(index: SentenceIndex, length: int) -> str:
    """Return the index of a text of `length` characters as text for `unpack`; empty if it is too long."""
    if length >= _MAX_LENGTH:
        return ""
    counts = np.bincount(index.of, minlength=len(index.start))
    numbers = np.concatenate(([length, len(counts)], index.start, index.end, index.first, counts)).astype("<u2")
    return base64.b64encode(numbers.tobytes() + index.terms.astype("<u4").tobytes()).decode("ascii")


def unpack(packed: str, text: str) -> SentenceIndex | None:
    """Return the index of `text` from `pack`, or None if it is empty, damaged, or of another text."""
    try:
        data = base64.b64decode(packed)
        length, size = np.frombuffer(data, "<u2", 2).tolist()
        start, end, first, counts = np.frombuffer(data, "<u2", 4 * size, 4).astype(np.int64).reshape(4, size)
        terms = np.frombuffer(data, "<u4", -1, 4 + 8 * size).astype(np.int64)
    except ValueError:
        return None
    numbers, edges = np.arange(size), np.stack((start, end), axis=1).ravel()
    if length != len(text) or counts.sum() != len(terms) or (first > numbers).any():
        return None
    if size and (edges[-1] > length or (edges[1:] < edges[:-1]).any()):  # an archive is untrusted
        return None
    return SentenceIndex(start, end, first, np.repeat(numbers, counts), terms)


def _find_bounds(text: str) -> list[tuple[int, int, int]]:
    blocks = fenced_blocks(text)
    bounds: list[tuple[int, int, int]] = []
    header: int | None = None
    for start, end in split_sentences(text):
        block = next((block for block in blocks if block[0] <= start < block[1]), None)
        if block and bounds and bounds[-1][1] >= start:
            continue
        if block:
            start, end = start, max(end, block[1])
        is_row = text.startswith("|", start)
        header = (len(bounds) if header is None else header) if is_row else None
        bounds.append((start, end, len(bounds) if header is None else header))
    return bounds
