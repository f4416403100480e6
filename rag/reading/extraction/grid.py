"""Tables of data in rows and columns: which tables are such, where their cells stand, and how they are written.

A cell that spans rows is said in each, so that every row can be read by itself. One that spans columns is said in each
as well, but for the label of a row or of a group of rows. Several rows of headers become one: a value has one name.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rag.reading.extraction.segments import Block

_CELLS: Final = frozenset(["td", "th"])
_HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_PARTS: Final = {"thead": 0, "tfoot": 2}
_ARIA_TABLES: Final = "//*[not(self::table)][@role='table' or @role='grid' or @role='treegrid'][.//*[@role='row']]"
_TAG_OF_ROLE: Final = {
    **dict.fromkeys(("table", "grid", "treegrid"), "table"),
    **dict.fromkeys(("columnheader", "rowheader"), "th"),
    **dict.fromkeys(("cell", "gridcell"), "td"),
    "row": "tr",
    "rowgroup": "tbody",
}
_MAX_CELL, _MAX_NAMED_CELL = 400, 2000
_MAX_INNER = 200
_MAX_SPAN = 100
_MAX_SLOTS = 50_000
_MAX_HEADERS = 4
_DIGIT = re.compile(r"\d")
_LABEL_END = re.compile(r"[:：]$")


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells that cover each column; a cell of several columns stands in all of them, None where there is none."""

    part: Any
    own: frozenset[Any]
    slots: list[Any]

    @property
    def is_one_cell(self) -> bool:
        return len(self.slots) > 1 and self.slots[0] is not None and len(set(self.slots)) == 1


def name_table_parts(tree: Any) -> None:
    """Make tables of what is one by its ARIA roles alone, as grids drawn with style sheets are."""
    for table in tree.xpath(_ARIA_TABLES):
        for node in [table, *table.xpath(".//*[@role]")]:
            if tag := _TAG_OF_ROLE.get(node.get("role")):
                node.tag = tag
                for span in ("colspan", "rowspan"):
                    if given := node.get(f"aria-{span}"):
                        node.set(span, given)


def data_tables(blocks: Iterable[Block]) -> set[Any]:
    """The tables that hold data; others only lay out a page, and a table within a cell is a part of that cell."""
    own: dict[Any, list[Block]] = {}
    for block in blocks:
        for node in block.place.ancestors:
            if node.tag == "table":
                own.setdefault(node, []).append(block)
    found: set[Any] = set()
    for table, held in own.items():  # an outer table comes before the tables in it
        if not any(above in found for above in table.iterancestors("table")) and _holds_data(table, held):
            found.add(table)
    return found


def table_of(block: Block, tables: Collection[Any]) -> Any:
    """The one of `tables` that a block stands in, or None."""
    return next((node for node in block.place.ancestors if node.tag == "table" and node in tables), None)


def cell_of(block: Block, table: Any) -> Any:
    """The cell of `table` that a block stands in, or None for its caption."""
    ancestors = block.place.ancestors
    return next((node for node in ancestors[ancestors.index(table) :] if node.tag in _CELLS), None)


def _holds_data(table: Any, blocks: Sequence[Block]) -> bool:
    rows = _rows(table)
    if table.get("role") in ("presentation", "none") or max((len(cells) for _, cells in rows), default=0) < 2:
        return False
    is_named = any(cell.tag == "th" for _, cells in rows for cell in cells)
    inner = list(table.iterdescendants("table"))
    if inner and not (is_named and all(len(node.text_content()) <= _MAX_INNER for node in inner)):
        return False
    if any(block.place.is_code or (block.place.node.tag in _HEADINGS and not is_named) for block in blocks):
        return False
    sizes = Counter[Any]()
    for block in blocks:
        sizes[cell_of(block, table)] += len(block.text)
    return max(sizes.values()) <= (_MAX_NAMED_CELL if is_named else _MAX_CELL)


