"""The renderer for page text: shown as text, with spans of it highlighted.

Of the Markdown that extraction leaves, headings show bold, list items with a bullet, and tables as
tables, so that a passage reads as it does in its page. Nothing else is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rag.ui.escape import escape

HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+")
BULLET = re.compile(r"(?<![ \t])[ \t]*+[-*+][ \t]++")
ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
RULE = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
CELL = re.compile(r"(?<=\|)((?:[^|\\]|\\.)*)(?=\|)")


@dataclass(frozen=True, slots=True)
class _Span:
    """A piece of text with the parts of it to highlight, as (start, end) in order, none empty."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def cut(self, left: int, right: int) -> _Span:
        """The piece from `left` to `right`, without the white space at its ends."""
        text = self.text[left:right]
        left += len(text) - len(text.lstrip())
        return _Span(text.strip(), _clipped(self.marks, left, left + len(text.strip())))

    @property
    def marked(self) -> bool:
        return any(self.text[start:end].strip() for start, end in self.marks)

    def markdown(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end in self.marks:
            if marked := self.text[start:end].strip():
                parts += [escape(self.text[at:start]), f":yellow-background[{escape(marked)}]"]
                at = end
        return "".join([*parts, escape(self.text[at:])])


def _clipped(marks: Iterable[tuple[int, int]], left: int, right: int) -> tuple[tuple[int, int], ...]:
    """The marks within `left` to `right`, counted from `left`."""
    clipped = ((max(start, left) - left, min(end, right) - left) for start, end in marks)
    return tuple((start, end) for start, end in clipped if start < end)


def passage_markdown(text: str, *highlights: tuple[int, int] | None) -> str:
    """Page text as Streamlit Markdown, with `text[start:end]` highlighted for each of `highlights`, in order."""
    marks = tuple(span for span in highlights if span)
    blocks: list[str] = []
    for tabular, lines in groupby(_lines(text, marks), lambda line: ROW.fullmatch(line.text) is not None):
        rows = list(lines)
        blocks += [_table(rows)] if tabular else [_line(line) for line in rows]
    return "\n\n".join(filter(None, blocks))


def _lines(text: str, marks: tuple[tuple[int, int], ...]) -> Iterator[_Span]:
    place = 0
    for line in text.split("\n"):
        yield _Span(line, _clipped(marks, place, place + len(line)))
        place += len(line) + 1


def _line(line: _Span) -> str:
    heading, bullet = HEADING.match(line.text), BULLET.match(line.text)
    lead = heading or bullet
    body = line.cut(len(lead[0]) if lead else 0, len(line.text))
    shown = body.markdown()
    if heading and shown and not body.marked:
        return f"**{shown}**"
    return f"• {shown}" if bullet and shown else shown


def _table(rows: list[_Span]) -> str:
    """A Markdown table; rows without the rule under a header, as the later part of a long table, as lines.

    Only one of the first two rows can be the rule: a later row of dashes says that there is nothing in its cells.
    """
    rules = [place for place, row in enumerate(rows[:2]) if RULE.fullmatch(row.text)]
    rule = rules[-1] if rules else None
    cells = [
        [row.cut(*match.span(1)).markdown() for match in CELL.finditer(row.text)]
        for place, row in enumerate(rows)
        if place != rule
    ]
    if rule != 1:
        return "\n\n".join(" · ".join(filter(None, row)) for row in cells)
    width = max(map(len, cells))
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])
