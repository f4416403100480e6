"""Words and their lines on a page; side-by-side content: tables row by row, columns of text one after the other.

A table's grid comes from its ruled lines, if the page draws them.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import mean, median

from rag.reading.extraction.render import format_table
from rag.text import lazy_regex

# PDF writers map a glyph shared by a radical and a character to the radical's code point, which no user types. NFKC
# maps the Kangxi block back to characters; these are the radicals of the supplement that are whole characters.
_RADICALS = str.maketrans(
    "⺁⺟⺠⺮⼾⻁⻄⻅⻆⻉⻋⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻲⻳",
    "厂母民竹户虎西见角贝车長长門雨青韦页风飞食马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙亀龟",
)
_SHARED_GLYPH = lazy_regex(r"[\u2f00-\u2fdf\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]")
_ENDING = lazy_regex("(?<=ة)(?=[\u0621-\u064a])")
"""The boundary after teh marbuta, which only ends words: pdfium drops narrow spaces there."""
_RIGHT_TO_LEFT = lazy_regex("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LABEL = lazy_regex(r"[•◦‣▪▫■□●○·⁃–—*-]|[(\[]?\w{1,3}[.)\]]|[$€£¥]|\(")
"""A bullet, a number or a currency sign that is set apart from its text."""
_TRAILING_SIGN = lazy_regex(r"[)%]+")
_POWER = lazy_regex(r"(?:^|[^\d.,])10$|(?<![^\W\d_])[^\W\d_]{1,3}$|[)\]]$")
"""A base after which a raised number is an exponent; anywhere else it is a note reference."""
_DENSE_END = lazy_regex(r"[\d\u2e80-\u9fff\uf900-\uffef%)]\Z")
_DENSE_START = lazy_regex(r"[\d\u2e80-\u9fff\uf900-\uffef$€£¥(-]")
_CELL_GAP = 1.1
"""A wider gap, in font sizes, ends a cell; between numbers or Chinese words, _DENSE_CELL_GAP is the limit."""
_DENSE_CELL_GAP = 0.5
RAISED_SHARE = 0.2
"""A word is raised if it is higher above its line than this share of its size."""
_MAX_CODE_WIDTH = 300


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page, or the Markdown of a table, with its start and main font size.

    Positions are measured along and across the writing direction, so that rotated pages work like others.
    """

    text: str
    x: float
    y: float
    size: float
    is_code: bool = False
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word from `x` to `end` on a line at height `y`; `start` is its offset in the page's text."""

    text: str
    x: float
    end: float
    y: float
    size: float
    rotation: int = 0
    start: int = 0

    def gap(self, before: Word) -> float:
        """Return the space between two words, in either writing direction; negative if they overlap."""
        return max(self.x - before.end, before.x - self.end)


def rotate(x: float, y: float, degrees: int) -> tuple[float, float]:
    """Return a position along and across the writing direction of text rotated by `degrees`."""
    if not degrees:
        return x, y
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return x * cosine + y * sine, y * cosine - x * sine


def append_raised(before: str, number: str) -> str:
    """Append a raised number to `before` as an exponent or a note reference."""
    is_power = _POWER.search(before) or not number.isdigit()
    return f"{before}^{number}" if is_power else f"{before}[^{number}]"


def measure_word_gap(lines: Iterable[Sequence[Word]]) -> float:
    """Return the median space between words, as a share of their size; 0.3 for short texts."""
    gaps = [
        word.gap(before) / max(word.size, 1)
        for words in lines
        if len(words) > 4
        for before, word in pairwise(words)
        if before.text.isalpha() and word.text.isalpha()
    ]
    return median(gaps) if len(gaps) > 20 else 0.3


def split_cells(words: Sequence[Word], gap: float = 0.3) -> list[list[Word]]:
    """Split a line into cells at spaces much wider than the usual `gap`, from left to right unless it has RTL text."""
    widest = max(_CELL_GAP, 2.5 * gap)
    cells: list[list[Word]] = []
    for word in words:
        if cells and not _is_apart(cells[-1], word, widest):
            cells[-1].append(word)
        else:
            cells.append([word])
    is_reversed = any(_RIGHT_TO_LEFT.search(word.text) for word in words)
    return cells if is_reversed else sorted(cells, key=lambda cell: cell[0].x)


