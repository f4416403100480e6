"""Confidence intervals for figures of a sample, and tests of whether two systems differ.

Intervals are 95 % bootstrap intervals (Efron 1979). Figures are computed from weights: how often each unit was drawn.
All samples are computed at once; the first one is the units themselves. Systems that answered the same questions are
compared on the same samples, binary metrics by McNemar's exact test (1947). The p-values of several metrics are
adjusted by Holm's method (1979).
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
MIN_PAIRS: Final = 6
"""Minimum number of pairs for a verdict: five pairs that all differ in the same direction still have p = 1/16."""
_CELLS: Final = 10_000_000  # weights in memory at a time

Name = TypeVar("Name", bound=Hashable)
Weights = NDArray[np.float64]
Figures = NDArray[np.float64]
"""A figure of the units themselves and of each sample, (1 + rounds,)."""
Verdict = Literal["better", "worse", "no_difference_shown", "too_few"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def __format__(self, form: str) -> str:
        """Format the estimate; `+` gives all three numbers a sign."""
        return str(self) if form != "+" else f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


# Samples


def bootstrap_weights(groups: Sequence[Hashable], rounds: int = ROUNDS, seed: int = 0) -> Weights:
    """Draw how often each unit is in each sample, (1 + rounds, units). Units of a group are drawn together."""
    order = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    if not order:
        return np.ones((1 + rounds, 0))
    places = np.array([order[group] for group in groups], dtype=int)
    counts = np.random.default_rng(seed).multinomial(len(order), np.full(len(order), 1 / len(order)), rounds)
    return np.vstack([np.ones(len(order)), counts])[:, places]


def resample(figure: Callable[[Weights], Figures], units: int, rounds: int = PAIRED_ROUNDS, sample: int = 0) -> Figures:
    """Return the figure of the units and of each sample, drawing weights in blocks; each `sample` is independent."""
    block = min(rounds, max(1, _CELLS // max(1, units)))
    sizes = [min(block, rounds - at) for at in range(0, rounds, block)]
    parts = [figure(bootstrap_weights(range(units), size, seed)) for seed, size in enumerate(sizes, 1_000_000 * sample)]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


# Figures


def share(part: Figures, whole: Figures) -> Figures:
    """Divide; the result is NaN where `whole` is 0, and intervals exclude such samples."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)


def mean(weights: Weights, values: ArrayLike) -> Figures:
    return np.asarray(share(weights @ np.asarray(values, dtype=float), weights.sum(axis=1)))


def quantile(weights: Weights, values: ArrayLike, q: float) -> Figures:
    """Return the smallest value that at least a share `q` of the units does not exceed."""
    array = np.asarray(values, dtype=float)
    order = np.argsort(array, kind="stable")
    cumulative = np.cumsum(weights[:, order], axis=1)
    index = (cumulative >= q * cumulative[:, -1:] - 1e-9).argmax(axis=1)
    return np.where(cumulative[:, -1] > 0, array[order][index], np.nan)


def auroc(weights: Weights, negatives: ArrayLike, scores: ArrayLike) -> Figures:
    """Return the AUROC: the probability that a negative scores lower than a positive; ties count half."""
    order = np.argsort(np.asarray(scores, dtype=float), kind="stable")
    flags, sorted_scores = np.asarray(negatives, dtype=float)[order], np.asarray(scores, dtype=float)[order]
    if not len(sorted_scores):
        return np.zeros(len(weights))
    starts = np.flatnonzero(np.r_[True, sorted_scores[1:] != sorted_scores[:-1]])
    counts = weights[:, order]
    wrongs, others = (np.add.reduceat(counts * side, starts, axis=1) for side in (flags, 1 - flags))
    below = np.cumsum(wrongs, axis=1) - wrongs / 2
    return share((below * others).sum(axis=1), wrongs.sum(axis=1) * others.sum(axis=1))


def estimate(figures: Figures) -> Estimate:
    """Return the estimate of a figure; its interval is NaN if no sample has a figure."""
    samples = figures[1:][~np.isnan(figures[1:])]
    low, high = np.percentile(samples, [2.5, 97.5]) if len(samples) else (np.nan, np.nan)
    return Estimate(float(figures[0]), float(low), float(high))


# Comparisons


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference after - before over `n` pairs, with its standard error. `needed` is the number of pairs that would
    show it (see `pairs_needed`); None if it is 0 or already shown."""

    n: int
    before: float
    after: float
    delta: Estimate
    p: float
    verdict: Verdict
    error: float = 0.0
    needed: int | None = None


def paired_difference(
    n: int, before: Figures, after: Figures, *, higher: bool = True, p: float | None = None
) -> Difference:
    """Compare two figures of the same samples; `p` is the p-value of an exact test, if there is one.

    Otherwise it is the bootstrap p-value: twice the share of samples on the rarer side of 0, smoothed to be above 0.
    """
    delta = after - before
    difference, samples = estimate(delta), delta[1:][~np.isnan(delta[1:])]
    if p is None:
        rarer = min(int((samples <= 0).sum()), int((samples >= 0).sum()))
        p = min(1.0, 2 * (rarer + 1) / (len(samples) + 1))
    if n < MIN_PAIRS or not len(samples):
        return Difference(n, float(before[0]), float(after[0]), difference, 1.0, "too_few")
    is_shown = p <= ALPHA and difference.value != 0
    better: Verdict = "better" if (difference.value > 0) == higher else "worse"
    verdict: Verdict = better if is_shown else "no_difference_shown"
    error = float(samples.std())
    pairs = None if is_shown else pairs_needed(n, difference.value, error)
    return Difference(n, float(before[0]), float(after[0]), difference, p, verdict, error, pairs)


def mcnemar(before: ArrayLike, after: ArrayLike) -> float:
    """Return the exact two-sided p-value for pairs of right (1) and wrong (0) answers."""
    changes = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    gains, losses = int((changes > 0).sum()), int((changes < 0).sum())
    tail = sum(comb(gains + losses, k) for k in range(min(gains, losses) + 1))
    return min(1.0, 2 * tail / (1 << (gains + losses)))


def holm(ps: Mapping[Name, float]) -> dict[Name, float]:
    """Adjust p-values by Holm's method, which controls the family-wise error rate."""
    result, floor = dict[Name, float](), 0.0
    for place, name in enumerate(sorted(ps, key=ps.__getitem__)):
        floor = max(floor, min(1.0, (len(ps) - place) * ps[name]))
        result[name] = floor
    return result


def pairs_needed(n: int, difference: float, error: float, alpha: float = ALPHA) -> int | None:
    """Return how many pairs show a difference with a power of 80 %, if `n` pairs have this standard error."""
    if not difference:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)
    return ceil(n * (reach * error / difference) ** 2)
