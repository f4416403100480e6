"""Answers compared with reference answers, as SQuAD and CMRC count."""

from __future__ import annotations

import pytest

from rag.evaluation.metrics import contains, exact_match, token_f1, tokens
from rag.text import is_chinese


@pytest.mark.parametrize(
    ("said", "golds", "em", "f1", "within"),
    [
        ("The Harbour Bridge!", ["harbour bridge"], 1.0, 1.0, 1.0),
        ("It was opened in 1932.", ["1932"], 0.0, 2 / 6, 1.0),  # 1 shared of 5 and 1
        ("It was opened in 1932.", ["in 1932", "March 1932"], 0.0, 4 / 7, 1.0),
        ("It was opened in 1932.", ["193"], 0.0, 0.0, 0.0),
        ("", ["1932"], 0.0, 0.0, 0.0),
        ("a cat, a cat and a dog", ["cat cat"], 0.0, 4 / 6, 1.0),  # cat cat and dog
        ("FULL Ｗｉｄｔｈ", ["full width"], 1.0, 1.0, 1.0),
        ("It was −5 °C.", ["5 °C"], 0.0, 4 / 6, 0.0),  # punctuation counts for nothing in F1
        ("It holds 1 234 kg.", ["1,234"], 0.0, 0.0, 1.0),
        ("一日票１８元。", ["一日票 18 元"], 1.0, 1.0, 1.0),
        ("地铁一日票18元", ["18元"], 0.0, 4 / 9, 1.0),  # 地铁一日票 18 元: 2 shared of 7 and 2
        ("气温为零下5度", ["5度"], 0.0, 4 / 9, 0.0),
        ("杭州和龙井", ["龙井和杭州"], 0.0, 4 / 10, 0.0),  # the longest common run counts, in order
    ],
)
def test_english_by_words_and_chinese_by_characters(
    said: str, golds: list[str], em: float, f1: float, within: float
) -> None:
    chinese = is_chinese(said)
    assert exact_match(said, golds, chinese) == em
    assert token_f1(said, golds, chinese) == pytest.approx(f1)
    assert contains(said, golds, chinese) == within


def test_latin_words_in_chinese_stay_whole() -> None:
    assert tokens("用 Python 3.12 写的", True) == ["用", "python", "3", "12", "写", "的"]
