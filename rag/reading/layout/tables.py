"""What stands side by side on a page: tables row by row, columns of text one after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import mean, median

from rag.reading.layout.rules import Grid, Rule
from rag.reading.layout.words import Line, Word, cells_of, code_of, line_of, readable, text_of, usual_gap

_NUMBER = re.compile(r"[-+−–(<>~≈]{0,2}[$€£¥]?\s?\(?\d[\d.,\s]*\)?\s?[%)]?(?:\s?[^\W\d]{1,4})?(?:\[\^\d+\])?")
_YEAR = re.compile(r"(?:[^\W\d]{2}\s?)?(?:19|20)\d\d(?:[-–/]\d{2,4})?[A-Z年]?")
_LEADERS = re.compile(r"(?<![.·…\s])\s*+(?:[.·…]\s?+){4,}+\Z")
_LED = re.compile(r"(?:^|[.·…])[.·…]$")
_LONGEST = 40
_PITCH = 3.0
"""Rows that are further apart than this many times their size are of two tables."""
_MAX_COLUMNS = 40
_LOOK_BACK = 8
_MOST_HEADS = 4
_HEAD_PITCH = 2.2
Place = tuple[int, int]
Column = tuple[float, float]


@dataclass(slots=True)
class Cell:
    """What stands together in a row: one line, or several below each other."""

    lines: list[list[Word]]
    x: float
    end: float

    @property
    def text(self) -> str:
        text = ""
        for words in self.lines:
            more = text_of(words, words[0].y)
            is_divided = text.endswith("-") and text[-2:-1].isalpha() and more[:1].islower()
            text = text[:-1] + more if is_divided else f"{text} {more}".strip()
        return _LEADERS.sub("", text)


@dataclass(slots=True)
class Row:
    """Cells side by side, from `top` to `bottom`, the heights of their first and last line."""

    cells: list[Cell]
    top: float
    bottom: float
    size: float
    lines: list[list[Word]]


def arranged(
    lines: Sequence[list[Word]], grids: Sequence[Grid], level: Sequence[Rule], codes: Sequence[bool]
) -> list[Line]:
    """A page's lines with its tables, and columns that were drawn row by row one after the other.

    `level` are the level rules that the page draws, those of its `grids` among them; `codes` says of each line
    whether it is set in a typewriter's letters.
    """
    pieces: list[list[Word] | Line] = []
    for is_code, group in groupby(zip(lines, codes, strict=True), key=lambda pair: pair[1]):
        words = [line for line, _ in group]
        pieces += code_of(words) if is_code else words
    gap = usual_gap(lines)
    for grid in grids:
        if origins := grid.origins():
            pieces = _with_table(pieces, grid, origins, gap)
    found: list[Line] = []
    waiting: list[list[Word]] = []
    for piece in pieces:
        if isinstance(piece, Line):
            found += [*_read(waiting, gap, level), piece]
            waiting = []
        else:
            waiting.append(piece)
    return found + _read(waiting, gap, level)


def _with_table(
    pieces: list[list[Word] | Line], grid: Grid, origins: Mapping[Place, Place], gap: float
) -> list[list[Word] | Line]:
    """The pieces with what stands in a grid as one table, where its first line was."""
    cells: dict[Place, list[list[Word]]] = {}
    rest: list[list[Word] | Line] = []
    place = -1
    for piece in pieces:
        outside: list[Word] = []
        inside: dict[Place, list[Word]] = {}
        for word in () if isinstance(piece, Line) else piece:
            at = grid.cell((word.x + word.end) / 2, word.y + 0.3 * word.size)
            (outside if at is None else inside.setdefault(origins[at], [])).append(word)
        for at, words in inside.items():
            cells.setdefault(at, []).append(words)
            place = len(rest) if place < 0 else place
        if outside or isinstance(piece, Line):
            rest.append(outside or piece)
    is_flat = len({row for row, _ in cells}) < 2 or len({column for _, column in cells}) < 2 or len(cells) < 4
    if is_flat or any(_holds_rows(lines, gap) for lines in cells.values()):
        return pieces
    rows = [[origins[row, column] for column in range(len(grid.xs) - 1)] for row in range(len(grid.ys) - 1)]
    rows = [row for row in rows if any(at in cells for at in row)]
    columns = [n for n in range(len(rows[0])) if any(row[n] in cells for row in rows)]
    rows = [[row[n] for n in columns] for row in rows]
    if len(set(rows[0])) == 1:  # what stands across the whole table is its caption
        rest.insert(place, line_of([word for words in cells[rows[0][0]] for word in words]))
        place, rows = place + 1, rows[1:]
    heads = 1
    while heads < len(rows) - 1 and len(set(rows[heads - 1])) < len(columns):
        heads += 1
    table = [texts for row in rows for texts in _split([cells.get(at, []) for at in row])]
    rest.insert(place, _rendered(table, heads, next(iter(cells.values()))[0][0]))
    return rest


def _holds_rows(lines: Sequence[list[Word]], gap: float) -> bool:
    """Whether a cell of a grid holds rows of its own: not all of the table's columns are ruled."""
    return sum(len(cells_of(words, gap)) > 1 for words in lines) > 1


