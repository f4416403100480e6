"""A gate: the loss of each metric that is allowed against a baseline, and whether more was lost for certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from xml.etree import ElementTree as Xml

from rag.errors import ConfigError
from rag.evaluation.comparison import MetricDifference, Scores, compare
from rag.evaluation.metrics import METRICS
from rag.evaluation.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric, and by how much it may be worse."""

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
        """True if the loss may be within the margin: its lower 95 % bound does not exceed it."""
        return self.loss.low <= self.limit.margin


def read_limits(text: str) -> list[Limit]:
    """Parse `recall@4000:-0.01,faithfulness:0,calls:+0`: metrics with the change that is allowed, in the bad direction.

    Raises ConfigError for an unknown metric or one without a better side, and for a change in the good direction.
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


def check(limits: Sequence[Limit], baseline: Scores, run: Scores) -> list[LimitCheck]:
    """Compare a run with its baseline. Raises ConfigError if a metric could not be judged on both sides."""
    (differences,) = compare([baseline, run], names=[limit.metric for limit in limits])
    by_name = {difference.metric.name: difference for difference in differences}
    if missing := [limit.metric for limit in limits if limit.metric not in by_name]:
        raise ConfigError("gate_unjudged", name=", ".join(missing))
    return [LimitCheck(limit, by_name[limit.metric], _loss(by_name[limit.metric])) for limit in limits]


def _loss(compared: MetricDifference) -> Estimate:
    by = compared.difference.by
    return by if compared.metric.better == "lower" else Estimate(-by.value, -by.high, -by.low)


def as_junit(name: str, checks: Sequence[LimitCheck]) -> str:
    """Return a suite of tests, one for each metric, in the format of CI systems."""
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
