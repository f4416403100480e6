from __future__ import annotations

import pytest

from rag.agent.citing.reading import Reading, squash


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