def _is_apart(cell: Sequence[Word], word: Word, widest: float) -> bool:
    """Return whether a word starts a new cell."""
    before, size = cell[-1], max(cell[-1].size, word.size)
    is_label = len(cell) == 1 and _LABEL.fullmatch(before.text)
    if is_label or _TRAILING_SIGN.fullmatch(word.text):
        return False
    is_close = _DENSE_END.search(before.text) and _DENSE_START.match(word.text)
    return word.gap(before) > (_DENSE_CELL_GAP if is_close else widest) * size


def build_code_lines(lines: Sequence[Sequence[Word]]) -> list[Line]:
    """Return monospaced lines with their indentation and inner spaces."""
    margin = min(word.x for words in lines for word in words)
    result = []
    for words in lines:
        text = ""
        for word in words:
            column = round((word.x - margin) * len(word.text) / max(word.end - word.x, 1))
            text += " " * max(bool(text), min(column, _MAX_CODE_WIDTH) - len(text)) + word.text
        result.append(Line(text, margin, words[0].y, round(words[0].size, 1), is_code=True))
    return result


def build_line(words: Sequence[Word]) -> Line:
    """Build a line from its words."""
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[round(word.size, 1)] += len(word.text)
    size = sizes.most_common(1)[0][0]
    y = next(word.y for word in words if round(word.size, 1) == size)
    text = " ".join(join_words(cell, y) for cell in split_cells(words))
    return Line(text, min(word.x for word in words), y, size)


def join_words(words: Sequence[Word], y: float) -> str:
    """Return the words of a line at height `y` as text."""
    text = ""
    for i, word in enumerate(words):
        is_raised = i and word.y > y + RAISED_SHARE * word.size and word.text.strip(".,;:)]").isdigit()
        if is_raised and word.gap(words[i - 1]) < 0.2 * word.size:
            text = append_raised(text, word.text)
        else:
            text += (" " if text else "") + word.text
    return normalize_glyphs(text)


def normalize_glyphs(text: str) -> str:
    """Replace ligatures and radicals with the letters and characters they represent."""
    text = _ENDING.sub(" ", text.translate(_RADICALS))
    return _SHARED_GLYPH.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


