"""Chosen blocks as Markdown: headings, lists, tables, quotations and code in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from rag.reading.extraction.features import HEADINGS
from rag.reading.extraction.grid import cell_of, data_tables, table_of, write_table
from rag.reading.extraction.segments import Block
from rag.reading.extraction.visible import declarations

_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST = 9999


def marks_of(box: Any) -> dict[Any, str]:
    """By item of an `ol`, `ul` or `menu`, what is written before it: `- `, `3. `, or `- c. ` where letters count."""
    items = [node for node in box if node.tag == "li"]
    style = _style(box)
    if box.tag != "ol" or style == "none":
        return dict.fromkeys(items, "- ")
    step = -1 if box.get("reversed") is not None else 1
    number = _integer(box.get("start"), len(items) if step < 0 else 1) - step
    marks = {}
    for item in items:
        number = _integer(item.get("value"), number + step)
        counted = _COUNTED.get(_style(item) or style, str)(number) if 0 < number <= _MOST else str(number)
        marks[item] = f"{counted}. " if counted == str(number) else f"- {counted}. "
    return marks


def _style(node: Any) -> str:
    """How a list or an item counts, as the name of its style or as the `type` of HTML."""
    style = declarations(node)
    styled = f"{style.get('list-style', '')} {style.get('list-style-type', '')}".split()
    return next((name for name in styled if name == "none" or name in _COUNTED), node.get("type") or "")


def _integer(given: str | None, otherwise: int) -> int:
    try:
        return int(given or "")
    except ValueError:
        return otherwise


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


_COUNTED: Final[dict[str, Callable[[int], str]]] = {
    **dict.fromkeys(("a", "lower-alpha", "lower-latin"), _letters),
    **dict.fromkeys(("A", "upper-alpha", "upper-latin"), lambda number: _letters(number).upper()),
    **dict.fromkeys(("i", "lower-roman"), _roman),
    **dict.fromkeys(("I", "upper-roman"), lambda number: _roman(number).upper()),
}


_LISTS = frozenset(["ul", "ol", "menu"])
_ENTRIES = frozenset(["dt", "dd", "li", "table", "blockquote"])
_MAX_INDENT = 6
_MAX_TERM = 80
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff）】」]")


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown text; items of one list stand close, all else a blank line apart."""
    output: list[str] = []
    previous: Any = None
    for group, lines in _pieces(blocks):
        joins = group is not None and group is previous
        output.append(("\n" if joins else "\n\n") + lines if output else lines)
        previous = group
    return "".join(output)


@dataclass(slots=True)
class _Written:
    """What was begun already: items of lists and entries of definition lists; and the marks of the lists' items."""

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


def _pieces(blocks: Sequence[Block]) -> Iterator[tuple[Any, str]]:
    """Each piece of Markdown with the outermost list that it stands in, close to its other items."""
    tables, written = data_tables(blocks), _Written()
    for table, group in groupby(blocks, key=lambda block: table_of(block, tables)):
        if table is None:
            yield from _outside_tables(list(group), written)
            continue
        in_cells: list[Block] = []
        for block in group:
            if cell_of(block, table) is None:  # its caption
                yield None, _piece(block, written)
            else:
                in_cells.append(block)
        if in_cells and (text := write_table(table, in_cells)):
            yield None, text


def _outside_tables(blocks: Sequence[Block], written: _Written) -> Iterator[tuple[Any, str]]:
    """The pieces of text and lists; what a definition list says of short terms comes on one line with them."""
    for box, entries in groupby(blocks, key=_definitions_of):
        terms: list[Block] = []
        is_defined = False
        for block in entries:
            entry = _entry_of(block)
            is_new = entry is not None and entry not in written.begun
            written.begun.add(entry)
            if is_new and entry.tag == "dt":
                terms, is_defined = [block] if is_defined else [*terms, block], False
                continue
            name = ", ".join(_line(term.text) for term in terms)
            if is_new and 0 < len(name) <= _MAX_TERM:
                yield box, f"- {_named(name)}{_line(block.text)}"
            else:
                yield from ((None, _piece(term, written)) for term in terms if not is_defined)
                yield _outer_list(block), _piece(block, written)
            is_defined = True
        yield from ((None, _piece(term, written)) for term in terms if not is_defined)


def _definitions_of(block: Block) -> Any:
    """The definition list that a block is an entry of, or in."""
    return next((node for node in reversed(block.place.ancestors) if node.tag == "dl"), None)


def _entry_of(block: Block) -> Any:
    """The `dt` or `dd` of which a block is the text, with nothing but plain wrappers between."""
    if block.place.is_code or block.place.node.tag in HEADINGS:
        return None
    found: Any = next((node for node in reversed(block.place.ancestors) if node.tag in _ENTRIES), None)
    return found if found is not None and found.tag in ("dt", "dd") else None


def _named(term: str) -> str:
    """A term before what it means."""
    if term.endswith((":", "：")):
        return f"{term} "
    return f"{term}：" if _WIDE.search(term[-1]) else f"{term}: "


def _piece(block: Block, written: _Written) -> str:
    place, text = block.place, block.text
    if place.is_code:
        return fenced(text)
    tag = place.node.tag
    if tag in HEADINGS:
        return "#" * HEADINGS[tag] + " " + _line(text)
    item, level = _item_of(block)
    if item is not None:
        return "  " * min(level - 1, _MAX_INDENT) + written.mark(item) + _line(text)
    if any(node.tag == "blockquote" for node in place.ancestors):
        return "> " + text.replace("\n", "\n> ")
    return text


def _item_of(block: Block) -> tuple[Any, int]:
    """The list item right around a block, if nothing but plain wrappers lies between, and how deep it is nested."""
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


def fenced(code: str, language: str = "") -> str:
    """A listing of code in a fence that no line of it ends."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
