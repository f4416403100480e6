"""Sentence vectors without a forward pass: enough to see where a text changes its subject."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag.text import encodable

HASH_DIMENSION = 256


def sum_of_rows(table: NDArray[np.float32], ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """For each list of ids the sum of the table's rows, (n, d); zeros for no ids."""
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    sums = np.zeros((len(ids), table.shape[1]), dtype=np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids if row])
        starts = np.concatenate(([0], np.cumsum(lengths[filled])[:-1]))
        sums[filled] = np.add.reduceat(table[flat], starts, axis=0)
    return sums


def hashed_characters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Each text as a signed bag of hashed characters and character bigrams, (n, 256).

    For languages that the model's vocabulary does not hold. Hashing after Weinberger et al. 2009,
    "Feature Hashing for Large Scale Multitask Learning".
    """
    vectors = np.zeros((len(texts), HASH_DIMENSION), dtype=np.float32)
    for row, text in enumerate(texts):
        points = np.frombuffer(encodable(text).encode("utf-32-le"), dtype=np.uint32)
        grams = np.concatenate((points, points[:-1] * np.uint32(0x9E3779B1) ^ points[1:]))
        mixed = grams * np.uint32(0x85EBCA6B)
        mixed ^= mixed >> np.uint32(15)
        signs = np.where(mixed & np.uint32(1), 1.0, -1.0)
        buckets = (mixed >> np.uint32(1)) % np.uint32(HASH_DIMENSION)
        vectors[row] = np.bincount(buckets.astype(np.int64), weights=signs, minlength=HASH_DIMENSION)
    return vectors


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
    return scaled
