"""Selected blocks as Markdown: headings, lists, tables, quotations and code in page order.

In a data table, a cell that spans rows is repeated in each, so that every row can be read alone. One that spans columns
is repeated too, unless it is the label of a row or a group of rows. Multiple header rows are merged into one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from rag.reading.extraction.features import HEADINGS
from rag.reading.extraction.segments import Block, strip_copies
from rag.reading.extraction.tree import read_inline_style
from rag.text import INTRODUCTION, collapse_spaces, lazy_regex

_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MAX_NUMBER = 9999


def get_item_marks(box: Any) -> dict[Any, str]:
    """Return the marker of each item of an `ol`, `ul` or `menu`: `- `, `3. `, or `- c. ` for letters and numerals."""
    items = [node for node in box if node.tag == "li"]
    style = _find_style(box)
    if box.tag != "ol" or style == "none":
        return dict.fromkeys(items, "- ")
    step = -1 if box.get("reversed") is not None else 1
    number = _parse_integer(box.get("start"), len(items) if step < 0 else 1) - step
    marks = {}
    for item in items:
        number = _parse_integer(item.get("value"), number + step)
        numeral = _NUMERALS.get(_find_style(item) or style, str)(number) if 0 < number <= _MAX_NUMBER else str(number)
        marks[item] = f"{numeral}. " if numeral == str(number) else f"- {numeral}. "
    return marks


def _find_style(node: Any) -> str:
    """Return the numbering style of a list or an item, from CSS or HTML's `type`."""
    style = read_inline_style(node)
    styles = f"{style.get('list-style', '')} {style.get('list-style-type', '')}".split()
    return next((name for name in styles if name == "none" or name in _NUMERALS), node.get("type") or "")