def _split(row: Sequence[list[list[Word]]]) -> list[list[str]]:
    """The lines of a row's cells as texts; as several rows where a cell holds numbers below each other."""
    heights = next((c for c in row if len(c) > 1 and all(_is_value(text_of(w, w[0].y)) for w in c)), [])
    edges = [words[0].y - 0.3 * words[0].size for words in heights[:-1]] + [-math.inf]
    parts: list[list[list[list[Word]]]] = [[[] for _ in row] for _ in edges]
    for column, lines in enumerate(row):
        for words in lines:
            parts[next(n for n, edge in enumerate(edges) if words[0].y >= edge)][column].append(words)
    return [[Cell(lines, 0, 0).text for lines in part] for part in parts]


def _read(lines: Sequence[list[Word]], gap: float, level: Sequence[Rule]) -> list[Line]:
    """Lines with the tables that have no rules, and columns that were drawn row by row one after the other."""
    rows, i = _rows(lines, gap), 0
    found: list[Line] = []
    waiting: list[Row] = []
    while i < len(rows):
        end = _run(rows, i)
        run = rows[i:end]
        columns = _clustered(run) if len(run) > 1 else []
        if _is_table(run, columns):
            above = _heads(waiting, columns, run[0])
            found += _plain(waiting[: len(waiting) - len(above)])
            found.append(_aligned(above, run, columns, level))
            waiting = []
        elif len(columns) > 1 and _are_prose(run, columns):
            found += [*_plain(waiting), *_one_by_one(run, columns)]
            waiting = []
        else:
            waiting += run
        i = end
    return found + _plain(waiting)


def _plain(rows: Sequence[Row]) -> list[Line]:
    return [line_of(words) for row in rows for words in row.lines]


def _rows(lines: Sequence[list[Word]], gap: float) -> list[Row]:
    """Lines as rows: what is drawn back up beside lines before it is of one row with them."""
    rows: list[Row] = []
    for words in lines:
        cells = [Cell([cell], min(w.x for w in cell), max(w.end for w in cell)) for cell in cells_of(words, gap)]
        y, size = words[0].y, max(word.size for word in words)
        if rows and _is_beside(rows[-1], cells, y, size):
            _add(rows[-1], cells, words, y)
            continue
        for back in range(2, min(_LOOK_BACK, len(rows)) + 1):
            group = rows[-back:]
            is_level = group[-1].bottom - 0.3 * size < y < group[0].top + 0.3 * size
            if is_level and all(len(r.cells) == 1 and r.cells[0].end < cells[0].x for r in group):
                pile = Cell(
                    [w for r in group for w in r.lines],
                    min(r.cells[0].x for r in group),
                    max(r.cells[0].end for r in group),
                )
                rows[-back:] = [Row([pile], group[0].top, group[-1].bottom, size, list(pile.lines))]
                _add(rows[-1], cells, words, y)
                break
        else:
            rows.append(Row(cells, y, y, size, [words]))
    return rows


