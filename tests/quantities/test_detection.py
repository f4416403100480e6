from __future__ import annotations

import pytest

from rag.quantities.detection import find_sign, find_values, normalise
from rag.quantities.values import Value


def values(text: str) -> list[Value]:
    return find_values(normalise(text))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1,200 people in 2024年", ["#1200", "#2024"]),
        ("1.2 million", ["#1200000"]),
        ("1.2×10⁶ cells", ["#1200000"]),
        ("1½ and ¾", ["#1.5", "#0.75"]),
        ("−5 °C", ["#268.15(0, 0, 0, 0, 1)"]),
        ("from 5 to 7", ["#5≥", "#7≤"]),
        ("in 2010–2015", ["#2010", "#2015"]),
        ("pH ≤ 7", ["#7≤"]),
        ("6 March 2024", ["#306date", "#2024"]),
        ("2024-03-06", ["#306date", "#2024"]),
        ("5–7 March", ["#305date", "#307date"]),
        ("5:30 pm", ["#1050time"]),
        ("下午五点半", ["#1050time"]),
        ("noon on Monday", ["#1weekday"]),
        ("周一至周五", ["#1weekday", "#5weekday"]),
        ("1 : 3", ["#1:3ratio"]),
        ("2:6", ["#1:3ratio"]),
        ("Python 3.10", ["#3.10version"]),
        ("3.10 m", ["#3.1(1, 0, 0, 0, 0)"]),
        ("ERR-4012", ["#err4012"]),
        ("CVE-2024-1037", ["#cve20241037code"]),
        ("20世纪90年代, the 1990s", ["#1990scode", "#1990scode"]),
        ("六成的人", ["#60%"]),
        ("44 BC", ["#-44"]),
        ("公元前221年", ["#-221"]),
        ("the 3rd century BC", ["#-3"]),
        ("half past five, a quarter past six pm", ["#330time", "#1095time"]),
        ("两年半，身高1米75，10米半径", ["#30months", "#1.75(1, 0, 0, 0, 0)", "#10(1, 0, 0, 0, 0)"]),
        ("每公斤25元", ["#25CNY/(0, 1, 0, 0, 0)"]),
        ("1 hour and 30 minutes", ["#5400(0, 0, 1, 0, 0)"]),
        ("三四线城市", ["#3", "#4"]),
        ("rooms 3, 5 and 7", ["#3", "#5", "#7"]),
        ("共3，5两间", ["#3", "#5", "#2"]),
        ("二十四", ["#24"]),
    ],
)
def test_what_a_text_says(text: str, keys: list[str]) -> None:
    assert [one.key for one in values(text)] == keys


@pytest.mark.parametrize("text", ["may be", "march on", "a boat", "the 石头", "and/or", "十分之多"])
def test_what_is_no_value(text: str) -> None:
    assert [one for one in values(text) if one.is_explicit] == []


@pytest.mark.parametrize(
    ("stated", "source"),
    [
        ("30 metres", "30 m"),
        ("98 feet", "30 metres"),
        ("79 °F", "26.1 °C"),
        ("20%", "百分之二十"),
        ("120万", "1.2 million"),
        ("300", "298.7"),
        ("about 12,000", "12,100"),
        ("1.2 million", "1,213,456"),
        ("5公里", "5,000米"),
        ("12", "twelve"),
        ("5 km", "5"),
        ("5", "5 km"),
        ("5:30", "5:30 pm"),
        ("March", "6 March"),
        ("05/03/2024", "3 May 2024"),
        ("£25", "25 pounds"),
        ("$25", "25 Australian dollars"),
        ("$25", "$25 a night"),
        ("more than 5", "5"),
        ("4012", "ERR-4012"),
        ("350 °F", "350 degrees"),
    ],
)
def test_the_same_amount_in_another_form(stated: str, source: str) -> None:
    assert values(stated)[0].matches(values(source)[0])


@pytest.mark.parametrize(
    ("stated", "source"),
    [
        ("31 m", "30 m"),
        ("1932", "1931"),
        ("1900", "1901"),
        ("100", "101"),
        ("12,000", "12,100"),
        ("30 kg", "30 m"),
        ("298.7", "300"),
        ("5%", "5 km"),
        ("5 %", "5 visitors"),
        ("1 mile", "1 km"),
        ("more than 5", "less than 5"),
        ("5:30", "17:30"),
        ("A$25", "US$25"),
        ("25 cents", "25 dollars"),
        ("ERR-4012", "WRN-4012"),
        ("5 March", "6 March"),
        ("44 BC", "44"),
    ],
)
def test_another_amount(stated: str, source: str) -> None:
    assert not values(stated)[0].matches(values(source)[0])


@pytest.mark.parametrize(("stated", "source"), [("5 km", "5"), ("more than 5", "5"), ("5", "5–7"), ("5", "5 %")])
def test_what_one_side_adds_tells_only_in_a_copy(stated: str, source: str) -> None:
    (mine,), (their, *_) = values(stated), values(source)
    assert mine.matches(their)
    assert not mine.matches(their, is_quote=True)


def test_signs_are_those_that_tell_sentences_apart() -> None:
    assert [find_sign(char) for char in "→⟶➜⇐<≠✓|*a,"] == ["→", "→", "→", "←", "<", "≠", "✓", "", "", "", ""]


def test_a_long_text_takes_its_time_in_proportion() -> None:
    assert len(values("5 km, 3.1.4, 17:30, 6 March 2024 and $25 a night; " * 400)) == 2400
