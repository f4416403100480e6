from __future__ import annotations

import pytest

from rag.agent.citing.numbers import NUMBER, Number, read_number


def read(text: str) -> Number:
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
    assert read(text).value == value


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
    assert read(stated).stands(read(source))


@pytest.mark.parametrize(
    ("stated", "source"),
    [("31 m", "30 m"), ("1932", "1931"), ("1900", "1901"), ("30 kg", "30 m"), ("298.7", "300"), ("5%", "5 km")],
)
def test_another_amount(stated: str, source: str) -> None:
    assert not read(stated).stands(read(source))
