"""Units of a page's text that chunkers combine: sentences, table rows, code blocks, headings.

Chunkers never cut a unit, so chunks have the properties of units: verbatim, in order, within the maximum size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag.patterns import lazy_regex
from rag.text import cluster_end, split_sentences, weigh

_HEADING = lazy_regex(r"(#{1,6})[ \t]+")
_FENCE = lazy_regex(r"[ \t]*(```|~~~)")
_SOFT_ENDS = (", ", "; ", ": ", "，", "；", "：", "、", ") ", "）", "\n", " ")

_MAX_JOINED_LENGTH = 40
"""Maximum total length of sentences or rows of one block that are joined into one unit."""

_MAX_TITLE = 200
"""Maximum characters of a heading in a heading path, which is stored and indexed with each chunk below it."""

Kind = Literal["text", "heading", "row", "code"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A span `text[start:end]` that no chunker cuts.

    `extra` is its weight (`rag.text.weigh`) minus its length. `starts_block` is true for the first unit of a block;
    `header` is the span of the table header that a row belongs to. `is_question` is true for a question.
    """

    start: int
    end: int
    extra: float
    kind: Kind
    section: tuple[str, ...]
    starts_block: bool
    header: tuple[int, int] | None = None
    is_question: bool = False

    @property
    def size(self) -> float:
        return self.end - self.start + self.extra


def span_size(units: Sequence[Unit]) -> float:
    """Return the weight of the slice of neighbouring `units`, including white space between them."""
    return units[-1].end - units[0].start + sum(unit.extra for unit in units)


def split_units(text: str, maximum: float) -> list[Unit]:
    """Cut `text` into units that weigh up to `maximum`, in order, covering all but white space."""
    units: list[Unit] = []
    path: list[tuple[int, str]] = []
    for kind, start, end in _blocks(text):
        if kind == "heading" and (heading := _parse_heading(text[start:end].strip())):
            path = [*(step for step in path if step[0] < heading[0]), heading]
        section = tuple(title for _, title in path if title)
        header = _find_table_header(text, start, end) if kind == "row" else None
        for i, (a, b) in enumerate(_pieces(text, kind, start, end, maximum)):
            own = None if header is None or a < header[1] else header
            is_question = text[a:b].rstrip().endswith(("?", "？"))
            unit = Unit(a, b, weigh(text[a:b]) - (b - a), kind, section, i == 0, own, is_question)
            if units and _belong_together(units[-1], unit):
                last = units.pop()
                unit = replace(last, end=b, extra=last.extra + unit.extra, is_question=is_question)
            units.append(unit)
    return units


def _parse_heading(line: str) -> tuple[int, str] | None:
    """Return the level and title of a heading, without Markdown marks; None for marks alone."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = line[match.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")
    title = title.strip("*_` ")
    return len(match[1]), title[: cluster_end(title, 0, _MAX_TITLE)].rstrip()


def _belong_together(unit: Unit, following: Unit) -> bool:
    """Return whether the two units are so short that a cut between them is not worth considering."""
    is_same_kind = unit.kind == following.kind and unit.header == following.header and not following.starts_block
    return is_same_kind and following.end - unit.start <= _MAX_JOINED_LENGTH


def _blocks(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Yield runs of lines of one kind: paragraphs, headings, tables, fenced code."""
    kind: Kind | None = None
    begin, at, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        here = _line_kind(line, fence)
        opens = _FENCE.match(line)
        if opens and (not fence or opens[1] == fence):
            fence = "" if fence else opens[1]
        starts_new = here != kind or here == "heading" or here is None or (kind == "code" and opens and bool(fence))
        if starts_new:
            if kind is not None:
                yield kind, begin, at
            begin, kind = at, here
        at += len(line)
    if kind is not None:
        yield kind, begin, at


def _line_kind(line: str, fence: str) -> Kind | None:
    if fence or _FENCE.match(line):
        return "code"
    if not line.strip():
        return None
    if _HEADING.match(line):
        return "heading"
    return "row" if line.lstrip().startswith("|") else "text"


def _pieces(text: str, kind: Kind, start: int, end: int, maximum: float) -> Iterator[tuple[int, int]]:
    if kind == "text":
        spans = split_sentences(text, start, end)
    elif kind == "heading" or (kind == "code" and weigh(text[start:end]) <= maximum):
        spans = [(start, start + len(text[start:end].rstrip()))]
    else:
        spans = _lines(text, start, end)
    for a, b in spans:
        yield from _cut_to_fit(text, a, b, maximum)


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans, at = [], start
    for line in text[start:end].splitlines(keepends=True):
        if body := line.rstrip():
            spans.append((at, at + len(body)))
        at += len(line)
    return spans


def _cut_to_fit(text: str, start: int, end: int, maximum: float) -> Iterator[tuple[int, int]]:
    """Cut a span that is too long at the last clause mark or space that fits, else between any two characters."""
    while end - start > maximum or weigh(text[start:end]) > maximum:
        length = _fitting_length(text, start, end, maximum)
        cut = max(text.rfind(mark, start + length // 2, start + length) + len(mark.rstrip(" ")) for mark in _SOFT_ENDS)
        if cut <= start + length // 2:
            cut = start + length
        cut = cluster_end(text, start, cut)
        yield start, start + len(text[start:cut].rstrip())
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _fitting_length(text: str, start: int, end: int, maximum: float) -> int:
    """Return how many code points from `start` weigh up to `maximum`; at least one."""
    low, high = 1, min(end - start, int(maximum))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if weigh(text[start : start + middle]) <= maximum else (low, middle - 1)
    return low


def _find_table_header(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of the header row, and its delimiter row if any, of the table at `text[start:end]`."""
    lines = _lines(text, start, end)
    if len(lines) < 3:
        return None
    has_rule = not text[lines[1][0] : lines[1][1]].strip("|-: \t")
    return lines[0][0], lines[1 if has_rule else 0][1]
