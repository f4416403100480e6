"""Data tables: how to recognize them, where their cells are, and how they are written.

A cell that spans rows is repeated in each, so that every row can be read alone. One that spans columns is repeated
too, except for the label of a row or of a group of rows. Several header rows become one: a value has one name.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rag.patterns import lazy_regex
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
_MAX_CELL, _MAX_HEADED_CELL = 400, 2000
_MAX_INNER = 200
_MAX_SPAN = 100
_MAX_SLOTS = 50_000
_MAX_HEADERS = 4
_DIGIT = lazy_regex(r"\d")
_LABEL_END = lazy_regex(r"[:：]$")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with the cell that covers each column: a cell that spans columns is in all of them, None marks a gap."""

    part: Any
    own: frozenset[Any]
    slots: list[Any]

    @property
    def is_one_cell(self) -> bool:
        return len(self.slots) > 1 and self.slots[0] is not None and len(set(self.slots)) == 1


def name_table_parts(tree: Any) -> None:
    """Give elements with only ARIA table roles, such as grids drawn with style sheets, the tags of tables."""
    for table in tree.xpath(_ARIA_TABLES):
        for node in [table, *table.xpath(".//*[@role]")]:
            if tag := _TAG_OF_ROLE.get(node.get("role")):
                node.tag = tag
                for span in ("colspan", "rowspan"):
                    if size := node.get(f"aria-{span}"):
                        node.set(span, size)


def data_tables(blocks: Iterable[Block]) -> set[Any]:
    """Return the tables with data, not those for layout; a table within a cell is part of that cell."""
    own: dict[Any, list[Block]] = {}
    for block in blocks:
        for node in block.place.ancestors:
            if node.tag == "table":
                own.setdefault(node, []).append(block)
    tables: set[Any] = set()
    for table, members in own.items():  # an outer table comes before the tables in it
        if not any(outer in tables for outer in table.iterancestors("table")) and _has_data(table, members):
            tables.add(table)
    return tables


def table_of(block: Block, tables: Collection[Any]) -> Any:
    """Return the one of `tables` that a block is in, or None."""
    return next((node for node in block.place.ancestors if node.tag == "table" and node in tables), None)


def cell_of(block: Block, table: Any) -> Any:
    """Return the cell of `table` that a block is in, or None for its caption."""
    ancestors = block.place.ancestors
    return next((node for node in ancestors[ancestors.index(table) :] if node.tag in _CELLS), None)


def _has_data(table: Any, blocks: Sequence[Block]) -> bool:
    rows = _read_rows(table)
    if table.get("role") in ("presentation", "none") or max((len(cells) for _, cells in rows), default=0) < 2:
        return False
    has_headers = any(cell.tag == "th" for _, cells in rows for cell in cells)
    inner = list(table.iterdescendants("table"))
    if inner and not (has_headers and all(len(node.text_content()) <= _MAX_INNER for node in inner)):
        return False
    if any(block.place.is_code or (block.place.node.tag in _HEADINGS and not has_headers) for block in blocks):
        return False
    sizes = Counter[Any]()
    for block in blocks:
        sizes[cell_of(block, table)] += len(block.text)
    return max(sizes.values()) <= (_MAX_HEADED_CELL if has_headers else _MAX_CELL)


def _read_rows(table: Any) -> list[tuple[Any, list[Any]]]:
    """Return the rows of a table as drawn, head first and foot last: each with its part of the table and its cells."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    rows.sort(key=lambda row: _PARTS.get(row.getparent().tag, 1))
    return [(row.getparent(), [cell for cell in row if cell.tag in _CELLS]) for row in rows]


def write_table(table: Any, blocks: Sequence[Block]) -> str:
    """Return the table in Markdown, made from the blocks in its cells; rows that are its title come first."""
    texts = _cell_texts(table, blocks)
    rows = _drop_empty(_lay_out(_read_rows(table)), texts)
    lines: list[str] = []
    while rows and rows[0].is_one_cell:
        lines += [texts[rows.pop(0).slots[0]], ""]
    if not rows:
        return "\n".join(lines).rstrip()
    count = _count_header_rows(rows, texts)
    columns = zip(*(row.slots for row in rows[:count]), strict=True) if count else [()] * len(rows[0].slots)
    header = [" ".join(dict.fromkeys(filter(None, (texts.get(cell, "") for cell in column)))) for column in columns]
    lines += [_format_row(header), "|" + "---|" * len(header)]
    return "\n".join([*lines, *(_format_row(_row_texts(row, texts)) for row in rows[count:])])


def _cell_texts(table: Any, blocks: Sequence[Block]) -> dict[Any, str]:
    """Return the text of each cell that has any, with list items and rows of inner tables separated."""
    texts: dict[Any, str] = {}
    items: dict[Any, Any] = {}
    for block in blocks:
        cell, text = cell_of(block, table), " ".join(block.text.split())
        item = next((node for node in reversed(block.place.ancestors) if node.tag in ("li", "tr")), None)
        if cell in texts:
            text = texts[cell] + ("; " if item is not items[cell] else " ") + text
        texts[cell], items[cell] = text, item
    return texts


def _lay_out(rows: Sequence[tuple[Any, Sequence[Any]]]) -> list[_Row]:
    """Put each cell in all columns and rows that it spans; spans end with their part of the table."""
    is_plain = sum(_span(cell, "colspan") for _, cells in rows for cell in cells) > _MAX_SLOTS
    result: list[_Row] = []
    below: dict[int, tuple[Any, int]] = {}  # by column: a cell that spans more rows, and how many
    for part, cells in rows:
        above, below = below if result and result[-1].part is part else {}, {}
        slots: list[Any] = []
        pending = deque(cells)
        while pending or len(slots) <= max(above, default=-1):
            column = len(slots)
            if column in above:
                cell, width, height = above[column][0], 1, above[column][1]
            elif pending:
                cell = pending.popleft()
                width, height = (1, 1) if is_plain else (_span(cell, "colspan"), _span(cell, "rowspan") or len(rows))
            else:
                cell, width, height = None, 1, 1
            slots += [cell] * width
            if height > 1:
                below |= dict.fromkeys(range(column, column + width), (cell, height - 1))
        result.append(_Row(part, frozenset(cells), slots))
    width = max((len(row.slots) for row in result), default=0)
    return [replace(row, slots=row.slots + [None] * (width - len(row.slots))) for row in result]


def _span(cell: Any, name: str) -> int:
    """Return the number of columns or rows that a cell covers; 0 rows means all that follow."""
    value = (cell.get(name) or "").strip()
    minimum = 0 if name == "rowspan" else 1
    return min(max(int(value), minimum), _MAX_SPAN) if value.isascii() and value.isdigit() else 1


def _drop_empty(rows: Sequence[_Row], texts: Mapping[Any, str]) -> list[_Row]:
    """Drop rows and columns without text, and those that only repeat cells that span them."""
    rows = [row for row in rows if any(texts.get(cell) for cell in row.own)]
    columns = [
        index
        for index, column in enumerate(zip(*(row.slots for row in rows), strict=True))
        if any(texts.get(cell) for cell in column)
        and not (index and all(row.slots[index] is row.slots[index - 1] for row in rows))
    ]
    return [replace(row, slots=[row.slots[index] for index in columns]) for row in rows]


def _count_header_rows(rows: Sequence[_Row], texts: Mapping[Any, str]) -> int:
    """Return the number of rows at the start that name the columns."""
    are_headers = [row.part.tag == "thead" or _is_header(row, texts) for row in rows]
    if are_headers[0]:
        # A second row of headers divides what the first one spans.
        has_spans = rows[0].part.tag == "thead" or len(set(rows[0].slots)) < len(rows[0].slots)
        count = next((index for index, is_header in enumerate(are_headers) if not is_header), len(are_headers))
        return min(count, _MAX_HEADERS, max(1, len(rows) - 1)) if has_spans else 1
    first = [texts.get(cell, "") for cell in rows[0].slots]
    if any(cell is not None and cell.tag == "th" for cell in rows[0].slots):
        return 0
    is_pair = len(first) == 2 and len(rows) > 1 and bool(first[0])
    return 0 if is_pair and (_LABEL_END.search(first[0]) or _DIGIT.search(first[1])) else 1


def _is_header(row: _Row, texts: Mapping[Any, str]) -> bool:
    """True if all cells of a row except its corner are headers."""
    are_headers = [cell is None or cell.tag == "th" or not texts.get(cell) for cell in row.slots[1:]]
    return all(are_headers) and any(cell is not None and cell.tag == "th" for cell in row.slots[1:])


def _row_texts(row: _Row, texts: Mapping[Any, str]) -> list[str]:
    """Return the texts of a row; a label that spans columns is only in the first of them."""
    values: list[str] = []
    for index, cell in enumerate(row.slots):
        is_label = index > 0 and cell is row.slots[0]
        values.append("" if is_label else texts.get(cell, ""))
    return values


def _format_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
