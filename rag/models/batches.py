"""Texts as rectangles of token ids: of like lengths together, so that little of a rectangle is padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Lengths are rounded up to this: each new shape costs compiling its kernels, about 0.3 ms an operation.
_STEP = 8
_MOST_TEXTS = 256
_LEAST_TOKENS = 128  # a smaller rectangle is not worth a thread of its own


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids and, for models that tell a pair's texts apart, token types, both (n, tokens), int64; lengths (n,)."""

    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    types: NDArray[np.int64] | None = None

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n, tokens): True for tokens, False for padding."""
        mask: NDArray[np.bool_] = np.arange(self.ids.shape[1]) < self.lengths[:, None]
        return mask


def padded(rows: Sequence[Sequence[int]], pad: int, most: int, types: Sequence[Sequence[int]] | None = None) -> Batch:
    """The rows as a rectangle, filled up with `pad` to a length that others share, at most `most` tokens."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    longest = int(lengths.max())
    width = max(longest, min(most, -(-longest // _STEP) * _STEP))
    return Batch(_filled(rows, pad, width), lengths, None if types is None else _filled(types, 0, width))


def grouped(lengths: Sequence[int], budget: int, workers: int) -> list[list[int]]:
    """Places in `lengths`, longest first, in groups of at most about `budget` tokens.

    There are as many groups as give each of the workers the same work; a last small one evens out.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    total = sum(lengths)
    rounds = max(1, -(-total // (budget * workers)))
    share = min(budget, max(_LEAST_TOKENS, -(-total // (rounds * workers))))
    groups: list[list[int]] = []
    begin = 0
    while begin < len(order):
        size = min(_MOST_TEXTS, max(1, round(share / max(1, lengths[order[begin]]))))
        groups.append(order[begin : begin + size])
        begin += size
    return groups


def _filled(rows: Sequence[Sequence[int]], fill: int, width: int) -> NDArray[np.int64]:
    filled = np.full((len(rows), width), fill, dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled
