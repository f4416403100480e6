"""Evidence and ranks, against examples worked by hand."""

from __future__ import annotations

from math import log2

import pytest

from rag.evaluation import metrics

BRIDGE = "The bridge was opened in 1932."  # 25 characters without white space
TOLL = "Its toll was lifted in 1988 after a vote."  # 33


def test_recall_counts_characters() -> None:
    texts = [BRIDGE, "Nothing of the kind."]
    assert metrics.character_recall([BRIDGE, TOLL], texts, 4000) == pytest.approx(25 / 58)
    assert metrics.character_recall([BRIDGE, TOLL], [BRIDGE, TOLL], 4000) == 1.0
    assert metrics.character_recall([TOLL], ["x" * 100, TOLL], 100) == 0.0


def test_all_needs_nine_tenths_of_each() -> None:
    assert metrics.has_all([BRIDGE, TOLL], [BRIDGE, TOLL[:-3]], 4000) == 1.0  # 30 of 33
    assert metrics.has_all([BRIDGE, TOLL], [BRIDGE, TOLL[:-8]], 4000) == 0.0  # 27 of 33


def test_a_quote_may_span_two_texts_and_be_spaced_otherwise() -> None:
    assert metrics.context_recall([BRIDGE, TOLL], [BRIDGE[:12], BRIDGE[12:].replace(" ", "\n")]) == 0.5


def test_ranks() -> None:
    covers = metrics.covered_quotes([BRIDGE, TOLL], ["no", TOLL, f"{BRIDGE} {TOLL}", "no"])
    assert covers == [set(), {1}, {0, 1}, set()]
    relevant = [bool(one) for one in covers]
    assert [metrics.hit(relevant, k) for k in (1, 2)] == [0.0, 1.0]
    assert (metrics.reciprocal_rank(relevant), metrics.reciprocal_rank(relevant, 1)) == (0.5, 0.0)
    assert metrics.precision(relevant, 5) == 2 / 5
    assert [metrics.recall(covers, 2, k) for k in (1, 2, 3)] == [0.0, 0.5, 1.0]
    assert metrics.average_precision(relevant) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert metrics.average_precision([False]) == 0.0


def test_ndcg_is_the_textbooks() -> None:
    """Järvelin and Kekäläinen's gains 3, 2, 3, 0, 1, 2 with a 3 and a 2 that were missed."""
    gains, ideal = [3.0, 2.0, 3.0, 0.0, 1.0, 2.0], [3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 1.0]
    dcg = 3 + 2 / log2(3) + 3 / 2 + 1 / log2(6) + 2 / log2(7)
    best = 3 + 3 / log2(3) + 3 / 2 + 2 / log2(5) + 2 / log2(6) + 2 / log2(7)
    assert metrics.ndcg(gains, ideal, 6) == pytest.approx(dcg / best)
    assert (dcg, dcg / best) == (pytest.approx(6.861, abs=1e-3), pytest.approx(0.785, abs=1e-3))
    assert metrics.ndcg([0.0], [0.0]) == 0.0


def test_what_is_covered_twice_or_together_gains_once() -> None:
    gains, ideal = metrics.grade_hits([{0}, {0, 1, 2}, {2}], [1.0, 2.0, 3.0, 5.0])
    assert (gains, ideal) == ([1.0, 3.0, 0.0], [1.0, 3.0, 0.0, 5.0])
    assert metrics.ndcg(*metrics.grade_hits([{0, 1}], [1.0, 1.0])) == 1.0
