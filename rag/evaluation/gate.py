"""A gate: what may be lost against a baseline, metric by metric, and whether more was lost for certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from xml.etree import ElementTree as Xml

from rag.errors import ConfigError
from rag.evaluation.comparison import Compared, Scores, compare
from rag.evaluation.metrics import METRICS
from rag.evaluation.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric, and by how much it may be worse."""

    metric: str
    margin: float


@dataclass(frozen=True, slots=True)
class Checked:
    """A metric against its limit; `loss` is positive where it got worse."""

    limit: Limit
    compared: Compared
    loss: Estimate

    @property
    def passes(self) -> bool:
        """Whether the loss may lie within the margin: its lower 95 % bound does not exceed it."""
        return self.loss.low <= self.limit.margin


def read_limits(text: str) -> list[Limit]:
    """`recall@4000:-0.01,faithfulness:0,calls:+0`: a metric and the change that is allowed, in its bad direction.

    Raises ConfigError for a metric that is none or has no better side, and for a change in the good direction.
    """
    return [_limit(part.strip()) for part in text.split(",") if part.strip()]


def _limit(part: str) -> Limit:
    name, _, given = part.rpartition(":")
    metric = METRICS.get(name)
    if metric is None or not metric.better:
        known = ", ".join(one.name for one in METRICS.values() if one.better)
        raise ConfigError("gate_metric", name=name or part, known=known)
    try:
        change = float(given)
    except ValueError as error:
        raise ConfigError("gate_margin", name=name, value=given) from error
    margin = change if metric.better == "lower" else -change
    if margin < 0 or not isfinite(margin):
        raise ConfigError("gate_margin", name=name, value=given)
    return Limit(name, margin)


def check(limits: Sequence[Limit], baseline: Scores, run: Scores) -> list[Checked]:
    """Hold a run against its baseline. Raises ConfigError where a metric could not be judged on both sides."""
    (found,) = compare([baseline, run], names=[limit.metric for limit in limits])
    known = {one.metric.name: one for one in found}
    if missing := [limit.metric for limit in limits if limit.metric not in known]:
        raise ConfigError("gate_unjudged", name=", ".join(missing))
    return [Checked(limit, known[limit.metric], _loss(known[limit.metric])) for limit in limits]


def _loss(compared: Compared) -> Estimate:
    by = compared.difference.by
    return by if compared.metric.better == "lower" else Estimate(-by.value, -by.high, -by.low)


def as_junit(name: str, found: Sequence[Checked]) -> str:
    """A suite of tests, one for each metric, as CI systems read it."""
    failures = sum(not one.passes for one in found)
    suite = Xml.Element("testsuite", name=name, tests=str(len(found)), failures=str(failures))
    for one in found:
        test = Xml.SubElement(suite, "testcase", classname=name, name=one.limit.metric)
        told = f"loss {one.loss}, at most {one.limit.margin:g} allowed, {one.compared.difference.n} questions"
        if one.passes:
            Xml.SubElement(test, "system-out").text = told
        else:
            Xml.SubElement(test, "failure", message=told)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{Xml.tostring(suite, encoding='unicode')}\n"
