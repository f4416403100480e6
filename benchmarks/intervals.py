"""How far a mean of a sample can be trusted: 95 % bootstrap intervals (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

ROUNDS = 2_000


def interval(values: Sequence[float], groups: Sequence[Hashable] = ()) -> tuple[float, float]:
    """Where the mean lies in 95 of 100 samples; the values of a group (a conversation, a site) are drawn together."""
    if not values:
        return 0.0, 0.0
    order = {group: place for place, group in enumerate(dict.fromkeys(groups or range(len(values))))}
    places = [order[group] for group in groups or range(len(values))]
    sums = np.bincount(places, weights=np.asarray(values, dtype=float))
    counts = np.bincount(places)
    drawn = np.random.default_rng(0).integers(0, len(order), (ROUNDS, len(order)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def told(values: Sequence[float], groups: Sequence[Hashable] = (), *, signed: bool = False) -> str:
    """The mean with its interval, for a table: `0.746 (0.69 to 0.80)`."""
    mean = sum(values) / max(1, len(values))
    low, high = interval(values, groups)
    form = "+.3f" if signed else ".3f"
    return f"{mean:{form}} ({low:{form}} to {high:{form}})"
