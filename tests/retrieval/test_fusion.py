from __future__ import annotations

import pytest

from rag.retrieval.fusion import weighted


def test_each_leg_is_divided_by_its_best() -> None:
    fused = weighted({"dense": {"a": 0.8, "b": 0.4}, "sparse": {"a": 5.0, "b": 10.0}}, dense_weight=0.5)
    assert fused == pytest.approx({"a": 0.5 * 1.0 + 0.5 * 0.5, "b": 0.5 * 0.5 + 0.5 * 1.0})


def test_a_missing_dense_score_is_the_lowest_found_and_a_missing_keyword_score_is_none() -> None:
    fused = weighted({"dense": {"a": 0.8, "b": 0.4}, "sparse": {"c": 10.0, "a": 5.0}}, dense_weight=0.5)
    assert fused["c"] == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)
    assert fused["b"] == pytest.approx(0.5 * 0.5)


def test_one_leg_alone_counts_fully() -> None:
    assert weighted({"sparse": {"a": 4.0, "b": 1.0}}) == {"a": 1.0, "b": 0.25}


def test_nothing_found() -> None:
    assert weighted({"dense": {}, "sparse": {}}) == {}


def test_scores_of_zero_and_less_do_not_divide() -> None:
    assert weighted({"dense": {"a": -0.2, "b": -0.4}, "sparse": {"a": 2.0}})["a"] == pytest.approx(0.5)