Box = tuple[float, float, float, float]
"""An area of a page: left, bottom, right, top."""
_MAX_RULES = 200
_RULE_WIDTH = 2.5
_MIN_RULE_LENGTH = 6.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight horizontal or vertical line: its position, and where it starts and ends."""

    position: float
    start: float
    end: float

    def spans(self, place: float) -> bool:
        return self.start - _RULE_WIDTH <= place <= self.end + _RULE_WIDTH


@dataclass(frozen=True, slots=True)
class Grid:
    """The rules of a table: `xs` are its column edges from the left, `ys` its row edges from the top."""

    xs: list[float]
    ys: list[float]
    horizontal: list[Rule]
    vertical: list[Rule]

    def find_cell(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and column at a position, from 0, or None outside."""
        column = sum(edge <= x for edge in self.xs) - 1
        row = sum(edge >= y for edge in self.ys) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return (row, column) if inside else None

    def find_origins(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Map each cell to the first cell of its merged cell: cells without a rule between them are merged.

        Empty if a merged cell is not a rectangle, as in forms.
        """
        result: dict[tuple[int, int], tuple[int, int]] = {}
        members: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in range(len(self.ys) - 1):
            y = (self.ys[row] + self.ys[row + 1]) / 2
            for column in range(len(self.xs) - 1):
                x = (self.xs[column] + self.xs[column + 1]) / 2
                origin = (row, column)
                if column and not _has_rule(self.vertical, self.xs[column], y):
                    origin = result[row, column - 1]
                elif row and not _has_rule(self.horizontal, self.ys[row], x):
                    origin = result[row - 1, column]
                result[row, column] = origin
                members.setdefault(origin, []).append((row, column))
        for (row, column), cells in members.items():
            last_row, last_column = cells[-1]
            if len(cells) != (last_row - row + 1) * (last_column - column + 1):
                return {}
        return result


def find_grids(boxes: Iterable[Box], rotation: int) -> tuple[list[Grid], list[Rule]]:
    """Return the grids of at least two rows and columns in the `boxes` drawn on a page, and all horizontal rules.

    Both are empty if a page has too many rules. The page's text is rotated by `rotation` degrees.
    """
    horizontal: list[Rule] = []
    vertical: list[Rule] = []
    for left, bottom, right, top in boxes:
        (x, y), (end, up) = rotate(left, bottom, rotation), rotate(right, top, rotation)
        x, end, y, up = min(x, end), max(x, end), min(y, up), max(y, up)
        if end - x > _MIN_RULE_LENGTH:
            horizontal += [Rule(y, x, end), Rule(up, x, end)]
        if up - y > _MIN_RULE_LENGTH:
            vertical += [Rule(x, y, up), Rule(end, y, up)]
    horizontal, vertical = _merge(horizontal), _merge(vertical)
    if len(horizontal) > _MAX_RULES or len(vertical) > _MAX_RULES:
        return [], []
    return [grid for rules in _group_crossing(horizontal, vertical) if (grid := _make_grid(*rules))], horizontal


def _make_grid(horizontal: list[Rule], vertical: list[Rule]) -> Grid | None:
    """Return the grid of crossing rules, or None below two rows or columns. Outer edges need not be drawn."""
    ends = [end for rule in horizontal for end in (rule.start, rule.end)]
    sides = [end for rule in vertical for end in (rule.start, rule.end)]
    xs = _merge_edges([*(rule.position for rule in vertical), min(ends), max(ends)])
    ys = _merge_edges([*(rule.position for rule in horizontal), min(sides), max(sides)])
    return Grid(xs, ys[::-1], horizontal, vertical) if len(xs) > 2 and len(ys) > 2 else None


def _merge(rules: Iterable[Rule]) -> list[Rule]:
    """Merge collinear rules that touch."""
    result: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.position / _RULE_WIDTH), rule.start)):
        last = result[-1] if result else None
        if last and abs(last.position - rule.position) <= _RULE_WIDTH and rule.start <= last.end + _RULE_WIDTH:
            result[-1] = Rule(last.position, last.start, max(last.end, rule.end))
        else:
            result.append(rule)
    return result


def _group_crossing(horizontal: Sequence[Rule], vertical: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield connected groups of horizontal and vertical rules that cross each other."""
    crossing = [
        {n for n, other in enumerate(horizontal) if other.spans(rule.position) and rule.spans(other.position)}
        for rule in vertical
    ]
    pending = [n for n, others in enumerate(crossing) if others]
    while pending:
        group, rules = {pending[0]}, set(crossing[pending[0]])
        while added := {n for n in pending if n not in group and crossing[n] & rules}:
            group |= added
            rules.update(*(crossing[n] for n in added))
        pending = [n for n in pending if n not in group]
        yield [horizontal[n] for n in rules], [vertical[n] for n in group]


def _merge_edges(places: Iterable[float]) -> list[float]:
    edges: list[float] = []
    for place in sorted(places):
        if not edges or place - edges[-1] > 2 * _RULE_WIDTH:
            edges.append(place)
    return edges


def _has_rule(rules: Iterable[Rule], position: float, place: float) -> bool:
    return any(abs(rule.position - position) <= 2 * _RULE_WIDTH and rule.spans(place) for rule in rules)


_NUMBER = lazy_regex(r"[-+−–(<>~≈]{0,2}[$€£¥]?\s?\(?\d[\d.,\s]*\)?\s?[%)]?(?:\s?[^\W\d]{1,4})?(?:\[\^\d+\])?")
_YEAR = lazy_regex(r"(?:[^\W\d]{2}\s?)?(?:19|20)\d\d(?:[-–/]\d{2,4})?[A-Z年]?")
_LEADERS = lazy_regex(r"(?<![.·…\s])\s*+(?:[.·…]\s?+){4,}+\Z")
_LEADER_END = lazy_regex(r"(?:^|[.·…])[.·…]$")
_MAX_SHORT_TEXT = 40
_MAX_ROW_DISTANCE = 3.0
"""Rows further apart than this, in font sizes, belong to different tables."""
_MAX_COLUMNS = 40
_LOOKBACK = 8
_MAX_HEADER_ROWS = 4
_MAX_HEADER_DISTANCE = 2.2
CellPosition = tuple[int, int]
Column = tuple[float, float]


@dataclass(slots=True)
class Cell:
    """A cell of a row: one line, or several below each other."""

    lines: list[list[Word]]
    x: float = field(init=False)
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.x = min((word.x for words in self.lines for word in words), default=0.0)
        self.end = max((word.end for words in self.lines for word in words), default=0.0)

    @property
    def text(self) -> str:
        text = ""
        for words in self.lines:
            more = join_words(words, words[0].y)
            is_divided = text.endswith("-") and text[-2:-1].isalpha() and more[:1].islower()
            text = text[:-1] + more if is_divided else f"{text} {more}".strip()
        return _LEADERS.sub("", text)


@dataclass(slots=True)
class Row:
    """Cells side by side; `top` and `bottom` are the heights of their first and last line."""

    cells: list[Cell]
    top: float
    bottom: float
    size: float
    lines: list[list[Word]]


def arrange_lines(
    lines: Sequence[list[Word]], grids: Sequence[Grid], horizontal: Sequence[Rule], is_monospaced: Sequence[bool]
) -> list[Line]:
    """Return a page's lines, with tables recognised and interleaved text columns separated.

    `horizontal` has all horizontal rules of the page, including those of its `grids`, `is_monospaced` a flag for
    each line.
    """
    pieces: list[list[Word] | Line] = []
    for is_code, group in groupby(zip(lines, is_monospaced, strict=True), key=lambda pair: pair[1]):
        words = [line for line, _ in group]
        pieces += build_code_lines(words) if is_code else words
    gap = measure_word_gap(lines)
    for grid in grids:
        if origins := grid.find_origins():
            pieces = _insert_table(pieces, grid, origins, gap)
    result: list[Line] = []
    pending: list[list[Word]] = []
    for piece in pieces:
        if isinstance(piece, Line):
            result += [*_read_unruled(pending, gap, horizontal), piece]
            pending = []
        else:
            pending.append(piece)
    return result + _read_unruled(pending, gap, horizontal)


def _insert_table(
    pieces: list[list[Word] | Line], grid: Grid, origins: Mapping[CellPosition, CellPosition], gap: float
) -> list[list[Word] | Line]:
    """Replace the words within a grid with one table at the position of its first line, if it looks like a table."""
    cells: dict[CellPosition, list[list[Word]]] = {}
    remaining: list[list[Word] | Line] = []
    index = -1
    for piece in pieces:
        outside: list[Word] = []
        inside: dict[CellPosition, list[Word]] = {}
        for word in () if isinstance(piece, Line) else piece:
            position = grid.find_cell((word.x + word.end) / 2, word.y + 0.3 * word.size)
            (outside if position is None else inside.setdefault(origins[position], [])).append(word)
        for position, words in inside.items():
            cells.setdefault(position, []).append(words)
            index = len(remaining) if index < 0 else index
        if outside or isinstance(piece, Line):
            remaining.append(outside or piece)
    is_flat = len({row for row, _ in cells}) < 2 or len({column for _, column in cells}) < 2 or len(cells) < 4
    # If a cell contains rows, not all columns of the table are ruled.
    has_rows = any(sum(len(split_cells(words, gap)) > 1 for words in lines) > 1 for lines in cells.values())
    if is_flat or has_rows:
        return pieces
    rows = [[origins[row, column] for column in range(len(grid.xs) - 1)] for row in range(len(grid.ys) - 1)]
    rows = [row for row in rows if any(position in cells for position in row)]
    columns = [n for n in range(len(rows[0])) if any(row[n] in cells for row in rows)]
    rows = [[row[n] for n in columns] for row in rows]
    if len(set(rows[0])) == 1:  # a cell across the whole table is its caption
        remaining.insert(index, build_line([word for words in cells[rows[0][0]] for word in words]))
        index, rows = index + 1, rows[1:]
    heads = 1
    while heads < len(rows) - 1 and len(set(rows[heads - 1])) < len(columns):
        heads += 1
    table = [texts for row in rows for texts in _split_row([cells.get(position, []) for position in row])]
    remaining.insert(index, _render(table, heads, next(iter(cells.values()))[0][0]))
    return remaining


def _split_row(row: Sequence[list[list[Word]]]) -> list[list[str]]:
    """Return the cell texts of a row, split into several rows if a cell has numbers below each other."""
    heights = next((c for c in row if len(c) > 1 and all(_is_value(join_words(w, w[0].y)) for w in c)), [])
    edges = [words[0].y - 0.3 * words[0].size for words in heights[:-1]] + [-math.inf]
    parts: list[list[list[list[Word]]]] = [[[] for _ in row] for _ in edges]
    for column, lines in enumerate(row):
        for words in lines:
            parts[next(n for n, edge in enumerate(edges) if words[0].y >= edge)][column].append(words)
    return [[Cell(lines).text for lines in part] for part in parts]


def _read_unruled(lines: Sequence[list[Word]], gap: float, horizontal: Sequence[Rule]) -> list[Line]:
    """Return lines with unruled tables recognised and interleaved text columns separated."""
    rows, i = _group_rows(lines, gap), 0
    result: list[Line] = []
    pending: list[Row] = []
    while i < len(rows):
        end = _find_run_end(rows, i)
        run = rows[i:end]
        columns = _find_columns(run) if len(run) > 1 else []
        if _is_table(run, columns):
            above = _find_header_rows(pending, columns, run[0])
            result += _to_lines(pending[: len(pending) - len(above)])
            result.append(_build_table(above, run, columns, horizontal))
            pending = []
        elif len(columns) > 1 and _is_prose(run, columns):
            result += [*_to_lines(pending), *_unfold_columns(run, columns)]
            pending = []
        else:
            pending += run
        i = end
    return result + _to_lines(pending)


def _to_lines(rows: Sequence[Row]) -> list[Line]:
    return [build_line(words) for row in rows for words in row.lines]


def _group_rows(lines: Sequence[list[Word]], gap: float) -> list[Row]:
    """Group lines into rows; a line drawn to the right of earlier lines joins their row."""
    rows: list[Row] = []
    for words in lines:
        cells = [Cell([cell]) for cell in split_cells(words, gap)]
        y, size = words[0].y, max(word.size for word in words)
        if rows and _is_adjacent(rows[-1], cells, y, size):
            _add_cells(rows[-1], cells, words, y)
            continue
        for back in range(2, min(_LOOKBACK, len(rows)) + 1):
            group = rows[-back:]
            is_beside = group[-1].bottom - 0.3 * size < y < group[0].top + 0.3 * size
            if is_beside and all(len(r.cells) == 1 and r.cells[0].end < cells[0].x for r in group):
                pile = [line for r in group for line in r.lines]
                rows[-back:] = [Row([Cell(pile)], group[0].top, group[-1].bottom, size, list(pile))]
                _add_cells(rows[-1], cells, words, y)
                break
        else:
            rows.append(Row(cells, y, y, size, [words]))
    return rows


def _is_adjacent(row: Row, cells: Sequence[Cell], y: float, size: float) -> bool:
    """Return whether cells are to the right of a row, or continue its last cell."""
    if abs(row.top - y) < 0.3 * size:
        return row.cells[-1].end < cells[0].x
    is_within = row.bottom - 0.3 * size < y < row.top and len(row.cells) > 1
    return is_within and cells[0].x > row.cells[-2].end


def _add_cells(row: Row, cells: Sequence[Cell], words: list[Word], y: float) -> None:
    last = row.cells[-1]
    if len(cells) == 1 and y < row.top - 0.3 * row.size and cells[0].x < last.end:
        row.cells[-1] = Cell(last.lines + cells[0].lines)
    else:
        row.cells += cells
    row.bottom = min(row.bottom, y)
    row.lines.append(words)


def _find_run_end(rows: Sequence[Row], start: int) -> int:
    """Return the end of the rows from `start` that may form a table."""
    if len(rows[start].cells) < 2:
        return start + 1
    end = start + 1
    for i in range(start + 1, len(rows)):
        above = rows[i - 1]
        if not 0 < above.bottom - rows[i].top < _MAX_ROW_DISTANCE * max(above.size, rows[i].size):
            break
        if len(rows[i].cells) > 1:
            end = i + 1
        elif i - end >= 2 or rows[i].cells[0].end - rows[i].cells[0].x > 30 * rows[i].size:
            break
    return end


def _is_table(run: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Return whether rows are a table: with at least two numbers, or three columns of short texts."""
    if not 1 < len(columns) <= _MAX_COLUMNS:
        return False
    texts = [cell.text for row in run for cell in row.cells]
    numbers = sum(bool(_NUMBER.fullmatch(cell.text)) for row in run for cell in row.cells if cell.x >= columns[1][0])
    leaders = sum(bool(_LEADER_END.search(row.cells[0].lines[-1][-1].text)) for row in run)
    if mean(map(len, texts)) > _MAX_SHORT_TEXT or (len(columns) == 2 and 2 * leaders > len(run)):
        return False  # long texts, or a table of contents with leaders
    if numbers > 1:
        return True
    is_full = len(run) > 2 and len(texts) >= 0.6 * len(run) * len(columns)
    return is_full and len(columns) > 2 and not _is_prose(run, columns)


def _find_header_rows(rows: Sequence[Row], columns: Sequence[Column], first: Row) -> Sequence[Row]:
    """Return the rows right above a table that belong to its header."""
    count, below = 0, first
    for n, row in enumerate(reversed(rows[-_MAX_HEADER_ROWS:]), 1):
        is_near = 0 < row.bottom - below.top < _MAX_HEADER_DISTANCE * first.size and row.size < 1.1 * first.size
        # A caption or a paragraph spans the labels and the numbers.
        if not is_near or any(
            len(c.text) > _MAX_SHORT_TEXT or c.x < columns[0][1] < columns[1][0] < c.end for c in row.cells
        ):
            break
        if row.cells[-1].end > columns[1][0]:
            count = n
        below = row
    return rows[len(rows) - count :]


def _build_table(
    above: Sequence[Row], run: Sequence[Row], columns: Sequence[Column], horizontal: Sequence[Rule]
) -> Line:
    """Return rows as a table with the header rows `above`; `horizontal` rules show which columns a heading spans."""
    grid = [_split_by_column(row, columns) for row in run]
    heads = next((i for i, row in enumerate(grid) if any(_is_value(text) for text in row[1:])), 1)
    header: list[list[str]] = [[] for _ in columns]
    for row in [*above, *run[:heads]]:
        for cell in row.cells:
            x, end = _find_heading_span(cell, row, horizontal, columns[-1][1] - columns[0][0])
            overlaps = [n for n, column in enumerate(columns) if x < column[1] and column[0] < end]
            for n in overlaps or [min(range(len(columns)), key=lambda n: abs(columns[n][0] - x))]:
                header[n].append(cell.text)
    body: list[list[str]] = []
    for texts in grid[heads:]:
        if body and not any(body[-1][1:]) and texts[0][:1].islower():  # a label of two lines
            texts[0] = f"{body.pop()[0]} {texts[0]}"
        body.append(texts)
    return _render([[" ".join(texts) for texts in header], *body], 1, run[0].lines[0][0])


def _find_heading_span(cell: Cell, row: Row, horizontal: Sequence[Rule], width: float) -> Column:
    """Return the extent of a heading, widened by the rule below it, unless that spans the whole table."""
    for rule in horizontal:
        is_below = row.bottom - row.size < rule.position < row.bottom and rule.start < cell.end and cell.x < rule.end
        if is_below and rule.end - rule.start < 0.9 * width:
            return min(cell.x, rule.start), max(cell.end, rule.end)
    return cell.x, cell.end


def _find_columns(run: Sequence[Row]) -> list[Column]:
    """Return the start and end of each column of overlapping cells; narrow cells are assigned first."""
    columns: list[tuple[float, float, set[int]]] = []
    places = [(cell.end - cell.x, cell.x, cell.end, i) for i, row in enumerate(run) for cell in row.cells]
    for _, x, end, i in sorted(places):
        overlaps = [column for column in columns if column[0] < end and x < column[1]]
        is_single = not overlaps or not any(a[2] & b[2] for a in overlaps for b in overlaps if a is not b)
        if is_single:
            columns = [column for column in columns if column not in overlaps]
            rows = {i}.union(*(column[2] for column in overlaps))
            columns.append((min([x, *(c[0] for c in overlaps)]), max([end, *(c[1] for c in overlaps)]), rows))
    columns.sort()
    for column in [column for column in columns if column[2] == {0}]:  # a heading above no cell
        others = [c for c in columns if 0 not in c[2]]
        nearest = min(others, key=lambda c: max(c[0] - column[1], column[0] - c[1]), default=None)
        if nearest and abs(columns.index(nearest) - columns.index(column)) == 1:
            columns[columns.index(nearest)] = (min(nearest[0], column[0]), max(nearest[1], column[1]), nearest[2] | {0})
            columns.remove(column)
    return [(x, end) for x, end, _ in columns]


def _split_by_column(row: Row, columns: Sequence[Column]) -> list[str]:
    """Return the text of each column in a row."""
    parts: list[list[str]] = [[] for _ in columns]
    for cell in row.cells:
        overlaps = [n for n, (x, end) in enumerate(columns) if x < cell.end and cell.x < end]
        words = cell.lines[0] if len(cell.lines) == 1 else []
        own = [[n for n in overlaps if columns[n][0] < word.end and word.x < columns[n][1]] for word in words]
        if len(overlaps) > 1 and own and all(len(ns) == 1 for ns in own):
            for word, ns in zip(words, own, strict=True):
                parts[ns[0]].append(normalize_glyphs(word.text))
        else:
            near = min(range(len(columns)), key=lambda n: abs(columns[n][0] - cell.x))
            parts[overlaps[0] if overlaps else near].append(cell.text)
    return [" ".join(part) for part in parts]


def _render(grid: Sequence[Sequence[str]], heads: int, first: Word) -> Line:
    """Return a table in Markdown at the position of `first`; its first `heads` rows are the header."""
    header = [" ".join(dict.fromkeys(filter(None, texts))) for texts in zip(*grid[:heads], strict=True)]
    text = format_table(header or [""] * len(grid[0]), grid[heads:])
    return Line(text, first.x, first.y, first.size, is_table=True)


def _is_value(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) and not _YEAR.fullmatch(text))


def _is_prose(run: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Return whether at least two columns are full lines of words."""
    full = 0
    for x, end in columns:
        cells = [cell for row in run for cell in row.cells if x <= cell.x and cell.end <= end]
        widths = [cell.end - cell.x for cell in cells]
        words = mean(len(cell.lines[0]) for cell in cells) if cells else 0
        full += len(cells) > 1 and words > 2 and median(widths) > 0.75 * (end - x)
    return full > 1


def _unfold_columns(run: Sequence[Row], columns: Sequence[Column]) -> list[Line]:
    """Return side-by-side columns of prose one after the other."""
    piles: list[list[Line]] = [[] for _ in columns]
    for row in run:
        for cell in row.cells:
            index = max(n for n, (x, _) in enumerate(columns) if x <= cell.x or n == 0)
            piles[index] += [build_line(words) for words in cell.lines]
    return [line for pile in piles for line in pile]
