"""No text can hold up the process: each pattern of the package takes time in proportion to what it reads.

The patterns and the strings are found by `benchmarks.patterns`; a new pattern is tried by being there.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from benchmarks.patterns import SECONDS, PatternUse, package_patterns, worst

# For a busy machine; the command tells the milliseconds.
_PATIENCE = 4
_all = functools.cache(package_patterns)
_ROOMS = ("rag.checking", "rag.reading", "rag.reasoning", "rag.web", "rag.ui")


def _slow(patterns: list[PatternUse]) -> list[str]:
    rows = [row for one in patterns if (row := worst(one))]
    return [f"{row.place}: {row}" for row in rows if not row.is_proportionate or row.seconds > _PATIENCE * SECONDS]


@pytest.mark.slow
@pytest.mark.parametrize("room", [*_ROOMS, ""])
def test_all_take_time_in_proportion(room: str) -> None:
    found = _all()
    inside = [one for one in found if (one.place.startswith(room) if room else not one.place.startswith(_ROOMS))]
    assert len(inside) > 10
    assert _slow(inside) == []


def test_patterns_are_found_wherever_they_stand() -> None:
    found = {one.place: one for one in _all()}
    assert "rag.checking.statements._NOTHING_FOUND" in found
    assert found["rag.web.guard._LABEL"].methods == ("fullmatch",)
    assert any(".TITLES" in place for place in found), "in a table"
    assert any(place.startswith("rag.retrieval.page_names:") for place in found), "inside a function"
    assert any(isinstance(one.pattern, bytes) for one in found.values())
    sources = Path(__file__).resolve().parents[1].joinpath("rag").rglob("*.py")
    assert len(found) > 0.8 * sum(source.read_text("utf-8").count("re.compile(") for source in sources)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\W*(?:sorry)?\W*(?:now)?not",
        r"\s+$",
        r"(?:\w+\s?)*;",
        r"(?:a|a)*$",
        r"<!--.*?-->",
        r"title: *(.*?) *$",
        r"(?:x+y?)+z",
        r"you.*said",
        rb"[a-z]+[0-9]",
        r"(['\"])(?:(?!\1).)*\1;|\d+\.\d*e",
    ],
)
def test_slow_ones_are_seen(pattern: str | bytes) -> None:
    assert _slow([PatternUse("here", pattern, re.DOTALL, ("search",))])


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"\s+$", "fullmatch"), (r"(?<!\s)\s++$", "search"), (r"\w++;", "match"), (r"a{1,20}b", "search")],
)
def test_quick_ones_pass(pattern: str, method: str) -> None:
    assert _slow([PatternUse("here", pattern, 0, (method,))]) == []
