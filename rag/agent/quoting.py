"""How a sentence of a page, or a line of its code, is written into an answer: as prose, with its code as it is."""

from __future__ import annotations

import re
from typing import Final

from rag.checking.marks import code_spans

_LIST_MARKS: Final = re.compile(r"^(?:\s*(?:[-*+•>]|\d{1,3}[.)])\s+)+")
_BOLD: Final = re.compile(r"(?<![A-Za-z0-9*])\*\*(?=[^\s*])((?:[^*\n]++|\*(?!\*))++)(?<=[^\s*])\*\*(?![A-Za-z0-9*])")
_CUT_OFF: Final = re.compile(r"^\*\*(?=[^\s*])(?!.*\*\*)|(?<=[^\s*])\*\*$")  # the sentence's part of a longer emphasis
_UNDERLINED: Final = re.compile(r"(?<!\w)__(?=[^\s_])((?:[^_\n]++|_(?!_))++)(?<=[^\s_])__(?!\w)")
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*")


def as_prose(text: str) -> str:
    """A sentence without list marks, table bars and emphasis, on one line; code in it stays to the letter."""
    bare = " ".join(_LIST_MARKS.sub("", text).split())
    if bare.startswith("|"):
        bare = " · ".join(filter(None, _cells(bare)))
    written, at = "", 0
    for start, end in code_spans(bare):
        written += _without_emphasis(bare[at:start]) + bare[start:end]
        at = end
    return written + _without_emphasis(bare[at:])


def as_row(row: str, header: str) -> str:
    """A row of a table as prose, each cell but the first with the name of its column: `Team: 79 € (Price)`."""
    (first, *cells), (_, *names) = _cells(row), _cells(header)
    if not first or not any(cells) or len(cells) != len(names):
        return as_prose(row)
    told = (f"{cell} ({name})" if name else cell for cell, name in zip(cells, names, strict=True) if cell)
    return as_prose(f"{first}: {' · '.join(told)}")


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def as_code(line: str) -> str:
    """A line of code, between more backticks than it holds in a row."""
    line = line.strip()
    marks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    room = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{marks}{room}{line}{room}{marks}"


def _without_emphasis(text: str) -> str:
    """`2 ** 3` and `__init__` are none, though nothing marks them as code; the latter would read as bold."""
    return _UNDERLINED.sub(_name_or_words, _CUT_OFF.sub("", _BOLD.sub(r"\1", text)))


def _name_or_words(underlined: re.Match[str]) -> str:
    return as_code(underlined[0]) if _IDENTIFIER.fullmatch(underlined[1]) else underlined[1]
