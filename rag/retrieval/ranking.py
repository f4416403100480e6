"""Fusion of the rankings of several legs, and selection of results by maximal marginal relevance.

A fusion takes the legs' results, `{leg: {point id: score}}`, and returns `{point id: fused score}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.store.values import Legs


def fuse_by_score(legs: Legs, dense_weight: float = 0.5, sparse_weight: float = 0.5) -> dict[str, float]:
    """Return a convex combination of scores, each leg's divided by its best (Bruch et al., TOIS 2023). In 0 to 1.

    Only the ratio of the weights matters, and a single leg needs none.

    A point missing from the dense leg gets that leg's lowest score, its upper bound; a missing keyword score counts
    as 0. On every set that was measured this keeps what RRF discards: how much better the first hit is than the second.
    """
    points = sorted(set().union(*legs.values()))
    if len(legs) == 1:
        weights = dict.fromkeys(legs, 1.0)
    else:
        total = (dense_weight + sparse_weight) or 1.0
        weights = {leg: (dense_weight if leg == "dense" else sparse_weight) / total for leg in legs}
    fused = dict.fromkeys(points, 0.0)
    for leg, scores in legs.items():
        best = max(scores.values(), default=0.0)
        if best <= 0.0:
            continue
        floor = max(0.0, min(scores.values())) if leg == "dense" else 0.0
        for point in points:
            fused[point] += weights[leg] * max(0.0, scores.get(point, floor)) / best
    return fused


@dataclass(frozen=True, slots=True)
class Pick:
    """The outcome for a candidate: its place in the selection, or None.

    `similarity` is that to `repeats`, the nearest candidate picked before it.
    """

    candidate: int
    place: int | None
    repeats: int | None
    similarity: float


def mmr(relevance: Sequence[float], similarity: NDArray[np.float32], k: int, lambda_mult: float) -> list[Pick]:
    """Pick k of n candidates by λ · relevance - (1 - λ) · similarity to the nearest pick.

    Carbonell and Goldstein, SIGIR 1998. relevance: n numbers in 0 to 1; similarity: (n, n) in 0 to 1, which is cubed:
    passages on one topic are always somewhat alike, which is no reason to drop one, while near-duplicates stay near 1.
    (recall@4000 on chroma .919 plain, .926 cubed.)
    Returns n picks: the selected ones in order, then the others by relevance. Ties go to the first.
    """
    n = len(relevance)
    scores = np.asarray(relevance, dtype=np.float32)
    nearest = np.zeros(n, dtype=np.float32)
    repeats = np.full(n, -1)
    open_ = np.ones(n, dtype=bool)
    picks: list[Pick] = []
    for place in range(1, min(k, n) + 1):
        gain = np.where(open_, lambda_mult * scores - (1.0 - lambda_mult) * nearest**3, -np.inf)
        best = int(np.argmax(gain))
        open_[best] = False
        picks.append(_pick(best, place, repeats, nearest))
        is_closer = open_ & (similarity[best] > nearest)
        nearest[is_closer], repeats[is_closer] = similarity[best][is_closer], best
    rest = sorted(np.flatnonzero(open_).tolist(), key=lambda i: (-relevance[i], i))
    return picks + [_pick(i, None, repeats, nearest) for i in rest]


def _pick(candidate: int, place: int | None, repeats: NDArray[np.int64], nearest: NDArray[np.float32]) -> Pick:
    other = int(repeats[candidate])
    return Pick(candidate, place, None if other < 0 else other, float(nearest[candidate]))


def pairwise_similarity(
    vectors: Sequence[NDArray[np.float32] | None], terms: Sequence[frozenset[int]]
) -> NDArray[np.float32]:
    """Return similarities in 0 to 1, (n, n): cosine if both candidates have a vector, else term overlap.

    vectors: n of shape (d,), L2-normalised, or None if the model cannot read the text; two such texts overlap by the
    share of common `terms` (Jaccard), and not at all with one that has a vector.
    """
    n = len(vectors)
    result = np.zeros((n, n), dtype=np.float32)
    readable = {i: vector for i, vector in enumerate(vectors) if vector is not None}
    if readable:
        rows = np.stack(list(readable.values()))
        result[np.ix_(list(readable), list(readable))] = np.clip(rows @ rows.T, 0.0, 1.0)
    unreadable = {i for i in range(n) if i not in readable}
    for i in unreadable:
        for j in unreadable:
            union = len(terms[i] | terms[j])
            result[i, j] = len(terms[i] & terms[j]) / union if union else 0.0
    return result