def _is_beside(row: Row, cells: Sequence[Cell], y: float, size: float) -> bool:
    """Whether cells stand to the right of a row, or go on in its last cell."""
    if abs(row.top - y) < 0.3 * size:
        return row.cells[-1].end < cells[0].x
    is_within = row.bottom - 0.3 * size < y < row.top and len(row.cells) > 1
    return is_within and cells[0].x > row.cells[-2].end


def _add(row: Row, cells: Sequence[Cell], words: list[Word], y: float) -> None:
    last = row.cells[-1]
    if len(cells) == 1 and y < row.top - 0.3 * row.size and cells[0].x < last.end:
        last.lines += cells[0].lines
        last.x, last.end = min(last.x, cells[0].x), max(last.end, cells[0].end)
    else:
        row.cells += cells
    row.bottom = min(row.bottom, y)
    row.lines.append(words)


def _run(rows: Sequence[Row], start: int) -> int:
    """Where the rows that may be a table with the first of them end."""
    if len(rows[start].cells) < 2:
        return start + 1
    end = start + 1
    for i in range(start + 1, len(rows)):
        above = rows[i - 1]
        if not 0 < above.bottom - rows[i].top < _PITCH * max(above.size, rows[i].size):
            break
        if len(rows[i].cells) > 1:
            end = i + 1
        elif i - end >= 2 or rows[i].cells[0].end - rows[i].cells[0].x > 30 * rows[i].size:
            break
    return end


