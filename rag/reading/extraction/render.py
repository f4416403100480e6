"""Selected blocks as Markdown: headings, lists, tables, quotations and code in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from rag.patterns import lazy_regex
from rag.reading.extraction.features import HEADINGS
from rag.reading.extraction.grid import cell_of, data_tables, table_of, write_table
from rag.reading.extraction.segments import Block
from rag.reading.extraction.tree import declarations

_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MAX_NUMBER = 9999


def marks_of(box: Any) -> dict[Any, str]:
    """Return the mark before each item of an `ol`, `ul` or `menu`: `- `, `3. `, or `- c. ` if letters count."""
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
    """Return the numbering of a list or an item: the name of its style, or HTML's `type`."""
    style = declarations(node)
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


def _to_roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


_NUMERALS: Final[dict[str, Callable[[int], str]]] = {
    **dict.fromkeys(("a", "lower-alpha", "lower-latin"), _to_letters),
    **dict.fromkeys(("A", "upper-alpha", "upper-latin"), lambda number: _to_letters(number).upper()),
    **dict.fromkeys(("i", "lower-roman"), _to_roman),
    **dict.fromkeys(("I", "upper-roman"), lambda number: _to_roman(number).upper()),
}


_LISTS = frozenset(["ul", "ol", "menu"])
_ENTRIES = frozenset(["dt", "dd", "li", "table", "blockquote"])
_MAX_INDENT = 6
_MAX_TERM = 80
_WIDE = lazy_regex("[\u3040-\u30ff\u3400-\u9fff）】」]")


def markdown(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown; items of one list are adjacent, all else is a blank line apart."""
    output: list[str] = []
    previous: Any = None
    for group, lines in _iter_pieces(blocks):
        joins = group is not None and group is previous
        output.append(("\n" if joins else "\n\n") + lines if output else lines)
        previous = group
    return "".join(output)


@dataclass(slots=True)
class _Progress:
    """List items and definition entries that have begun, and the marks of lists' items."""

    begun: set[Any] = field(default_factory=set)
    marks: dict[Any, str] = field(default_factory=dict)

    def mark(self, item: Any) -> str:
        if item in self.begun:
            return "  "
        self.begun.add(item)
        if item not in self.marks:
            box = item.getparent()
            self.marks |= marks_of(box) if box is not None and box.tag in _LISTS else {item: "- "}
        return self.marks[item]


def _iter_pieces(blocks: Sequence[Block]) -> Iterator[tuple[Any, str]]:
    """Yield each piece of Markdown with its outermost list, whose other items it is adjacent to."""
    tables, progress = data_tables(blocks), _Progress()
    for table, group in groupby(blocks, key=lambda block: table_of(block, tables)):
        if table is None:
            yield from _iter_prose(list(group), progress)
            continue
        in_cells: list[Block] = []
        for block in group:
            if cell_of(block, table) is None:  # its caption
                yield None, _format_block(block, progress)
            else:
                in_cells.append(block)
        if in_cells and (text := write_table(table, in_cells)):
            yield None, text


def _iter_prose(blocks: Sequence[Block], progress: _Progress) -> Iterator[tuple[Any, str]]:
    """Yield the pieces of text and lists; in definition lists, short terms share a line with their definition."""
    for box, entries in groupby(blocks, key=_definitions_of):
        terms: list[Block] = []
        is_defined = False
        for block in entries:
            entry = _entry_of(block)
            is_new = entry is not None and entry not in progress.begun
            progress.begun.add(entry)
            if is_new and entry.tag == "dt":
                terms, is_defined = [block] if is_defined else [*terms, block], False
                continue
            name = ", ".join(_join_lines(term.text) for term in terms)
            if is_new and 0 < len(name) <= _MAX_TERM:
                yield box, f"- {_format_term(name)}{_join_lines(block.text)}"
            else:
                yield from ((None, _format_block(term, progress)) for term in terms if not is_defined)
                yield _outer_list(block), _format_block(block, progress)
            is_defined = True
        yield from ((None, _format_block(term, progress)) for term in terms if not is_defined)


def _definitions_of(block: Block) -> Any:
    """Return the definition list that a block is an entry of, or in."""
    return next((node for node in reversed(block.place.ancestors) if node.tag == "dl"), None)


def _entry_of(block: Block) -> Any:
    """Return the `dt` or `dd` whose text is the block, with only plain wrappers between."""
    if block.place.is_code or block.place.node.tag in HEADINGS:
        return None
    entry: Any = next((node for node in reversed(block.place.ancestors) if node.tag in _ENTRIES), None)
    return entry if entry is not None and entry.tag in ("dt", "dd") else None


def _format_term(term: str) -> str:
    """Return a term with the mark before its definition."""
    if term.endswith((":", "：")):
        return f"{term} "
    return f"{term}：" if _WIDE.search(term[-1]) else f"{term}: "


def _format_block(block: Block, progress: _Progress) -> str:
    place, text = block.place, block.text
    if place.is_code:
        return fence_code(text)
    tag = place.node.tag
    if tag in HEADINGS:
        return "#" * HEADINGS[tag] + " " + _join_lines(text)
    item, level = _item_of(block)
    if item is not None:
        return "  " * min(level - 1, _MAX_INDENT) + progress.mark(item) + _join_lines(text)
    if any(node.tag == "blockquote" for node in place.ancestors):
        return "> " + text.replace("\n", "\n> ")
    return text


def _item_of(block: Block) -> tuple[Any, int]:
    """Return the list item around a block, if only plain wrappers are between, and its nesting depth."""
    item, level = None, 0
    for node in block.place.ancestors:
        if node.tag in _LISTS:
            level += 1
        elif node.tag == "li":
            item = node
        elif node.tag == "table":
            item, level = None, 0
    return item, max(level, 1)


def _outer_list(block: Block) -> Any:
    if block.place.node.tag in HEADINGS:
        return None
    item, _ = _item_of(block)
    if item is None or block.place.is_code:
        return None
    return next((node for node in block.place.ancestors if node.tag in _LISTS), None)


def fence_code(code: str, language: str = "") -> str:
    """Return code in a fence that none of its lines closes."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


def _join_lines(text: str) -> str:
    return " ".join(text.split())
