from __future__ import annotations

import pytest

from rag.checking.terms import NUMBER, Number, read, read_number, stem


def test_content_words_by_their_stems_and_numbers_by_their_amount() -> None:
    terms = read("The guilds' bridges of Anvil were opened on 7 March 1932.").terms
    assert [term.key for term in terms] == ["guild", "bridg", "anvil", "open", "#7", "#3", "#1932"]
    assert [term.kind for term in terms if term.kind == "name"] == ["name"]
    assert [term.written for term in terms if term.kind == "number"] == [True, False, True]


def test_clauses_and_what_they_open_with() -> None:
    terms = read("The Grey Tower of Anvil is high, and the guild left.").terms
    assert [(term.key, term.clause) for term in terms if term.opens] == [
        ("grey", 0), ("tower", 0), ("guild", 2), ("left", 2),
    ]  # fmt: skip


def test_denials_are_counted() -> None:
    assert [read(text).denials for text in ("It isn't, and never was.", "没有开放。", "It is.", "非常好")] == [
        2,
        1,
        0,
        0,
    ]


def test_inflections_share_a_stem() -> None:
    assert len({stem(word) for word in ("stop", "stops", "stopped", "stopping")}) == 1


def number_in(text: str) -> Number:
    match = NUMBER.search(text)
    assert match
    return read_number(match)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200 people", 1200.0),
        ("1.2 million", 1.2e6),
        ("twenty-five", 25.0),
        ("三百零五", 305.0),
        ("一九四九", 1949.0),
        ("两万五千", 25_000.0),
        ("3.5亿", 3.5e8),
        ("百分之二十", 20.0),
    ],
)
def test_what_a_number_amounts_to(text: str, value: float) -> None:
    assert number_in(text).value == value


@pytest.mark.parametrize(
    ("stated", "source"),
    [
        ("30 metres", "30 m"),
        ("98 feet", "30 metres"),
        ("79 °F", "26.1 °C"),
        ("20%", "百分之二十"),
        ("120万", "1.2 million"),
        ("300", "298.7"),
        ("5公里", "5,000米"),
        ("12", "twelve"),
    ],
)
def test_the_same_amount_in_another_form(stated: str, source: str) -> None:
    assert number_in(stated).stands(number_in(source))


@pytest.mark.parametrize(
    ("stated", "source"),
    [("31 m", "30 m"), ("1932", "1931"), ("1900", "1901"), ("30 kg", "30 m"), ("298.7", "300"), ("5%", "5 km")],
)
def test_another_amount(stated: str, source: str) -> None:
    assert not number_in(stated).stands(number_in(source))