def _is_table(run: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Whether rows are a table: at least two numbers, or three columns of short words."""
    if not 1 < len(columns) <= _MAX_COLUMNS:
        return False
    texts = [cell.text for row in run for cell in row.cells]
    numbers = sum(bool(_NUMBER.fullmatch(cell.text)) for row in run for cell in row.cells if cell.x >= columns[1][0])
    led = sum(bool(_LED.search(row.cells[0].lines[-1][-1].text)) for row in run)
    if mean(map(len, texts)) > _LONGEST or (len(columns) == 2 and 2 * led > len(run)):
        return False  # a table of contents leads to its numbers
    if numbers > 1:
        return True
    is_full = len(run) > 2 and len(texts) >= 0.6 * len(run) * len(columns)
    return is_full and len(columns) > 2 and not _are_prose(run, columns)


def _heads(rows: Sequence[Row], columns: Sequence[Column], first: Row) -> Sequence[Row]:
    """The rows right above a table that stand above its columns: more of its header."""
    count, below = 0, first
    for n, row in enumerate(reversed(rows[-_MOST_HEADS:]), 1):
        is_near = 0 < row.bottom - below.top < _HEAD_PITCH * first.size and row.size < 1.1 * first.size
        # A caption or a paragraph begins above the labels and goes on above the numbers.
        if not is_near or any(len(c.text) > _LONGEST or c.x < columns[0][1] < columns[1][0] < c.end for c in row.cells):
            break
        if row.cells[-1].end > columns[1][0]:
            count = n
        below = row
    return rows[len(rows) - count :]


def _aligned(above: Sequence[Row], run: Sequence[Row], columns: Sequence[Column], level: Sequence[Rule]) -> Line:
    """The table of rows, with what stands `above` it; `level` are the page's rules, which show what a heading spans."""
    grid = [_placed(row, columns) for row in run]
    heads = next((i for i, row in enumerate(grid) if any(_is_value(text) for text in row[1:])), 1)
    header: list[list[str]] = [[] for _ in columns]
    for row in [*above, *run[:heads]]:
        for cell in row.cells:
            x, end = _span(cell, row, level, columns[-1][1] - columns[0][0])
            touched = [n for n, column in enumerate(columns) if x < column[1] and column[0] < end]
            for n in touched or [min(range(len(columns)), key=lambda n: abs(columns[n][0] - x))]:
                header[n].append(cell.text)
    body: list[list[str]] = []
    for texts in grid[heads:]:
        if body and not any(body[-1][1:]) and texts[0][:1].islower():  # a label of two lines
            texts[0] = f"{body.pop()[0]} {texts[0]}"
        body.append(texts)
    return _rendered([[" ".join(texts) for texts in header], *body], 1, run[0].lines[0][0])


def _span(cell: Cell, row: Row, level: Sequence[Rule], width: float) -> Column:
    """From where to where a heading counts: as far as the rule below it, if that is not the whole table's."""
    for rule in level:
        is_below = row.bottom - row.size < rule.at < row.bottom and rule.start < cell.end and cell.x < rule.end
        if is_below and rule.end - rule.start < 0.9 * width:
            return min(cell.x, rule.start), max(cell.end, rule.end)
    return cell.x, cell.end


def _clustered(run: Sequence[Row]) -> list[Column]:
    """Where the columns of rows begin and end, by what stands above each other; the narrow cells decide first."""
    columns: list[tuple[float, float, set[int]]] = []
    places = [(cell.end - cell.x, cell.x, cell.end, i) for i, row in enumerate(run) for cell in row.cells]
    for _, x, end, i in sorted(places):
        touched = [column for column in columns if column[0] < end and x < column[1]]
        is_one = not touched or not any(a[2] & b[2] for a in touched for b in touched if a is not b)
        if is_one:
            columns = [column for column in columns if column not in touched]
            of = {i}.union(*(column[2] for column in touched))
            columns.append((min([x, *(c[0] for c in touched)]), max([end, *(c[1] for c in touched)]), of))
    columns.sort()
    for column in [column for column in columns if column[2] == {0}]:  # a heading that stands above no cell's place
        beside = [c for c in columns if 0 not in c[2]]
        nearest = min(beside, key=lambda c: max(c[0] - column[1], column[0] - c[1]), default=None)
        if nearest and abs(columns.index(nearest) - columns.index(column)) == 1:
            columns[columns.index(nearest)] = (min(nearest[0], column[0]), max(nearest[1], column[1]), nearest[2] | {0})
            columns.remove(column)
    return [(x, end) for x, end, _ in columns]


def _placed(row: Row, columns: Sequence[Column]) -> list[str]:
    """The text of each column in a row."""
    parts: list[list[str]] = [[] for _ in columns]
    for cell in row.cells:
        touched = [n for n, (x, end) in enumerate(columns) if x < cell.end and cell.x < end]
        words = cell.lines[0] if len(cell.lines) == 1 else []
        own = [[n for n in touched if columns[n][0] < word.end and word.x < columns[n][1]] for word in words]
        if len(touched) > 1 and own and all(len(ns) == 1 for ns in own):
            for word, ns in zip(words, own, strict=True):
                parts[ns[0]].append(readable(word.text))
        else:
            near = min(range(len(columns)), key=lambda n: abs(columns[n][0] - cell.x))
            parts[touched[0] if touched else near].append(cell.text)
    return [" ".join(part) for part in parts]


def _rendered(grid: Sequence[Sequence[str]], heads: int, first: Word) -> Line:
    """A table in Markdown, `heads` of whose rows are its header; it begins at the place of `first`."""
    header = [" ".join(dict.fromkeys(filter(None, texts))) for texts in zip(*grid[:heads], strict=True)]
    header = header or [""] * len(grid[0])
    rows = [header, ["---"] * len(header), *grid[heads:]]
    return Line("\n".join(map(markdown_row, rows)), first.x, first.y, first.size, is_table=True)


def _is_value(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) and not _YEAR.fullmatch(text))


def _are_prose(run: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Whether at least two columns are full lines of words."""
    full = 0
    for x, end in columns:
        cells = [cell for row in run for cell in row.cells if x <= cell.x and cell.end <= end]
        widths = [cell.end - cell.x for cell in cells]
        words = mean(len(cell.lines[0]) for cell in cells) if cells else 0
        full += len(cells) > 1 and words > 2 and median(widths) > 0.75 * (end - x)
    return full > 1


def _one_by_one(run: Sequence[Row], columns: Sequence[Column]) -> list[Line]:
    """Columns of prose that stand side by side, one after the other."""
    piles: list[list[Line]] = [[] for _ in columns]
    for row in run:
        for cell in row.cells:
            at = max(n for n, (x, _) in enumerate(columns) if x <= cell.x or n == 0)
            piles[at] += [line_of(words) for words in cell.lines]
    return [line for pile in piles for line in pile]


def markdown_row(cells: Sequence[str]) -> str:
    """Cells, none of them with a line break, as a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