def _parse_integer(text: str | None, default: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        return default


def _to_letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def to_roman(number: int) -> str:
    """Return a Roman numeral in lower case; "" for 0."""
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


_NUMERALS: Final[dict[str, Callable[[int], str]]] = {
    **dict.fromkeys(("a", "lower-alpha", "lower-latin"), _to_letters),
    **dict.fromkeys(("A", "upper-alpha", "upper-latin"), lambda number: _to_letters(number).upper()),
    **dict.fromkeys(("i", "lower-roman"), to_roman),
    **dict.fromkeys(("I", "upper-roman"), lambda number: to_roman(number).upper()),
}


_LISTS = frozenset(["ul", "ol", "menu"])
_ENTRIES = frozenset(["dt", "dd", "li", "table", "blockquote"])
_NOT_IN_CARDS = frozenset([*_LISTS, *_ENTRIES, "dl"])
_MIN_CARDS = 3
_MAX_CARD, _MAX_CARD_LINE = 600, 160  # in characters
_MAX_INDENT = 6
_MAX_TERM = 80
_WIDE = lazy_regex("[\u3040-\u30ff\u3400-\u9fff）】」]")


def markdown(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown; items of one list are adjacent, everything else is separated by a blank line.

    The cards of a grid, such as products with their prices, are the items of a list.
    """
    output: list[str] = []
    previous: Any = None
    blocks = [replace(block, text=text) for block in blocks if (text := strip_copies(block.text))]
    for group, lines in _iter_pieces(blocks):
        joins = group is not None and group is previous
        output.append(("\n" if joins else "\n\n") + lines if output else lines)
        previous = group
    return "".join(output)


@dataclass(slots=True)
class _Progress:
    """List items and definition entries that have begun, and the markers of list items."""

    cards: Collection[Any]
    begun: set[Any] = field(default_factory=set)
    marks: dict[Any, str] = field(default_factory=dict)

    def mark(self, item: Any) -> str:
        if item in self.begun:
            return "  "
        self.begun.add(item)
        if item not in self.marks:
            box = item.getparent()
            self.marks |= get_item_marks(box) if box is not None and box.tag in _LISTS else {item: "- "}
        return self.marks[item]


def _iter_pieces(blocks: Sequence[Block]) -> Iterator[tuple[Any, str]]:
    """Yield pieces of Markdown as (outermost list or None, text); consecutive pieces of one list are adjacent."""
    cards = find_cards(blocks)
    blocks = _begin_with_names(_begin_with_headings(blocks, cards), cards)
    tables, progress = find_data_tables(blocks), _Progress(cards)
    for table, group in groupby(blocks, key=lambda block: find_outermost(block, tables)):
        if table is None:
            yield from _iter_prose(list(group), progress)
            continue
        in_cells: list[Block] = []
        for block in group:
            if _cell_of(block, table) is None:  # its caption
                yield None, _format_block(block, progress)[1]
            else:
                in_cells.append(block)
        if in_cells and (text := _write_table(table, in_cells)):
            yield None, text


def _iter_prose(blocks: Sequence[Block], progress: _Progress) -> Iterator[tuple[Any, str]]:
    """Yield the pieces of text and lists; in definition lists, short terms share a line with their definition."""
    for box, entries in groupby(blocks, key=lambda block: block.find_above(("dl",))):
        terms: list[Block] = []
        is_defined = False
        for block in entries:
            entry = _entry_of(block)
            is_new = entry is not None and entry not in progress.begun
            progress.begun.add(entry)
            if is_new and entry.tag == "dt":
                terms, is_defined = [block] if is_defined else [*terms, block], False
                continue
            name = ", ".join(collapse_spaces(term.text) for term in terms)
            if is_new and 0 < len(name) <= _MAX_TERM:
                yield box, f"- {format_term(name)}{collapse_spaces(block.text)}"
            else:
                yield from ((None, _format_block(term, progress)[1]) for term in terms if not is_defined)
                yield _format_block(block, progress)
            is_defined = True
        yield from ((None, _format_block(term, progress)[1]) for term in terms if not is_defined)


def _entry_of(block: Block) -> Any:
    """Return the `dt` or `dd` around a block, if there are only plain wrappers between, or None."""
    if block.place.is_code or block.place.node.tag in HEADINGS:
        return None
    entry: Any = block.find_above(_ENTRIES)
    return entry if entry is not None and entry.tag in ("dt", "dd") else None


def format_term(term: str) -> str:
    """Return a term with a colon before its definition."""
    if term.endswith((":", "：")):
        return f"{term} "
    return f"{term}：" if _WIDE.search(term[-1]) else f"{term}: "


def _format_block(block: Block, progress: _Progress) -> tuple[Any, str]:
    """Return the outermost list that a block is an item of, or None, and its Markdown."""
    place, text = block.place, block.text
    if place.is_code:
        return None, fence_code(text)
    card = find_outermost(block, progress.cards)
    if card is not None:
        return card.getparent(), progress.mark(card) + collapse_spaces(text)
    tag = place.node.tag
    if tag in HEADINGS:
        return None, "#" * HEADINGS[tag] + " " + collapse_spaces(text)
    item, level = _item_of(block)
    if item is not None:
        outermost = next((node for node in place.ancestors if node.tag in _LISTS), None)
        return outermost, "  " * min(level - 1, _MAX_INDENT) + progress.mark(item) + collapse_spaces(text)
    if any(node.tag == "blockquote" for node in place.ancestors):
        return None, "> " + text.replace("\n", "\n> ")
    return None, text


def _begin_with_headings(blocks: Sequence[Block], cards: Collection[Any]) -> list[Block]:
    """Move the heading of a repeated element, such as a product or a post, above the labels before it."""
    order = {id(block): float(number) for number, block in enumerate(blocks)}
    for element, lines in find_repeated(blocks, lambda lines: bool(_find_labels(lines))).items():
        labels = _find_labels(lines)
        heading = lines[len(labels)]
        # The name of a card may be no heading, but is longer than its attributes.
        if element not in cards or all(len(label.text) < len(heading.text) for label in labels):
            order[id(heading)] = min(order[id(heading)], order[id(lines[0])] - 0.5)
    return sorted(blocks, key=lambda block: order[id(block)])


def _find_labels(blocks: Sequence[Block]) -> list[Block]:
    """Return the short lines above the only heading of an element; none if the heading is an amount."""
    headings = [number for number, block in enumerate(blocks) if block.place.node.tag in HEADINGS]
    if len(headings) != 1 or _begins_with_amount(blocks[headings[0]].text):
        return []
    labels = blocks[: headings[0]]
    return list(labels) if sum(len(block.text) for block in labels) <= _MAX_CARD_LINE else []


def find_cards(blocks: Iterable[Block]) -> set[Any]:
    """Return the elements that are cards of a grid: three or more of one kind side by side, each with several short
    lines and nothing else."""
    cards = find_repeated(blocks, _is_card)
    return {card for card in cards if not any(node in cards for node in card.iterdescendants())}


def find_repeated(blocks: Iterable[Block], matches: Callable[[Sequence[Block]], bool]) -> dict[Any, list[Block]]:
    """Return elements whose blocks match, with these, if three or more of one kind, and most, match side by side."""
    own: dict[Any, list[Block]] = {}
    for block in blocks:
        for node in block.place.ancestors:
            own.setdefault(node, []).append(block)
    kinds: dict[tuple[Any, str, str], list[Any]] = {}
    for node in own:
        kind = (node.getparent(), node.tag, (node.get("class") or "").partition(" ")[0])
        kinds.setdefault(kind, []).append(node)
    elements: dict[Any, list[Block]] = {}
    for nodes in kinds.values():
        found = [node for node in nodes if matches(own[node])]
        if len(found) >= max(_MIN_CARDS, len(nodes) / 2):
            elements |= {node: own[node] for node in found}
    return elements


def _begin_with_names(blocks: Sequence[Block], cards: Collection[Any]) -> list[Block]:
    """Move a label that several cards or list items begin with, such as "Top rated", below the name after it.

    A label with a colon, such as "Ann wrote:", is about what follows it.
    """
    groups = [(owner, list(lines)) for owner, lines in groupby(blocks, key=lambda block: _entry_around(block, cards))]
    entries = [lines for owner, lines in groups if owner is not None and len(lines) > (1 if owner in cards else 2)]
    names: dict[str, set[str]] = {}
    for first, second, *_ in entries:
        names.setdefault(first.text, set()).add(second.text)
    for lines in entries:
        label, found = lines[0].text, names[lines[0].text]
        amounts = sum(map(_begins_with_amount, found))
        # A name above its variants, such as colours, is longer than they are.
        is_short = len(label) * len(found) < 2 * sum(map(len, found))
        if len(found) > 1 and amounts * 2 < len(found) and is_short and not INTRODUCTION.search(label):
            lines[:2] = lines[1], lines[0]
    return [line for _, lines in groups for line in lines]


def _begins_with_amount(text: str) -> bool:
    return _DIGIT.search(text[:2]) is not None


def _entry_around(block: Block, cards: Collection[Any]) -> Any:
    """Return the card or the list item that a block is a line of, or None."""
    card = find_outermost(block, cards)
    return card if card is not None or block.place.node.tag in HEADINGS else _item_of(block)[0]


def _is_card(blocks: Sequence[Block]) -> bool:
    is_short = len(blocks) > 1 and sum(len(block.text) for block in blocks) <= _MAX_CARD
    begins_section = blocks[0].place.node.tag in HEADINGS
    return (
        is_short
        and not begins_section
        and not any(
            block.place.is_code or len(block.text) > _MAX_CARD_LINE or block.find_above(_NOT_IN_CARDS) is not None
            for block in blocks
        )
    )


def _item_of(block: Block) -> tuple[Any, int]:
    """Return the innermost list item around a block, or None if a table is between, and its nesting depth."""
    item, level = None, 0
    for node in block.place.ancestors:
        if node.tag in _LISTS:
            level += 1
        elif node.tag == "li":
            item = node
        elif node.tag == "table":
            item, level = None, 0
    return item, max(level, 1)


def fence_code(code: str, language: str = "") -> str:
    """Return code in a fence that is longer than any within it."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


_CELLS: Final = frozenset(["td", "th"])
_PARTS: Final = {"thead": 0, "tfoot": 2}
_MAX_CELL, _MAX_HEADED_CELL = 400, 2000
_MAX_INNER = 200
_MAX_SPAN = 100
_MAX_SLOTS = 50_000
_MAX_HEADERS = 4
_DIGIT = lazy_regex(r"\d")
_LABEL_END = lazy_regex(r"[:：]$")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row: `slots` has the cell that covers each column, or None for a gap, `own` the cells that start in it."""

    part: Any
    own: frozenset[Any]
    slots: list[Any]

    @property
    def is_one_cell(self) -> bool:
        return len(self.slots) > 1 and self.slots[0] is not None and len(set(self.slots)) == 1


def find_data_tables(blocks: Iterable[Block]) -> set[Any]:
    """Return the tables with data, not those for layout; a table nested in a cell is part of that cell."""
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


def find_outermost(block: Block, elements: Collection[Any]) -> Any:
    """Return the outermost of `elements`, such as cards or tables, that a block is in, or None."""
    return next((node for node in block.place.ancestors if node in elements), None)


def _cell_of(block: Block, table: Any) -> Any:
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
    if any(block.place.is_code or (block.place.node.tag in HEADINGS and not has_headers) for block in blocks):
        return False
    sizes = Counter[Any]()
    for block in blocks:
        sizes[_cell_of(block, table)] += len(block.text)
    return max(sizes.values()) <= (_MAX_HEADED_CELL if has_headers else _MAX_CELL)


def _read_rows(table: Any) -> list[tuple[Any, list[Any]]]:
    """Return the rows of a table as drawn, head first and foot last, as (part of the table, cells)."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    rows.sort(key=lambda row: _PARTS.get(row.getparent().tag, 1))
    return [(row.getparent(), [cell for cell in row if cell.tag in _CELLS]) for row in rows]


def _write_table(table: Any, blocks: Sequence[Block]) -> str:
    """Return a table in Markdown from the blocks in its cells; title rows become text above it."""
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
    lines += [format_row(header), "|" + "---|" * len(header)]
    for row in rows[count:]:
        first, *others = row.slots
        # A label that spans columns is only in its first column.
        lines.append(
            format_row([texts.get(first, ""), *("" if cell is first else texts.get(cell, "") for cell in others)])
        )
    return "\n".join(lines)


def _cell_texts(table: Any, blocks: Sequence[Block]) -> dict[Any, str]:
    """Return the text of each cell that has any, with list items and rows of inner tables separated."""
    texts: dict[Any, str] = {}
    items: dict[Any, Any] = {}
    for block in blocks:
        cell, text = _cell_of(block, table), collapse_spaces(block.text)
        item = block.find_above(("li", "tr"))
        if cell in texts:
            text = texts[cell] + ("; " if item is not items[cell] else " ") + text
        texts[cell], items[cell] = text, item
    return texts


def _lay_out(rows: Sequence[tuple[Any, Sequence[Any]]]) -> list[_Row]:
    """Place each cell in all columns and rows that it spans; spans end with their part of the table."""
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
    """Drop rows and columns that are empty or only repeat the cells that span them."""
    rows = [row for row in rows if any(texts.get(cell) for cell in row.own)]
    columns = [
        index
        for index, column in enumerate(zip(*(row.slots for row in rows), strict=True))
        if any(texts.get(cell) for cell in column)
        and not (index and all(row.slots[index] is row.slots[index - 1] for row in rows))
    ]
    return [replace(row, slots=[row.slots[index] for index in columns]) for row in rows]


def _count_header_rows(rows: Sequence[_Row], texts: Mapping[Any, str]) -> int:
    """Return the number of header rows."""
    are_headers = [row.part.tag == "thead" or _is_header(row, texts) for row in rows]
    if are_headers[0]:
        # Further header rows subdivide the spans of the first one.
        has_spans = rows[0].part.tag == "thead" or len(set(rows[0].slots)) < len(rows[0].slots)
        count = next((index for index, is_header in enumerate(are_headers) if not is_header), len(are_headers))
        return min(count, _MAX_HEADERS, max(1, len(rows) - 1)) if has_spans else 1
    first = [texts.get(cell, "") for cell in rows[0].slots]
    if any(cell is not None and cell.tag == "th" for cell in rows[0].slots):
        return 0
    is_pair = len(first) == 2 and len(rows) > 1 and bool(first[0])
    return 0 if is_pair and (_LABEL_END.search(first[0]) or _DIGIT.search(first[1])) else 1


def _is_header(row: _Row, texts: Mapping[Any, str]) -> bool:
    """Return whether all cells of a row except its corner are headers."""
    are_headers = [cell is None or cell.tag == "th" or not texts.get(cell) for cell in row.slots[1:]]
    return all(are_headers) and any(cell is not None and cell.tag == "th" for cell in row.slots[1:])


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of texts, which must not have line breaks."""
    return "\n".join(map(format_row, (header, ["---"] * len(header), *rows)))


def format_row(texts: Sequence[str]) -> str:
    """Return texts, which must not have line breaks, as a row of a Markdown table."""
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
