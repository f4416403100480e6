from __future__ import annotations

import numpy as np
import pytest

from rag.models.embedding import SparseEncoder
from rag.retrieval.strategies import (
    HALF_WEIGHT_TERMS,
    MAX_TURNS,
    dense_query,
    fuse_by_score,
    sparse_query,
    term_weights,
)
from tests.support.hashed_model import HashedModel

SPARSE = SparseEncoder()


def term(word: str) -> int:
    (found,) = SPARSE.encode_query(word).indices
    return found


def test_a_first_question_is_searched_for_as_it_is() -> None:
    alone = SPARSE.encode_query("How wide is the crater?")
    asked = sparse_query("How wide is the crater?", [], SPARSE)
    assert (asked.indices, asked.values) == (alone.indices, alone.values)
    model = HashedModel()
    vector = dense_query("How wide is the crater?", [], model, SPARSE)
    assert np.allclose(vector, model.encode_query("How wide is the crater?"), atol=1e-6)


def test_older_words_count_less_and_a_words_largest_weight_counts() -> None:
    weights = term_weights("How wide is it?", ["Where is Aso?", "When did the crater of Aso erupt?"], SPARSE)
    assert weights[term("wide")] == 1.0 > weights[term("crater")] == weights[term("Aso")] > 0.0
    older = term_weights("How wide is it?", ["When did Aso erupt?", "Why?"], SPARSE)
    assert older[term("Aso")] == pytest.approx(0.5 * weights[term("Aso")])


def test_earlier_questions_count_less_for_a_more_specific_question() -> None:
    short = term_weights("How wide?", ["Where is Aso?"], SPARSE)
    long = term_weights("How wide is the crater lake north of the Kirishima mountains?", ["Where is Aso?"], SPARSE)
    assert long[term("Aso")] < 0.6 * short[term("Aso")]


def test_the_question_just_before_counts_half_beside_so_many_terms() -> None:
    question = "crater lake shore north"
    assert len(SPARSE.encode_query(question).indices) == HALF_WEIGHT_TERMS
    assert term_weights(question, ["Where is Aso?"], SPARSE)[term("Aso")] == pytest.approx(0.5)


def test_what_lies_far_back_is_forgotten() -> None:
    before = ["Where is Aso?", *(f"Why {word}?" for word in ("tea", "bridges", "lamps", "bells"))]
    assert len(before) == MAX_TURNS + 1 and term("Aso") not in term_weights("How?", before, SPARSE)


def test_the_query_vector_is_mixed_with_the_previous_question() -> None:
    model = HashedModel()
    alone, earlier = model.encode_query("How wide?"), model.encode_query("Where is Aso?")
    vector = dense_query("How wide?", ["Where is Aso?"], model, SPARSE)
    assert float(vector @ earlier) > float(alone @ earlier) and float(vector @ alone) > float(vector @ earlier)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert np.allclose(dense_query("How wide?", ["阿苏山在哪里？"], model, SPARSE), alone, atol=1e-6)


@pytest.mark.parametrize(
    ("legs", "fused"),
    [
        # Each leg is divided by its best.
        ({"dense": {"a": 0.8, "b": 0.4}, "sparse": {"a": 5.0, "b": 10.0}}, {"a": 0.75, "b": 0.75}),
        # A missing cosine counts as the lowest, a missing keyword score as 0.
        ({"dense": {"a": 0.8, "b": 0.4}, "sparse": {"c": 10.0, "a": 5.0}}, {"a": 0.75, "b": 0.25, "c": 0.75}),
        ({"sparse": {"a": 4.0, "b": 1.0}}, {"a": 1.0, "b": 0.25}),
        ({"dense": {}, "sparse": {}}, {}),
        ({"dense": {"a": -0.2, "b": -0.4}, "sparse": {"a": 2.0}}, {"a": 0.5, "b": 0.0}),
    ],
)
def test_scores_of_both_legs_are_fused(legs: dict[str, dict[str, float]], fused: dict[str, float]) -> None:
    assert fuse_by_score(legs) == pytest.approx(fused)
