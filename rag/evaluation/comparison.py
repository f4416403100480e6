"""Two to four runs of the same questions side by side: what differs, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag.evaluation.cases import Case
from rag.evaluation.metrics import METRICS, Metric, Values, Which, columns_of
from rag.evaluation.statistics import (
    ALPHA,
    PAIRED_ROUNDS,
    Difference,
    Estimate,
    Weights,
    draws,
    estimate,
    holm,
    mcnemar,
    paired_difference,
    pairs_needed,
    resample,
)

Scores = Mapping[str, Values]
"""What each question came to, by its id."""
MOST: Final = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of a run: over `n` of its `of` questions; the others could not be judged."""

    metric: Metric
    n: int
    of: int
    value: Estimate


@dataclass(frozen=True, slots=True)
class Compared:
    """How a metric differs from the first run's, over `of` questions; `p` is Holm's over all metrics that are compared
    here. It is `paired` where both answered the same questions."""

    metric: Metric
    of: int
    difference: Difference
    p: float
    paired: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """One question's value in each of the runs, and by how much the last differs from the first."""

    case_id: str
    values: tuple[float | None, ...]

    @property
    def by(self) -> float:
        first, last = self.values[0], self.values[-1]
        return 0.0 if first is None or last is None else last - first


def select(cases: Sequence[Case], languages: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
    """The ids of the cases in one of the languages and with one of the tags; of all where none are given."""
    return [
        case.id
        for case in cases
        if (not languages or case.language in languages) and (not tags or set(tags) & set(case.tags))
    ]


def figures(scores: Scores, ids: Sequence[str] | None = None) -> list[Figure]:
    """Every metric that could be judged, with its interval."""
    rows = [scores[one] for one in (scores if ids is None else ids) if one in scores]
    columns, weights = columns_of(rows), draws(range(len(rows)))
    judged = ((metric, metric.judged(columns)) for metric in METRICS.values())
    found = [
        Figure(metric, int(which.sum()), len(rows), estimate(metric.of(weights, columns, which)))
        for metric, which in judged
        if which.any()
    ]
    return [one for one in found if not isnan(one.value.value)]


def compare(
    runs: Sequence[Scores], ids: Sequence[str] | None = None, names: Sequence[str] = ()
) -> list[list[Compared]]:
    """Each further run beside the first: the metrics (by default all) that both could be judged by."""
    first, *others = runs
    found = [_differences(first, other, ids, names) for other in others]
    tested = {
        (place, name): one.p
        for place, each in enumerate(found)
        for name, one in each.items()
        if one.metric.better and one.difference.verdict != "too_few"
    }
    adjusted = holm(tested)
    return [
        [_adjust(one, adjusted.get((place, name))) for name, one in each.items()] for place, each in enumerate(found)
    ]


def _adjust(one: Compared, p: float | None) -> Compared:
    """What only was a difference by itself is none beside so many others, and takes more questions to show."""
    if p is None or p <= ALPHA:
        return one if p is None else replace(one, p=p)
    alone = one.difference
    needed = pairs_needed(alone.n, alone.by.value, alone.error, ALPHA * alone.p / p)
    return replace(one, p=p, difference=replace(alone, verdict="no_difference_shown", needed=needed))


class _Sides:
    """The values of two runs: of the questions that both have, or, where they have none in common, two samples."""

    def __init__(self, before: Scores, after: Scores, ids: Sequence[str] | None) -> None:
        own = [[one for one in (side if ids is None else ids) if one in side] for side in (before, after)]
        both = [one for one in own[0] if one in after]
        self.paired = bool(both)
        self.columns = [columns_of([side[one] for one in both or own[at]]) for at, side in enumerate((before, after))]

    def judged(self, metric: Metric) -> list[Which]:
        """Which questions of each side count."""
        found = [metric.judged(columns) for columns in self.columns]
        return [found[0] & found[1]] * 2 if self.paired else found

    def samples(self, metrics: Sequence[Metric]) -> list[NDArray[np.float64]]:
        """Each metric of each side, and of its samples, (metrics, 1 + rounds): the same ones of the same questions."""
        return [self._sampled(at, metrics) for at in range(len(self.columns))]

    def _sampled(self, at: int, metrics: Sequence[Metric]) -> NDArray[np.float64]:
        columns = self.columns[at]
        judged = [self.judged(metric)[at] for metric in metrics]

        def drawn(weights: Weights) -> NDArray[np.float64]:
            return np.array(
                [metric.of(weights, columns, which) for metric, which in zip(metrics, judged, strict=True)]
            ).T

        units = len(next(iter(columns.values())))
        return resample(drawn, units, PAIRED_ROUNDS, 0 if self.paired else at).T

    def exact(self, metric: Metric) -> float | None:
        """What is right or wrong of the same questions is told by the exact test."""
        if not (metric.binary and self.paired):
            return None
        pairs = zip(self.columns, self.judged(metric), strict=True)
        return mcnemar(*(columns[metric.name][which] for columns, which in pairs))


def _differences(before: Scores, after: Scores, ids: Sequence[str] | None, names: Sequence[str]) -> dict[str, Compared]:
    """By metric, p-values as they are."""
    sides = _Sides(before, after, ids)
    judged = {METRICS[name]: sides.judged(METRICS[name]) for name in names or METRICS}
    judged = {metric: both for metric, both in judged.items() if both[0].any() and both[1].any()}
    found = {}
    for metric, *samples in zip(judged, *sides.samples(list(judged)), strict=True) if judged else ():
        n, of = min(int(one.sum()) for one in judged[metric]), len(judged[metric][0])
        higher, exact = metric.better != "lower", sides.exact(metric)
        difference = paired_difference(n, samples[0], samples[1], higher=higher, p=exact)
        if not isnan(difference.by.value):
            found[metric.name] = Compared(metric, of, difference, difference.p, sides.paired)
    return found


def by_difference(runs: Sequence[Scores], metric: str, ids: Sequence[str] | None = None) -> list[Pair]:
    """The questions that any of the runs could be judged by, those that differ most from first to last run first."""
    wanted = list(dict.fromkeys(one for run in runs for one in run)) if ids is None else ids
    (column,) = METRICS[metric].needs[-1:]
    pairs = [Pair(one, tuple(run.get(one, {}).get(column) for run in runs)) for one in wanted]
    known = [pair for pair in pairs if any(value is not None for value in pair.values)]
    return sorted(known, key=lambda pair: -abs(pair.by))
