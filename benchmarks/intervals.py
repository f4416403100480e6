"""How far a figure of a sample can be trusted: 95 % bootstrap intervals (Efron, 1979).

A figure is computed of weights: how often each unit was drawn. All samples are computed at once, the first of them
being the units as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDS = 1_000

Figures = NDArray[np.float64]
"""A figure of the units as they are, and of each sample: (1 + ROUNDS,)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, and where it lies in 95 of 100 samples."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def __format__(self, form: str) -> str:
        """`+` gives each of the three its sign."""
        return str(self) if form != "+" else f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def draws(groups: Sequence[Hashable], rounds: int = ROUNDS) -> NDArray[np.float64]:
    """How often each unit is drawn, (1 + rounds, units); those of a group (a conversation, a site) come together."""
    order = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    places = np.array([order[group] for group in groups], dtype=int)
    drawn = np.random.default_rng(0).multinomial(len(order), np.full(len(order), 1 / max(1, len(order))), rounds)
    return np.vstack([np.ones(len(order)), drawn])[:, places] if len(order) else np.ones((1 + rounds, 0))


def mean(weights: NDArray[np.float64], values: ArrayLike) -> Figures:
    return np.asarray(_share(weights @ np.asarray(values, dtype=float), weights.sum(axis=1)))


def balanced(weights: NDArray[np.float64], wrong: ArrayLike, flagged: ArrayLike) -> Figures:
    """The mean of the share of the wrong that is flagged, and of the others that is not."""
    bad, marked = np.asarray(wrong, dtype=float), np.asarray(flagged, dtype=float)
    recall = _share(weights @ (bad * marked), weights @ bad)
    spared = _share(weights @ ((1 - bad) * (1 - marked)), weights @ (1 - bad))
    return (recall + spared) / 2


def auroc(weights: NDArray[np.float64], wrong: ArrayLike, worth: ArrayLike) -> Figures:
    """How often a wrong one is worth less than another; a tie counts half."""
    order = np.argsort(np.asarray(worth, dtype=float), kind="stable")
    bad, ranked = np.asarray(wrong, dtype=float)[order], np.asarray(worth, dtype=float)[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.array([], dtype=int)
    if not len(starts):
        return np.zeros(len(weights))
    drawn = weights[:, order]
    wrongs, others = (np.add.reduceat(drawn * side, starts, axis=1) for side in (bad, 1 - bad))
    below = np.cumsum(wrongs, axis=1) - wrongs / 2
    return _share((below * others).sum(axis=1), wrongs.sum(axis=1) * others.sum(axis=1))


def estimate(figures: Figures) -> Estimate:
    low, high = np.nanpercentile(figures[1:], [2.5, 97.5])
    return Estimate(float(figures[0]), float(low), float(high))


def told(values: Sequence[float], groups: Sequence[Hashable] = (), *, signed: bool = False) -> str:
    """The mean with its interval, for a table: `0.746 (0.690 to 0.800)`."""
    found = estimate(mean(draws(groups or range(len(values))), values))
    return format(found, "+" if signed else "")


def _share(part: Figures, whole: Figures) -> Figures:
    """Not a number where nothing of the kind was drawn; such samples are left out of intervals."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
