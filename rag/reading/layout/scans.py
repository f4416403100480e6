"""From recognized lines of a picture to the lines of a page: columns apart, rows together, unsure ones marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from rag.reading.layout.tables import arranged
from rag.reading.layout.words import Line, Word
from rag.text import UNSURE

_FEW_LETTERS = 5
"""A page with fewer letters than this has no text."""
_DROPPED = 0.6
_UNSURE = 0.8
_SAME_SIZE = (0.7, 1.35)
"""Letters this much smaller or larger than most are of one size with them: boxes are not exact."""
_FEWEST = 3
_FILLED = 0.6
_CROSSING = 0.2
_MARGIN = 0.2


Recognized = Mapping[str, Sequence[Sequence[Any]]]
"""The lines that `rag.reading.ocr` found on pages, by their numbers as JSON has them."""


@dataclass(frozen=True, slots=True)
class Scans:
    """How sure most letters of each recognized page are (0 to 1), by its number, and signals for the gate."""

    sure: dict[int, float]
    signals: tuple[str, ...]


def has_letters(page: Sequence[Line]) -> bool:
    """Whether a page has a text."""
    return sum(character.isalnum() for line in page for character in line.text) >= _FEW_LETTERS


def with_scans(pages: list[list[Line]], recognized: Recognized) -> Scans:
    """Put the lines that were recognized into the pages."""
    sure: dict[int, float] = {}
    signals: set[str] = set()
    for name, found in recognized.items():
        lines, share = _scanned(found)
        if has_letters(lines):
            pages[int(name) - 1] = lines
            sure[int(name)] = share
            signals |= {"ocr", "ocr_low"} if any(UNSURE in line.text for line in lines) else {"ocr"}
    return Scans(sure, tuple(sorted(signals)))


def _scanned(recognized: Sequence[Sequence[Any]]) -> tuple[list[Line], float]:
    """The lines of a page and how sure most of its letters are; those whose letters are guessed are left out."""
    kept = [(score, y, size, words) for score, y, size, words in recognized if score >= _DROPPED and words]
    letters = sum(len(word) for _, _, _, words in kept for word, _, _ in words)
    if not letters:
        return [], 0.0
    usual = median(size for _, _, size, _ in kept)
    smallest, largest = (factor * usual for factor in _SAME_SIZE)
    lines = []
    for score, y, size, words in kept:
        line = [Word(text, x, end, y, usual if smallest <= size <= largest else size) for text, x, end in words]
        if score < _UNSURE:
            line[-1] = replace(line[-1], text=f"{line[-1].text} {UNSURE}")
        lines.append(line)
    sure = sum(score * len(word) for score, _, _, words in kept for word, _, _ in words) / letters
    blocks = [_rows(block) for block in _blocks(sorted(lines, key=lambda line: -line[0].y), 0)]
    return [line for rows in blocks for line in arranged(rows, [], [], [False] * len(rows))], sure


def _rows(lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Lines from the top, those that stand beside each other as one."""
    rows: list[list[Word]] = []
    for line in lines:
        if rows and rows[-1][0].y - line[0].y < 0.5 * min(rows[-1][0].size, line[0].size):
            rows[-1] += [replace(word, y=rows[-1][0].y) for word in line]
        else:
            rows.append(list(line))
    return [sorted(row, key=lambda word: word.x) for row in rows]


def _blocks(lines: list[list[Word]], depth: int) -> Iterator[list[list[Word]]]:
    """Lines from the top in the order in which they are read: what stands left of a gap between columns comes first."""
    cut = _gutter(lines) if depth < 3 else None
    if cut is None:
        yield lines
        return
    sides: tuple[list[list[Word]], list[list[Word]]] = ([], [])
    for line in [*lines, []]:
        if line and not line[0].x < cut < line[-1].end:
            sides[line[0].x >= cut].append(line)
            continue
        for side in sides:
            if side:
                yield from _blocks(list(side), depth + 1)
                side.clear()
        if line:
            yield [line]


def _gutter(lines: Sequence[list[Word]]) -> float | None:
    """A place that parts two columns of full lines, which few lines cross; None where there is none."""
    if len(lines) < 2 * _FEWEST:
        return None
    left, right = min(line[0].x for line in lines), max(line[-1].end for line in lines)
    inner = left + _MARGIN * (right - left), right - _MARGIN * (right - left)
    size = median(line[0].size for line in lines)
    best: tuple[int, float] | None = None
    for place in sorted({line[0].x - 0.4 * size for line in lines if inner[0] < line[0].x < inner[1]}):
        crossing = sum(line[0].x < place < line[-1].end for line in lines)
        if best is None or crossing < best[0]:
            best = crossing, place
    if best is None or best[0] > _CROSSING * len(lines):
        return None
    sides = [line for line in lines if line[-1].end <= best[1]], [line for line in lines if line[0].x >= best[1]]
    return best[1] if all(map(_is_column, sides)) else None


def _is_column(lines: Sequence[list[Word]]) -> bool:
    """Whether lines fill the width that they have, as those of a text do and those of a table's column do not."""
    if len(lines) < _FEWEST:
        return False
    width = max(line[-1].end for line in lines) - min(line[0].x for line in lines)
    letters = median(sum(len(word.text) for word in line) for line in lines)
    return letters > 12 and median(line[-1].end - line[0].x for line in lines) > _FILLED * width
