"""Comparison of two to four runs of the same questions: differences with confidence intervals and p-values.

A gate limits the loss of each metric against a baseline, and fails if the loss is significantly larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import Final
from xml.etree import ElementTree as Xml

import numpy as np
from numpy.typing import NDArray

from rag.errors import ConfigError
from rag.evaluation.cases import Case
from rag.evaluation.metrics import METRICS, Mask, Metric, Values, columns_of
from rag.evaluation.statistics import (
    ALPHA,
    PAIRED_ROUNDS,
    Difference,
    Estimate,
    Weights,
    bootstrap_weights,
    estimate,
    holm,
    mcnemar,
    paired_difference,
    pairs_needed,
    resample,
)

Scores = Mapping[str, Values]
"""The values of each question, by its id."""
MAX_SIDES: Final = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of a run, over the `n` of `total` questions that could be judged."""

    metric: Metric
    n: int
    total: int
    value: Estimate


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """The difference of a metric from the first run, over `total` questions; `p` is adjusted (Holm) for all metrics
    compared. It is `paired` if both runs answered the same questions."""

    metric: Metric
    total: int
    difference: Difference
    p: float
    paired: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """The values of one question in the runs; `delta` is the last minus the first."""

    case_id: str
    values: tuple[float | None, ...]

    @property
    def delta(self) -> float:
        first, last = self.values[0], self.values[-1]
        return 0.0 if first is None or last is None else last - first


