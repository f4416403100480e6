from __future__ import annotations

import pytest

from rag.agent.citing.comparing.letters import Letters, atoms, squash


def stands(said: str, text: str) -> bool:
    return any(Letters([text]).find(list(atoms(said))))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("The “lamp” was wound", "So **the lamp was\n wound** at night."),
        ("10–20 days", "10-20 days"),
        ("5½ sacks", "5.5 sacks"),
        ("5 %", "5% of it"),
        ("十天", "约十天。"),
        ("F-16 jets", "The F-16 jets left."),
    ],
)
def test_white_space_and_marks_do_not_count(said: str, text: str) -> None:
    assert stands(said, text)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("35%", "3.5%"),
        ("5 °C", "-5 °C"),
        ("in C", "in C++"),
        ("port is", "airport is"),
        ("members vote", "non-members vote"),
        ("now here", "nowhere"),
        ("costs 20", "costs 20 million"),
        ("costs 20", "costs 20 to 30 dollars"),
        ("in 19", "in 1954"),
        ("人口为三", "人口为三百万"),
        ("九点", "九点半"),
        ("10²", "102"),
        ("$20", "€20"),
        ("in 44", "in 44 BC"),
    ],
)
def test_signs_and_borders_count(said: str, text: str) -> None:
    assert not stands(said, text)


def test_what_holds_a_match_is_told_with_whether_it_holds_more() -> None:
    letters = Letters(["It is red.", "It is blue and wide."])
    (place,) = letters.find(list(atoms("It is blue")))
    assert letters.covering(*place) == (1, 1, False)
    (place,) = letters.find(list(atoms("It is red")))
    assert letters.covering(*place) == (0, 0, True)


def test_squashed_text_knows_no_markup() -> None:
    assert squash("# It\n- **is** -5 %") == "itis-5%"