def _rows(table: Any) -> list[tuple[Any, list[Any]]]:
    """The rows of a table as they are drawn, head first and foot last: the part that each is in, and its cells."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    rows.sort(key=lambda row: _PARTS.get(row.getparent().tag, 1))
    return [(row.getparent(), [cell for cell in row if cell.tag in _CELLS]) for row in rows]


def write_table(table: Any, blocks: Sequence[Block]) -> str:
    """The table in Markdown, from the blocks that stand in its cells; rows that are its title come before it."""
    texts = _texts(table, blocks)
    rows = _filled(_laid_out(_rows(table)), texts)
    lines: list[str] = []
    while rows and rows[0].is_one_cell:
        lines += [texts[rows.pop(0).slots[0]], ""]
    if not rows:
        return "\n".join(lines).rstrip()
    count = _header_rows(rows, texts)
    columns = zip(*(row.slots for row in rows[:count]), strict=True) if count else [()] * len(rows[0].slots)
    header = [" ".join(dict.fromkeys(filter(None, (texts.get(cell, "") for cell in column)))) for column in columns]
    lines += [_line(header), "|" + "---|" * len(header)]
    return "\n".join([*lines, *(_line(_values(row, texts)) for row in rows[count:])])


def _texts(table: Any, blocks: Sequence[Block]) -> dict[Any, str]:
    """The text of each cell that has any; items of a list and rows of a table in it are set apart."""
    texts: dict[Any, str] = {}
    items: dict[Any, Any] = {}
    for block in blocks:
        cell, text = cell_of(block, table), " ".join(block.text.split())
        item = next((node for node in reversed(block.place.ancestors) if node.tag in ("li", "tr")), None)
        if cell in texts:
            text = texts[cell] + ("; " if item is not items[cell] else " ") + text
        texts[cell], items[cell] = text, item
    return texts


def _laid_out(rows: Sequence[tuple[Any, Sequence[Any]]]) -> list[_Row]:
    """Each cell in all columns and rows that it spans; spans end with the part of the table that they are in."""
    is_plain = sum(_span(cell, "colspan") for _, cells in rows for cell in cells) > _MAX_SLOTS
    found: list[_Row] = []
    below: dict[int, tuple[Any, int]] = {}  # by column: a cell that goes on, and for how many rows
    for part, cells in rows:
        above, below = below if found and found[-1].part is part else {}, {}
        slots: list[Any] = []
        waiting = deque(cells)
        while waiting or len(slots) <= max(above, default=-1):
            column = len(slots)
            if column in above:
                cell, width, height = above[column][0], 1, above[column][1]
            elif waiting:
                cell = waiting.popleft()
                width, height = (1, 1) if is_plain else (_span(cell, "colspan"), _span(cell, "rowspan") or len(rows))
            else:
                cell, width, height = None, 1, 1
            slots += [cell] * width
            if height > 1:
                below |= dict.fromkeys(range(column, column + width), (cell, height - 1))
        found.append(_Row(part, frozenset(cells), slots))
    width = max((len(row.slots) for row in found), default=0)
    return [replace(row, slots=row.slots + [None] * (width - len(row.slots))) for row in found]


def _span(cell: Any, name: str) -> int:
    """How many columns or rows a cell covers; 0 rows are all that follow."""
    given = (cell.get(name) or "").strip()
    least = 0 if name == "rowspan" else 1
    return min(max(int(given), least), _MAX_SPAN) if given.isascii() and given.isdigit() else 1


def _filled(rows: Sequence[_Row], texts: Mapping[Any, str]) -> list[_Row]:
    """The rows and columns that say something: none without text, none that only repeats what its cells span."""
    rows = [row for row in rows if any(texts.get(cell) for cell in row.own)]
    kept = [
        at
        for at, column in enumerate(zip(*(row.slots for row in rows), strict=True))
        if any(texts.get(cell) for cell in column)
        and not (at and all(row.slots[at] is row.slots[at - 1] for row in rows))
    ]
    return [replace(row, slots=[row.slots[at] for at in kept]) for row in rows]


def _header_rows(rows: Sequence[_Row], texts: Mapping[Any, str]) -> int:
    """How many of the first rows name the columns."""
    named = [row.part.tag == "thead" or _is_header(row, texts) for row in rows]
    if named[0]:
        # A second row of headers divides what the first one spans.
        has_spans = rows[0].part.tag == "thead" or len(set(rows[0].slots)) < len(rows[0].slots)
        count = next((at for at, is_named in enumerate(named) if not is_named), len(named))
        return min(count, _MAX_HEADERS, max(1, len(rows) - 1)) if has_spans else 1
    first = [texts.get(cell, "") for cell in rows[0].slots]
    if any(cell is not None and cell.tag == "th" for cell in rows[0].slots):
        return 0
    is_pair = len(first) == 2 and len(rows) > 1 and bool(first[0])
    return 0 if is_pair and (_LABEL_END.search(first[0]) or _DIGIT.search(first[1])) else 1


def _is_header(row: _Row, texts: Mapping[Any, str]) -> bool:
    """Whether all of a row but its corner are headers."""
    named = [cell is None or cell.tag == "th" or not texts.get(cell) for cell in row.slots[1:]]
    return all(named) and any(cell is not None and cell.tag == "th" for cell in row.slots[1:])


def _values(row: _Row, texts: Mapping[Any, str]) -> list[str]:
    """The texts of a row; a label that spans columns stands in the first of them."""
    said: list[str] = []
    for at, cell in enumerate(row.slots):
        is_label = at > 0 and cell is row.slots[0]
        said.append("" if is_label else texts.get(cell, ""))
    return said


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
