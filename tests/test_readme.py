"""The figures in the READMEs are those of the published tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READMES = pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])


def row(document: str, head: str) -> list[str]:
    """Return the cells after the first of a row in a published table."""
    (line,) = (line for line in read(f"docs/{document}").splitlines() if line.startswith(f"| {head} |"))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def percent(cell: str) -> str:
    return f"{float(cell.split()[0]):.0%}"


@READMES
def test_the_shares_of_quoted_answers_are_those_of_the_tables(readme: str) -> None:
    rows = [row("quality.md", f"xquad-{language}, contains the answer") for language in ("en", "zh")]
    expected = [percent(cells[column]) for column in (1, 2) for cells in rows]
    (line,) = (line for line in read(readme).splitlines() if "BM25" in line)
    assert re.findall(r"\d+%", line) == expected


@READMES
def test_the_share_of_natural_questions_is_that_of_the_table(readme: str) -> None:
    _, ours, _, nearest_two, *_ = row("quality.md", "natural, quotes contain the answer")
    (line,) = (line for line in read(readme).splitlines() if re.search(r"130 (?:questions|个问题)", line))
    assert re.findall(r"\d+%", line) == [percent(ours), percent(nearest_two)]


@READMES
def test_the_seconds_of_an_import_are_those_of_the_table(readme: str) -> None:
    _, theirs, ours, *_ = row("performance.md", "import of xquad-en, the whole command")
    (line,) = (line for line in read(readme).splitlines() if line.startswith(("| Importing XQuAD", "| 导入 XQuAD")))
    assert re.findall(r"(\d+) ?(?:s|秒)", line) == [f"{float(ours):.0f}", f"{float(theirs):.0f}"]
