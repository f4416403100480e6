from __future__ import annotations

import pytest

from rag.agent.citing.comparing.reading import Reading, squash


def numbers(text: str) -> list[tuple[float, str]]:
    return [(token.value, token.unit) for token in Reading(text).numbers]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1,000 people", 1000, ""),
        ("1000 people", 1000, ""),
        ("20%", 20, "%"),
        ("20 percent", 20, "%"),
        ("20 per cent of them", 20, "%"),
        ("百分之二十", 20, "%"),
        ("百分之20", 20, "%"),
        ("20％", 20, "%"),
        ("2.5 million", 2_500_000, ""),
        ("three hundred", 300, ""),
        ("twenty-five miles", 25, "mile"),
        ("5½ sacks", 5.5, ""),
        ("一九三二年", 1932, "year"),
        ("1932年", 1932, "year"),
        ("三百零五个", 305, ""),
        ("3万人", 30_000, ""),
        ("两千米", 2000, "m"),
        ("24 kilometres", 24, "km"),
        ("24公里", 24, "km"),
        ("$30", 30, "dollar"),
        ("50 Canadian dollars", 50, "cad"),
        ("80港元", 80, "hkd"),
        ("5 mg", 5, "mg"),
        ("5毫克", 5, "mg"),
        ("5 µg", 5, "μg"),
        ("5 MB", 5, "MB"),
        ("5 Mb", 5, "Mbit"),
        ("5 km²", 5, "km^2"),
        ("60 miles per hour", 60, "mile/h"),
        ("20 points", 20, ""),
        ("-5 °C", -5, "celsius"),
        ("minus 5 degrees", -5, "degree"),
        ("零下5度", -5, "degree"),
        ("气温-5度", -5, "degree"),
        ("the 1990s", 1990, "年代"),
        ("44 BC", -44, "year"),
        ("公元前44年", -44, "year"),
        ("9 am", 9, "clock"),
        ("9:30 p.m.", 21.5, "clock"),
        ("9:30", 9.5, "time"),
        ("下午3点", 15, "clock"),
        ("九点半", 9.5, "time"),
        ("noon", 12, "clock"),
        ("on Monday", 1, "weekday"),
        ("每周日", 7, "weekday"),
        ("三点五", 3.5, ""),
        ("3百万", 3_000_000, ""),
        ("二亿五千万", 250_000_000, ""),
        ("半小时", 0.5, "hour"),
        ("一个半小时", 1.5, "hour"),
        ("half an hour", 0.5, "hour"),
        ("an hour and a half", 1.5, "hour"),
        ("two hundred and six", 206, ""),
        ("one million", 1_000_000, ""),
        ("twenty-first", 21, ""),
        ("half of them", 50, "%"),
        ("三分之一", 100 / 3, "%"),
    ],
)
def test_numbers_are_read_by_value_and_unit(text: str, value: float, unit: str) -> None:
    assert numbers(text) == [(value, unit)]


@pytest.mark.parametrize("text", ["一个国家", "十分重要", "第一部分以外的一些", "one of them", "四川的百姓"])
def test_what_only_looks_like_a_number(text: str) -> None:
    assert [value for value, _ in numbers(text) if value > 1] == []


def test_months_are_numbers_and_words_like_them_are_not() -> None:
    assert numbers("On March 5, 1999") == [(3, "month"), (5, ""), (1999, "")]
    assert numbers("They may march on") == []
    assert numbers("It closed in May.") == [(5, "month")]


def test_a_date_in_digits_is_a_year_a_month_and_a_day() -> None:
    assert numbers("2024-03-05") == [(2024, "year"), (3, "month"), (5, "day")]
    assert numbers("31/12/2024") == [(31, "day"), (12, "month"), (2024, "year")]


def test_a_span_shares_its_unit() -> None:
    assert numbers("3 to 5 percent") == [(3, "%"), (5, "%")]
    assert numbers("2 to 5 pm") == [(14, "clock"), (17, "clock")]
    assert numbers("周一至五") == [(1, "weekday"), (5, "weekday")]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("version 3.1", "version 3.10", False),
        ("3.1", "3.10", False),
        ("3.1 km", "3.10 km", True),
        ("5 kg", "5000 g", True),
        ("24 months", "2 years", True),
        ("30 days", "1 month", False),
        ("£5", "5 pounds", True),
        ("£5", "$5", False),
        ("9", "9 am", True),
        ("9 pm", "9", False),
        ("1234567", "1234568", False),
        ("5", "5%", False),
    ],
)
def test_numbers_are_the_same_by_what_they_measure(one: str, other: str, same: bool) -> None:
    assert Reading(one).numbers[0].same(Reading(other).numbers[0]) is same


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It was not built", 1),
        ("It was built", 0),
        ("不是首都", 1),
        ("不仅是首都", 0),
        ("从未建成", 1),
        ("非洲南部", 0),
        ("They cannot and never will", 2),
        ("not only text but also images", 0),
        ("no fewer than 50", 0),
        ("no longer open", 1),
        ("gold rather than silver", 1),
        ("smoking is prohibited", 1),
        ("不少于50人", 0),
        ("不超过50人", 0),
        ("政局不稳定", 1),
        ("不满18岁", 0),
        ("表示不满", 1),
        ("性别", 0),
        ("禁止入内", 1),
        ("不得入内", 1),
        ("不得不走", 0),
    ],
)
def test_denials_are_counted_and_words_that_hold_their_signs_are_not(text: str, count: int) -> None:
    assert len(Reading(text).negated) == count


def test_names_are_told_from_the_beginning_of_a_sentence() -> None:
    tokens = {token.raw: token.kind for token in Reading("Bridges in Sydney were built. Later NASA came.").tokens}
    assert (tokens["Bridges"], tokens["Sydney"], tokens["NASA"]) == ("word", "name", "name")


def test_forms_and_synonyms_are_the_same_token() -> None:
    for one, other in (("began", "started"), ("stopped", "stops"), ("wrote", "written"), ("cities", "city")):
        assert Reading(one).tokens[0].same(Reading(other).tokens[0]), one


def test_squashed_text_knows_no_markup() -> None:
    assert squash("**The “lamp”** was\n wound（4）") == "thelampwaswound4"
