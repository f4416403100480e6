from __future__ import annotations

import re
from decimal import Decimal

import pytest

from rag.quantities.values import DIGITS, ENGLISH, parse_chinese, parse_digits, parse_english


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567", "1234567"),
        ("1 234 567", "1234567"),
        ("1'234'567", "1234567"),
        ("1.234.567", "1234567"),
        ("12,34,567", "1234567"),
        ("1.234,5", "1234.5"),
        ("1,234.5", "1234.5"),
        ("1 234,567", "1234.567"),
        ("3,5", "3.5"),
        ("0,125", "0.125"),
        ("1,234", "1234"),
        ("1.234", "1.234"),
        (".5", "0.5"),
        ("2023", "2023"),
    ],
)
def test_digits_with_any_marks(text: str, value: str) -> None:
    match = re.match(DIGITS, text)
    assert match
    assert match[0] == text
    assert parse_digits(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("十", "10"),
        ("二十五", "25"),
        ("三百零五", "305"),
        ("一百五", "150"),
        ("三万五", "35000"),
        ("一千零五", "1005"),
        ("九百九十九", "999"),
        ("三百三十三", "333"),
        ("两亿零三万", "200030000"),
        ("一九四九", "1949"),
        ("三点一四", "3.14"),
        ("三点五亿", "350000000"),
        ("3.5亿", "350000000"),
        ("3万5000", "35000"),
        ("1亿2000万", "120000000"),
    ],
)
def test_chinese_numerals(text: str, value: str) -> None:
    assert parse_chinese(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "石头", "三石"])
def test_what_is_no_numeral(text: str) -> None:
    with pytest.raises(ValueError):
        parse_chinese(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("twenty-five", 25),
        ("a hundred and five", 105),
        ("one thousand two hundred and six", 1206),
        ("two million three hundred thousand", 2_300_000),
        ("a dozen", 12),
    ],
)
def test_english_words(text: str, value: int) -> None:
    match = re.match(ENGLISH, text)
    assert match
    assert match[0] == text
    assert parse_english(text) == value
