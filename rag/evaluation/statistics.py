"""How far a figure of a sample can be trusted, and whether two systems differ.

Intervals are bootstrap ones of 95 % (Efron 1979). A figure is computed of weights: how often each unit was drawn. All
samples are computed at once, the first of them being the units as they are. Two systems that answered the same
questions are compared by what is drawn for both; what is right or wrong by McNemar's exact test (1947). Where several
metrics are looked at, p-values are Holm's (1979).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb
from statistics import NormalDist
from typing import Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDS = 1_000
PAIRED_ROUNDS: Final = 10_000
ALPHA: Final = 0.05
POWER: Final = 0.8
FEWEST: Final = 6
"""Pairs below which nothing can be shown: five that all differ one way still do by chance in one case of sixteen."""
_CELLS: Final = 10_000_000  # weights that are held at a time

Name = TypeVar("Name", bound=Hashable)
Weights = NDArray[np.float64]
Figures = NDArray[np.float64]
"""A figure of the units as they are, and of each sample: (1 + rounds,)."""
Verdict = Literal["better", "worse", "no_difference_shown", "too_few"]


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


# Samples


def draws(groups: Sequence[Hashable], rounds: int = ROUNDS, seed: int = 0) -> Weights:
    """How often each unit is drawn, (1 + rounds, units); those of a group (a conversation, a site) come together."""
    order = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    if not order:
        return np.ones((1 + rounds, 0))
    places = np.array([order[group] for group in groups], dtype=int)
    drawn = np.random.default_rng(seed).multinomial(len(order), np.full(len(order), 1 / len(order)), rounds)
    return np.vstack([np.ones(len(order)), drawn])[:, places]


def resample(figure: Callable[[Weights], Figures], units: int, rounds: int = PAIRED_ROUNDS, sample: int = 0) -> Figures:
    """The figure of so many units and of each sample, whose weights are drawn a block at a time. Another `sample` is
    drawn apart from this one."""
    block = min(rounds, max(1, _CELLS // max(1, units)))
    sizes = [min(block, rounds - at) for at in range(0, rounds, block)]
    parts = [figure(draws(range(units), size, seed)) for seed, size in enumerate(sizes, 1_000_000 * sample)]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


# Figures


def share(part: Figures, whole: Figures) -> Figures:
    """Not a number where nothing of the kind was drawn; such samples are left out of intervals."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def mean(weights: Weights, values: ArrayLike) -> Figures:
    return np.asarray(share(weights @ np.asarray(values, dtype=float), weights.sum(axis=1)))


def quantile(weights: Weights, values: ArrayLike, q: float) -> Figures:
    """The smallest value that so large a share of the units does not exceed."""
    given = np.asarray(values, dtype=float)
    order = np.argsort(given, kind="stable")
    reached = np.cumsum(weights[:, order], axis=1)
    found = (reached >= q * reached[:, -1:] - 1e-9).argmax(axis=1)
    return np.where(reached[:, -1] > 0, given[order][found], np.nan)


def auroc(weights: Weights, wrong: ArrayLike, worth: ArrayLike) -> Figures:
    """How often a wrong one is worth less than another; a tie counts half."""
    order = np.argsort(np.asarray(worth, dtype=float), kind="stable")
    bad, ranked = np.asarray(wrong, dtype=float)[order], np.asarray(worth, dtype=float)[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(ranked) else np.array([], dtype=int)
    if not len(starts):
        return np.zeros(len(weights))
    drawn = weights[:, order]
    wrongs, others = (np.add.reduceat(drawn * side, starts, axis=1) for side in (bad, 1 - bad))
    below = np.cumsum(wrongs, axis=1) - wrongs / 2
    return share((below * others).sum(axis=1), wrongs.sum(axis=1) * others.sum(axis=1))


def estimate(figures: Figures) -> Estimate:
    """Without an interval (not a number) where no sample has a figure."""
    drawn = figures[1:][~np.isnan(figures[1:])]
    low, high = np.percentile(drawn, [2.5, 97.5]) if len(drawn) else (np.nan, np.nan)
    return Estimate(float(figures[0]), float(low), float(high))


# Comparisons


@dataclass(frozen=True, slots=True)
class Difference:
    """After less before, over `n` pairs, with its standard error. `needed` is how many pairs would show a difference as
    large as this one, in four of five attempts; None for none at all, or one that is shown."""

    n: int
    before: float
    after: float
    by: Estimate
    p: float
    verdict: Verdict
    error: float = 0.0
    needed: int | None = None


def paired_difference(
    n: int, before: Figures, after: Figures, *, higher: bool = True, p: float | None = None, alpha: float = ALPHA
) -> Difference:
    """The verdict on two figures of the same samples; `p` is that of an exact test, where there is one."""
    by = after - before
    found, sampled = estimate(by), by[1:][~np.isnan(by[1:])]
    p = _two_sided(sampled) if p is None else p
    if n < FEWEST or not len(sampled):
        return Difference(n, float(before[0]), float(after[0]), found, 1.0, "too_few")
    shown = p <= alpha and found.value != 0
    better: Verdict = "better" if (found.value > 0) == higher else "worse"
    verdict: Verdict = better if shown else "no_difference_shown"
    error = float(sampled.std())
    needed = None if shown else pairs_needed(n, found.value, error, alpha)
    return Difference(n, float(before[0]), float(after[0]), found, p, verdict, error, needed)


def _two_sided(sampled: Figures) -> float:
    """Twice the share of the samples on the rarer side of none; one more of each, so that none is sure."""
    rarer = min(int((sampled <= 0).sum()), int((sampled >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(sampled) + 1))


def mcnemar(before: ArrayLike, after: ArrayLike) -> float:
    """The exact two-sided p-value for pairs of what is right (1) or wrong (0)."""
    moved = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    gained, lost = int((moved > 0).sum()), int((moved < 0).sum())
    tail = sum(comb(gained + lost, one) for one in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << (gained + lost)))


def holm(ps: Mapping[Name, float]) -> dict[Name, float]:
    """The p-values adjusted so that one wrong finding among all of them is as rare as one alone would be."""
    found, least = dict[Name, float](), 0.0
    for place, name in enumerate(sorted(ps, key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - place) * ps[name]))
        found[name] = least
    return found


def pairs_needed(n: int, difference: float, error: float, alpha: float = ALPHA) -> int | None:
    """How many pairs show a difference in four of five attempts, where `n` pairs leave this standard error."""
    if not difference:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)
    return ceil(n * (reach * error / difference) ** 2)
