from __future__ import annotations

from dataclasses import replace

import pytest

from rag.checking.citations import check
from tests.support.answering import passage

TOWER = "The Grey Tower of Anvil is 30 metres high and was built in 1900 by the weavers' guild."


def judged(text: str, *pages: str) -> tuple[str, str]:
    """Return the verdict and the reason for one statement that cites all `pages`."""
    marks = "".join(f"[{n}]" for n in range(1, len(pages) + 1))
    (statement,) = check(f"{text} {marks}", [passage(n, page) for n, page in enumerate(pages, 1)]).statements
    return statement.verdict, statement.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The weavers' guild built it in 1900 and sold it to the crown.", "clause"),
        ("The weavers' guild is 30 metres high.", "clause"),
        ("Anvil was built in 1900 by the weavers' guild.", "clause"),
        ("The Grey Tower of Anvil is 31 metres high.", "numbers"),
        ("The Grey Tower of Anvil is not 30 metres high.", "negation"),
    ],
)
def test_what_plainly_does_not_stand_there_is_in_part_at_best(text: str, reason: str) -> None:
    assert judged(text, TOWER) == ("partly", reason)


@pytest.mark.parametrize(
    "text",
    [
        "The Grey Tower was built in 1900 by the weavers' guild.",
        "The weavers' guild built the Grey Tower of Anvil in 1900.",
        "The Grey Tower of Anvil is 98 feet high.",
    ],
)
def test_other_orders_parts_and_units_are_found(text: str) -> None:
    assert judged(text, TOWER) == ("supported", "words")


def test_a_denial_that_was_left_out_tells_in_a_copy() -> None:
    assert judged("The tower may be climbed at night.", "The tower may not be climbed at night.")[1] == "negation"


def test_letters_that_are_the_same_need_no_rule() -> None:
    text = "**The Grey Tower** of Anvil is 30 metres high and was built in 1900 by the weavers’ guild"
    assert judged(text, TOWER) == ("supported", "verbatim")


def test_passages_bear_a_statement_out_together() -> None:
    text = "The North Bridge was opened in 1932 and the South Bridge was closed in 1985."
    pages = ["The North Bridge was opened in 1932.", "The South Bridge was closed in 1985."]
    assert judged(text, *pages)[0] == "supported"
    assert judged(text, pages[0])[0] != "supported"


def test_a_statement_without_a_source_is_reported_as_not_found() -> None:
    assert judged("Penguins swim in cold water.", TOWER) == ("unsupported", "nothing_close")


def test_across_languages_only_numbers_and_names_tell() -> None:
    assert judged("这座塔高30米。", TOWER) == ("partly", "language")
    assert judged("这座塔高50米。", TOWER) == ("unsupported", "nothing_close")


def test_what_is_struck_out_bears_nothing_out() -> None:
    page = "A night in the tower costs ~~99 EUR~~ 79 EUR for two."
    assert judged("A night in the tower costs 79 EUR for two.", page)[0] == "supported"
    assert judged("A night in the tower costs 99 EUR for two.", page)[0] != "supported"


def test_a_row_is_read_with_the_header_of_its_table() -> None:
    row = replace(passage(1, "| Auk | 120 | 90 |\n| Tern | 15 | 16 |"), header="| Boat | 2021 | 2022 |")
    (told,) = check("Auk: 120 (2021) · 90 (2022) [1]", [row]).statements
    assert told.verdict == "supported"
