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
    compared."""

    metric: Metric
    total: int
    difference: Difference
    p: float


@dataclass(frozen=True, slots=True)
class CaseDifference:
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
    for (i, name), p in holm(p_values).items():
        difference = results[i][name].difference
        if p > ALPHA:  # it takes more questions to show
            needed = pairs_needed(difference.n, difference.delta.value, difference.error, ALPHA * difference.p / p)
            difference = replace(difference, verdict="no_difference_shown", needed=needed)
        results[i][name] = replace(results[i][name], p=p, difference=difference)
    return [list(row.values()) for row in results]


def _differences(
    before: Scores, after: Scores, ids: Sequence[str] | None, names: Sequence[str]
) -> dict[str, MetricDifference]:
    """Return the differences by metric, with unadjusted p-values.

    The runs are compared by their common questions or, if there are none, as two independent samples.
    """
    keys = [[key for key in (run if ids is None else ids) if key in run] for run in (before, after)]
    common = [key for key in keys[0] if key in after]
    paired = bool(common)
    columns = [columns_of([run[key] for key in common or own]) for run, own in zip((before, after), keys, strict=True)]
    masks: dict[Metric, list[Mask]] = {}
    for metric in (METRICS[name] for name in names or METRICS):
        both = [metric.mask(side) for side in columns]
        both = [both[0] & both[1]] * 2 if paired else both
        if both[0].any() and both[1].any():
            masks[metric] = both

    def samples(index: int) -> NDArray[np.float64]:
        """Return each metric's samples on a side, (metrics, 1 + rounds); paired sides have the same samples."""

        def compute(weights: Weights) -> NDArray[np.float64]:
            return np.array([metric.compute(weights, columns[index], both[index]) for metric, both in masks.items()]).T

        units = len(next(iter(columns[index].values())))
        return resample(compute, units, PAIRED_ROUNDS, 0 if paired else index).T

    differences = {}
    for metric, first, last in zip(masks, samples(0), samples(1), strict=True) if masks else ():
        both = masks[metric]
        is_exact = metric.binary and paired
        p = mcnemar(*(columns[side][metric.name][both[side]] for side in (0, 1))) if is_exact else None
        n = min(int(mask.sum()) for mask in both)
        difference = paired_difference(n, first, last, higher=metric.better != "lower", p=p)
        if not isnan(difference.delta.value):
            differences[metric.name] = MetricDifference(metric, len(both[0]), difference, difference.p)
    return differences


def rank_by_difference(runs: Sequence[Scores], metric: str, ids: Sequence[str] | None = None) -> list[CaseDifference]:
    """Return the questions that have the metric in any run, largest change from the first to the last run first."""
    case_ids = list(dict.fromkeys(case_id for run in runs for case_id in run)) if ids is None else ids
    (column,) = METRICS[metric].needs[-1:]
    pairs = [CaseDifference(case_id, tuple(run.get(case_id, {}).get(column) for run in runs)) for case_id in case_ids]
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
    limits = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = part.rpartition(":")
        metric = METRICS.get(name)
        if metric is None or not metric.better:
            known = ", ".join(row.name for row in METRICS.values() if row.better)
            raise ConfigError("gate_metric", name=name or part, known=known)
        try:
            margin = float(value) if metric.better == "lower" else -float(value)
        except ValueError as error:
            raise ConfigError("gate_margin", name=name, value=value) from error
        if margin < 0 or not isfinite(margin):
            raise ConfigError("gate_margin", name=name, value=value)
        limits.append(Limit(name, margin))
    return limits


def check_limits(limits: Sequence[Limit], baseline: Scores, run: Scores) -> list[LimitCheck]:
    """Compare a run with its baseline. Raises ConfigError if a metric could not be judged on both sides."""
    (differences,) = compare([baseline, run], names=[limit.metric for limit in limits])
    by_name = {difference.metric.name: difference for difference in differences}
    if missing := [limit.metric for limit in limits if limit.metric not in by_name]:
        raise ConfigError("gate_unjudged", name=", ".join(missing))
    checks = []
    for limit in limits:
        compared = by_name[limit.metric]
        delta = compared.difference.delta
        loss = delta if compared.metric.better == "lower" else Estimate(-delta.value, -delta.high, -delta.low)
        checks.append(LimitCheck(limit, compared, loss))
    return checks


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
