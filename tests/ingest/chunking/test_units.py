"""Headings as they are written, and the path that they give to what stands below."""

from __future__ import annotations

import pytest

from rag.ingest.chunking.units import split_units


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# Bridges", "Bridges"),
        ("## 桥梁 ##", "桥梁"),
        ("# Bridges #  ", "Bridges"),
        ("#\tBridges\tof steel  \t", "Bridges\tof steel"),
        ("# A # B ###", "A # B"),
        ("# a" + " " * 300 + "x", "a" + " " * 196),
        ("# **Bold** title", "Bold** title"),
        ("###### `code`", "code"),
    ],
)
def test_titles(heading: str, title: str) -> None:
    units = split_units(f"Before.\n\n{heading}\n\nBelow it.", 900)
    assert [(unit.kind, unit.section) for unit in units][:2] == [("text", ()), ("heading", (title.rstrip(),))]
    assert units[-1].section == (title.rstrip(),)


@pytest.mark.parametrize("line", ["#Bridges", "####### Seven", "text # not", "    \\# not"])
def test_what_is_no_heading(line: str) -> None:
    assert {unit.kind for unit in split_units(f"{line}\n\nBelow it.", 900)} == {"text"}


@pytest.mark.parametrize("marks", ["# ", "## #", "#  ##  "])
def test_marks_alone_name_nothing(marks: str) -> None:
    units = split_units(f"{marks}\n\nBelow it.", 900)
    assert [(unit.kind, unit.section) for unit in units] == [("heading", ()), ("text", ())]
