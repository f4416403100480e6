"""Comparisons: exact values, and simulated systems of which the truth is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rag.evaluation import statistics
from rag.evaluation.statistics import Difference, Weights, bootstrap_weights, holm, mcnemar, mean, paired_difference

CASES = 120


def paired(before: np.ndarray, after: np.ndarray, weights: Weights) -> Difference:
    return paired_difference(len(before), mean(weights, before), mean(weights, after))


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(0, 0, 1.0), (5, 0, 2 / 32), (6, 0, 2 / 64), (8, 2, 2 * (1 + 10 + 45) / 1024), (4, 4, 1.0)],
)
def test_mcnemar_is_the_binomial_tail(gained: int, lost: int, p: float) -> None:
    before, after = [0] * gained + [1] * lost + [1, 0], [1] * gained + [0] * lost + [1, 0]
    assert mcnemar(before, after) == pytest.approx(p)


def test_holm_by_hand() -> None:
    """The example of the textbooks: .01, .04, .03, .005."""
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == {"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06}


def test_weighted_quantiles() -> None:
    weights = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 4.0], [3.0, 1.0, 0.0, 0.0]])
    assert statistics.quantile(weights, [4.0, 1.0, 3.0, 2.0], 0.5).tolist() == [2.0, 2.0, 4.0]
    assert statistics.quantile(weights[:1], [4.0, 1.0, 3.0, 2.0], 0.95).tolist() == [4.0]


def test_blocks_are_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_CELLS", 50 * 1000)
    values = np.arange(50.0)
    found = statistics.resample(lambda weights: mean(weights, values), 50, rounds=3000)
    assert (len(found), found[0]) == (3001, 24.5)
    blocks = [found[1:1001], found[1001:2001], found[2001:]]
    assert not any(np.array_equal(one, other) for one, other in pairwise(blocks))


def test_equal_systems_are_rarely_called_different() -> None:
    """1,000 comparisons of systems whose true recall is the same, question by question."""
    random, weights = np.random.default_rng(13), bootstrap_weights(range(CASES), 2000)
    differ = exact = 0
    for _ in range(1000):
        hard = random.beta(0.8, 0.8, CASES)
        one, other = (np.clip(hard + random.normal(0, 0.15, CASES), 0, 1) for _ in range(2))
        differ += paired(one, other, weights).verdict != "no_difference_shown"
        right, wrong = (random.random(CASES) < hard for _ in range(2))
        exact += mcnemar(right, wrong) <= 0.05
    assert 30 <= differ <= 70
    assert exact <= 60, "an exact test errs on the safe side"


def test_the_estimated_number_of_cases_has_a_power_of_80_percent() -> None:
    random = np.random.default_rng(4)
    pilot = random.normal(0.05, 0.3, 40)
    weights = bootstrap_weights(range(40), 4000)
    first = paired_difference(40, np.zeros(4001), mean(weights, pilot))
    assert first.verdict == "no_difference_shown"
    assert first.needed
    needed, weights = first.needed, bootstrap_weights(range(first.needed), 1000)
    true = {"loc": pilot.mean(), "scale": pilot.std()}
    shown = sum(
        paired_difference(needed, np.zeros(1001), mean(weights, random.normal(size=needed, **true))).verdict == "better"
        for _ in range(300)
    )
    assert 0.7 <= shown / 300 <= 0.9


def test_verdicts() -> None:
    weights = bootstrap_weights(range(10), 500)
    low, high = mean(weights, np.zeros(10)), mean(weights, np.ones(10))
    assert paired_difference(10, low, high).verdict == "better"
    assert paired_difference(10, low, high, higher=False).verdict == "worse"
    assert paired_difference(10, low, low).verdict == "no_difference_shown"
    assert paired_difference(10, low, low).needed is None
    assert paired_difference(5, low, high).verdict == "too_few"
    assert paired_difference(10, low, high, p=0.2).verdict == "no_difference_shown", "an exact test has the word"
    assert paired_difference(10, low, np.full(501, np.nan)).verdict == "too_few"
