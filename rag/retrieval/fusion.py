"""Putting the rankings of several legs together.

A fusion takes the legs' answers, `{leg: {point id: score}}`, and gives `{point id: fused score}`.
"""

from __future__ import annotations

from rag.store.search import Legs


def weighted(legs: Legs, dense_weight: float = 0.5, sparse_weight: float = 0.5) -> dict[str, float]:
    """A convex combination of scores, each leg's divided by its best (Bruch et al., TOIS 2023). In 0 to 1.

    The weights need not sum to 1: what matters is the one beside the other. Of one leg alone they say nothing.

    A point that a leg did not return has at most that leg's lowest score there, which it is given for
    the dense leg; a keyword score that was not returned counts as 0. On every set that was measured
    this keeps what RRF throws away: how much better the first hit is than the second.
    """
    found = sorted(set().union(*legs.values()))
    if len(legs) == 1:
        weights = dict.fromkeys(legs, 1.0)
    else:
        total = (dense_weight + sparse_weight) or 1.0
        weights = {leg: (dense_weight if leg == "dense" else sparse_weight) / total for leg in legs}
    fused = dict.fromkeys(found, 0.0)
    for leg, scores in legs.items():
        best = max(scores.values(), default=0.0)
        if best <= 0.0:
            continue
        floor = max(0.0, min(scores.values())) if leg == "dense" else 0.0
        for point in found:
            fused[point] += weights[leg] * max(0.0, scores.get(point, floor)) / best
    return fused
