from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.retrieval.retriever import mmr, pairwise_similarity


def order(relevance: list[float], similarity: list[list[float]], k: int, lambda_mult: float) -> list[int]:
    picks = mmr(relevance, np.array(similarity, dtype=np.float32), k, lambda_mult)
    return [pick.candidate for pick in picks if pick.place is not None]


TWINS = [[1.0, 0.99, 0.1], [0.99, 1.0, 0.1], [0.1, 0.1, 1.0]]


def test_a_repetition_gives_way_to_something_new() -> None:
    assert order([1.0, 0.95, 0.7], TWINS, 2, 0.7) == [0, 2]


def test_lambda_one_is_the_ranking_by_relevance() -> None:
    assert order([0.2, 0.9, 0.5], TWINS, 3, 1.0) == [1, 2, 0]


def test_what_was_left_out_tells_whom_it_repeats() -> None:
    picks = mmr([1.0, 0.95, 0.7], np.array(TWINS, dtype=np.float32), 2, 0.7)
    dropped = picks[-1]
    assert (dropped.candidate, dropped.place, dropped.repeats) == (1, None, 0)
    assert dropped.similarity == pytest.approx(0.99)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 15))
def test_every_candidate_appears_once(relevance: list[float], k: int) -> None:
    n = len(relevance)
    picks = mmr(relevance, np.eye(n, dtype=np.float32), k, 0.7)
    assert sorted(pick.candidate for pick in picks) == list(range(n))
    assert [p.place for p in picks if p.place is not None] == list(range(1, min(k, n) + 1))


def test_similarity_is_cosine_with_vectors_and_overlap_without() -> None:
    vectors = [np.array([1, 0], dtype=np.float32), np.array([0.6, 0.8], dtype=np.float32), None, None]
    terms = [frozenset({1, 2}), frozenset({9}), frozenset({2, 3}), frozenset({1, 2, 3})]
    similarity = pairwise_similarity(vectors, terms)
    assert similarity[0, 1] == pytest.approx(0.6)
    assert similarity[2, 3] == similarity[3, 2] == pytest.approx(2 / 3)
    assert similarity[0, 2] == 0.0