def select(cases: Sequence[Case], languages: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
    """Return the ids of the cases with one of the languages and one of the tags; an empty filter means any."""
    return [
        case.id
        for case in cases
        if (not languages or case.language in languages) and (not tags or set(tags) & set(case.tags))
    ]


def figures(scores: Scores, ids: Sequence[str] | None = None) -> list[Figure]:
    """Return every metric that could be judged, with its interval."""
    rows = [scores[case_id] for case_id in (scores if ids is None else ids) if case_id in scores]
    columns, weights = columns_of(rows), bootstrap_weights(range(len(rows)))
    masks = ((metric, metric.mask(columns)) for metric in METRICS.values())
    result = [
        Figure(metric, int(mask.sum()), len(rows), estimate(metric.compute(weights, columns, mask)))
        for metric, mask in masks
        if mask.any()
    ]
    return [figure for figure in result if not isnan(figure.value.value)]


def compare(
    runs: Sequence[Scores], ids: Sequence[str] | None = None, names: Sequence[str] = ()
) -> list[list[MetricDifference]]:
    """Compare each other run with the first, by the metrics in `names` (default: all) that both have."""
    first, *rest = runs
    results = [_differences(first, run, ids, names) for run in rest]
    p_values = {
        (i, name): entry.p
        for i, row in enumerate(results)
        for name, entry in row.items()
        if entry.metric.better and entry.difference.verdict != "too_few"
    }
    adjusted = holm(p_values)
    return [[_adjust(entry, adjusted.get((i, name))) for name, entry in row.items()] for i, row in enumerate(results)]


def _adjust(compared: MetricDifference, p: float | None) -> MetricDifference:
    """Set the adjusted p-value; a difference that is no longer significant takes more questions to show."""
    if p is None or p <= ALPHA:
        return compared if p is None else replace(compared, p=p)
    difference = compared.difference
    needed = pairs_needed(difference.n, difference.delta.value, difference.error, ALPHA * difference.p / p)
    return replace(compared, p=p, difference=replace(difference, verdict="no_difference_shown", needed=needed))


class _Sides:
    """The values of two runs: of their common questions or, if there are none, as two independent samples."""

    def __init__(self, before: Scores, after: Scores, ids: Sequence[str] | None) -> None:
        sides = [[key for key in (side if ids is None else ids) if key in side] for side in (before, after)]
        common = [key for key in sides[0] if key in after]
        self.paired = bool(common)
        self.columns = [columns_of([side[key] for key in common or sides[i]]) for i, side in enumerate((before, after))]

    def masks(self, metric: Metric) -> list[Mask]:
        """Return masks of the questions on each side that have the metric."""
        masks = [metric.mask(columns) for columns in self.columns]
        return [masks[0] & masks[1]] * 2 if self.paired else masks

    def samples(self, metrics: Sequence[Metric]) -> list[NDArray[np.float64]]:
        """Return, for each side, each metric and its samples, (metrics, 1 + rounds); paired sides share samples."""
        return [self._resample(index, metrics) for index in range(len(self.columns))]

    def _resample(self, index: int, metrics: Sequence[Metric]) -> NDArray[np.float64]:
        columns = self.columns[index]
        masks = [self.masks(metric)[index] for metric in metrics]

        def compute(weights: Weights) -> NDArray[np.float64]:
            return np.array(
                [metric.compute(weights, columns, mask) for metric, mask in zip(metrics, masks, strict=True)]
            ).T

        units = len(next(iter(columns.values())))
        return resample(compute, units, PAIRED_ROUNDS, 0 if self.paired else index).T

    def exact_p(self, metric: Metric) -> float | None:
        """Return the p-value of McNemar's test for a binary metric of paired sides, else None."""
        if not (metric.binary and self.paired):
            return None
        pairs = zip(self.columns, self.masks(metric), strict=True)
        return mcnemar(*(columns[metric.name][mask] for columns, mask in pairs))


def _differences(
    before: Scores, after: Scores, ids: Sequence[str] | None, names: Sequence[str]
) -> dict[str, MetricDifference]:
    """Return the differences by metric, with unadjusted p-values."""
    sides = _Sides(before, after, ids)
    masks = {METRICS[name]: sides.masks(METRICS[name]) for name in names or METRICS}
    masks = {metric: both for metric, both in masks.items() if both[0].any() and both[1].any()}
    differences = {}
    for metric, *samples in zip(masks, *sides.samples(list(masks)), strict=True) if masks else ():
        n, total = min(int(mask.sum()) for mask in masks[metric]), len(masks[metric][0])
        higher, p = metric.better != "lower", sides.exact_p(metric)
        difference = paired_difference(n, samples[0], samples[1], higher=higher, p=p)
        if not isnan(difference.delta.value):
            differences[metric.name] = MetricDifference(metric, total, difference, difference.p, sides.paired)
    return differences


def rank_by_difference(runs: Sequence[Scores], metric: str, ids: Sequence[str] | None = None) -> list[Pair]:
    """Return the questions that have the metric in any run, largest change from the first to the last run first."""
    case_ids = list(dict.fromkeys(case_id for run in runs for case_id in run)) if ids is None else ids
    (column,) = METRICS[metric].needs[-1:]
    pairs = [Pair(case_id, tuple(run.get(case_id, {}).get(column) for run in runs)) for case_id in case_ids]
    rows = [pair for pair in pairs if any(value is not None for value in pair.values)]
    return sorted(rows, key=lambda pair: -abs(pair.delta))


# The gate


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric and the margin by which it may be worse."""

    metric: str
    margin: float


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A metric compared with its limit; `loss` is positive if it got worse."""

    limit: Limit
    compared: MetricDifference
    loss: Estimate

    @property
    def passes(self) -> bool:
        """True if the loss may be within the margin: its lower 95 % bound does not exceed the margin."""
        return self.loss.low <= self.limit.margin


def read_limits(text: str) -> list[Limit]:
    """Parse metrics with the allowed change for the worse, such as `recall@4000:-0.01,faithfulness:0,calls:+0`.

    Raises ConfigError for an unknown metric or one without a better direction, and for a change for the better.
    """
    return [_parse_limit(part.strip()) for part in text.split(",") if part.strip()]


def _parse_limit(part: str) -> Limit:
    name, _, value = part.rpartition(":")
    metric = METRICS.get(name)
    if metric is None or not metric.better:
        names = ", ".join(metric_row.name for metric_row in METRICS.values() if metric_row.better)
        raise ConfigError("gate_metric", name=name or part, known=names)
    try:
        change = float(value)
    except ValueError as error:
        raise ConfigError("gate_margin", name=name, value=value) from error
    margin = change if metric.better == "lower" else -change
    if margin < 0 or not isfinite(margin):
        raise ConfigError("gate_margin", name=name, value=value)
    return Limit(name, margin)


def check_limits(limits: Sequence[Limit], baseline: Scores, run: Scores) -> list[LimitCheck]:
    """Compare a run with its baseline. Raises ConfigError if a metric could not be judged on both sides."""
    (differences,) = compare([baseline, run], names=[limit.metric for limit in limits])
    by_name = {difference.metric.name: difference for difference in differences}
    if missing := [limit.metric for limit in limits if limit.metric not in by_name]:
        raise ConfigError("gate_unjudged", name=", ".join(missing))
    return [LimitCheck(limit, by_name[limit.metric], _loss(by_name[limit.metric])) for limit in limits]


def _loss(compared: MetricDifference) -> Estimate:
    delta = compared.difference.delta
    return delta if compared.metric.better == "lower" else Estimate(-delta.value, -delta.high, -delta.low)


def as_junit(name: str, checks: Sequence[LimitCheck]) -> str:
    """Return the checks as a JUnit test suite for CI systems, with one test per metric."""
    failures = sum(not item.passes for item in checks)
    suite = Xml.Element("testsuite", name=name, tests=str(len(checks)), failures=str(failures))
    for item in checks:
        test = Xml.SubElement(suite, "testcase", classname=name, name=item.limit.metric)
        message = f"loss {item.loss}, at most {item.limit.margin:g} allowed, {item.compared.difference.n} questions"
        if item.passes:
            Xml.SubElement(test, "system-out").text = message
        else:
            Xml.SubElement(test, "failure", message=message)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{Xml.tostring(suite, encoding='unicode')}\n"
