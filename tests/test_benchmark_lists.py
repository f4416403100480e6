import pytest

from benchmarks.lists import score


def test_an_answer_is_scored_by_its_lines() -> None:
    text = "You need:\n\n- flour, 200 g [1]\n- a pinch of salt [1]\n\nBread keeps for a week. [2]"
    assert score(text, ["flour", "salt", "yeast"]) == pytest.approx((2 / 3, 2 * (2 / 3) * 0.5 / (2 / 3 + 0.5), 4.0))
    assert score("", ["flour"]) == (0.0, 0.0, 0.0)
