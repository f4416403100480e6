"""Statements that differ by one value from a page that supports or contradicts them: see value_pairs.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.checking.citations import check
from tests.support.answering import passage

TABLE = Path(__file__).with_name("value_pairs.txt")


def pairs() -> Iterator[tuple[str, str, str]]:
    for line in TABLE.read_text("utf-8").splitlines():
        if match := re.fullmatch(r"([^#].*[.。|]) ([=!]) (.+[.。|])", line):
            yield match[1], match[2], match[3]


@pytest.mark.parametrize(("said", "sign", "page"), list(pairs()))
def test_equal_values_are_accepted_and_others_refused(said: str, sign: str, page: str) -> None:
    (statement,) = check(f"{said} [1]", [passage(1, page)]).statements
    assert (statement.verdict == "supported") == (sign == "="), statement


def test_the_table_is_read() -> None:
    rows = [line for line in TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert len(list(pairs())) == len(rows) > 200
