from __future__ import annotations

import re
from decimal import Decimal

import pytest

from rag.quantities.values import (
    DIGITS,
    ENGLISH,
    Measure,
    find_compound_unit,
    find_measures,
    load_currencies,
    parse_chinese,
    parse_digits,
    parse_english,
)


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


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("km", "公里"),
        ("metres", "公尺"),
        ("m2", "square metres"),
        ("平方米", "m2"),
        ("km/h", "kilometres per hour"),
        ("公里/小时", "公里每小时"),
        ("% ".strip(), "percent"),
        ("volts", "V"),
        ("伏特", "V"),
        ("years", "年"),
        ("个百分点", "percentage points"),
        ("KG", "kg"),
        ("mcg", "\u03bcg"),
        ("Mbps", "megabits/second"),
        ("US dollars", "US$"),
        ("美元", "USD"),
    ],
)
def test_names_of_one_unit(name: str, other: str) -> None:
    assert find_measures(name)
    assert find_measures(name)[0] == find_measures(other)[0]


@pytest.mark.parametrize(
    ("name", "of", "times"),
    [("GW", "W", "1e9"), ("mA", "A", "0.001"), ("MHz", "Hz", "1e6"), ("‰", "%", "0.1"), ("decades", "years", "10")],
)
def test_prefixes_and_multiples(name: str, of: str, times: str) -> None:
    ((one, *_), (base, *_)) = find_measures(name), find_measures(of)
    assert one.kind == base.kind
    assert one.size == base.size * Decimal(times)


def test_a_name_may_stand_for_several() -> None:
    kinds = {measure.kind for measure in find_measures("pounds")}
    assert {"GBP", (0, 1, 0, 0, 0)} <= kinds
    assert {"USD", "AUD"} <= load_currencies()["$"]
    assert load_currencies()["A$"] == {"AUD"}
    assert load_currencies()["¥"] == {"CNY", "JPY"}
    assert "USD" not in load_currencies()["元"]


@pytest.mark.parametrize("name", ["people", "all", "top", "to", "分", "M", ""])
def test_what_is_no_unit(name: str) -> None:
    assert find_measures(name) == ()


def test_a_quotient_of_a_currency_is_of_its_own_kind() -> None:
    (measure,) = find_measures("€/kg")
    assert measure == Measure("EUR/(0, 1, 0, 0, 0)")


def test_units_of_the_calculator() -> None:
    unit = find_compound_unit("km/h")
    assert unit
    assert unit.symbol == "km/h"
    assert unit.size.dimension == (1, 0, -1, 0, 0)
    assert find_compound_unit("cubic furlongs") is None
