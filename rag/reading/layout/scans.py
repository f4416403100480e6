"""Layout of recognised pages: columns are separated, rows joined, uncertain lines marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from rag.reading.layout.tables import arrange_lines
from rag.reading.layout.words import Line, Word
from rag.text import UNSURE

_MIN_LETTERS = 5
"""A page with fewer letters and digits counts as empty."""
_MIN_SCORE = 0.6
_SURE_SCORE = 0.8
_SAME_SIZE = (0.7, 1.35)
"""Letters within these factors of the usual size count as that size, since boxes are inexact."""
_MIN_LINES = 3
_MIN_FILL = 0.6
_MAX_CROSSING = 0.2
_MARGIN = 0.2


RecognizedPages = Mapping[str, Sequence[Sequence[Any]]]
"""The lines that `rag.reading.ocr` found, by page number (a string, as JSON requires)."""


@dataclass(frozen=True, slots=True)
class Scans:
    """The mean confidence (0 to 1) in the letters of each recognised page by number, and the quality gate's signals."""

    confidence: dict[int, float]
    signals: tuple[str, ...]


def has_letters(page: Sequence[Line]) -> bool:
    """Return whether a page has text."""
    return sum(character.isalnum() for line in page for character in line.text) >= _MIN_LETTERS


def add_scans(pages: list[list[Line]], recognized: RecognizedPages) -> Scans:
    """Replace the lines of recognised pages in `pages`."""
    confidence: dict[int, float] = {}
    signals: set[str] = set()
    for name, items in recognized.items():
        lines, share = _read_lines(items)
        if has_letters(lines):
            pages[int(name) - 1] = lines
            confidence[int(name)] = share
            signals |= {"ocr", "ocr_low"} if any(UNSURE in line.text for line in lines) else {"ocr"}
    return Scans(confidence, tuple(sorted(signals)))


def _read_lines(items: Sequence[Sequence[Any]]) -> tuple[list[Line], float]:
    """Return a page's lines and the mean confidence in their letters; drop lines with a score below _MIN_SCORE."""
    rows = [(score, y, size, words) for score, y, size, words in items if score >= _MIN_SCORE and words]
    letters = sum(len(word) for _, _, _, words in rows for word, _, _ in words)
    if not letters:
        return [], 0.0
    usual = median(size for _, _, size, _ in rows)
    smallest, largest = (factor * usual for factor in _SAME_SIZE)
    lines = []
    for score, y, size, words in rows:
        line = [Word(text, x, end, y, usual if smallest <= size <= largest else size) for text, x, end in words]
        if score < _SURE_SCORE:
            line[-1] = replace(line[-1], text=f"{line[-1].text} {UNSURE}")
        lines.append(line)
    confidence = sum(score * len(word) for score, _, _, words in rows for word, _, _ in words) / letters
    blocks = [_join_rows(block) for block in _iter_blocks(sorted(lines, key=lambda line: -line[0].y), 0)]
    return [
        line for line_rows in blocks for line in arrange_lines(line_rows, [], [], [False] * len(line_rows))
    ], confidence


def _join_rows(lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Join lines at the same height into rows, from top to bottom."""
    rows: list[list[Word]] = []
    for line in lines:
        if rows and rows[-1][0].y - line[0].y < 0.5 * min(rows[-1][0].size, line[0].size):
            rows[-1] += [replace(word, y=rows[-1][0].y) for word in line]
        else:
            rows.append(list(line))
    return [sorted(row, key=lambda word: word.x) for row in rows]


def _iter_blocks(lines: list[list[Word]], depth: int) -> Iterator[list[list[Word]]]:
    """Yield blocks of lines in reading order: of two columns, the left one comes first."""
    gutter = _find_gutter(lines) if depth < 3 else None
    if gutter is None:
        yield lines
        return
    sides: tuple[list[list[Word]], list[list[Word]]] = ([], [])
    for line in [*lines, []]:
        if line and not line[0].x < gutter < line[-1].end:
            sides[line[0].x >= gutter].append(line)
            continue
        for side in sides:
            if side:
                yield from _iter_blocks(list(side), depth + 1)
                side.clear()
        if line:
            yield [line]


def _find_gutter(lines: Sequence[list[Word]]) -> float | None:
    """Return the x position of a gutter between two text columns that few lines cross, or None."""
    if len(lines) < 2 * _MIN_LINES:
        return None
    left, right = min(line[0].x for line in lines), max(line[-1].end for line in lines)
    inner = left + _MARGIN * (right - left), right - _MARGIN * (right - left)
    size = median(line[0].size for line in lines)
    best: tuple[int, float] | None = None
    for place in sorted({line[0].x - 0.4 * size for line in lines if inner[0] < line[0].x < inner[1]}):
        crossing = sum(line[0].x < place < line[-1].end for line in lines)
        if best is None or crossing < best[0]:
            best = crossing, place
    if best is None or best[0] > _MAX_CROSSING * len(lines):
        return None
    sides = [line for line in lines if line[-1].end <= best[1]], [line for line in lines if line[0].x >= best[1]]
    return best[1] if all(map(_is_column, sides)) else None


def _is_column(lines: Sequence[list[Word]]) -> bool:
    """Return whether lines fill their width, as in a column of text but not of a table."""
    if len(lines) < _MIN_LINES:
        return False
    width = max(line[-1].end for line in lines) - min(line[0].x for line in lines)
    letters = median(sum(len(word.text) for word in line) for line in lines)
    return letters > 12 and median(line[-1].end - line[0].x for line in lines) > _MIN_FILL * width
