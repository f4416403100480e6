"""Chosen blocks as Markdown: headings, lists, tables, quotations and code in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rag.reading.extraction.features import HEADINGS
from rag.reading.extraction.segments import Block

_LISTS = frozenset(["ul", "ol", "menu"])
_CELLS = frozenset(["td", "th"])
_MAX_CELL = 400
_MAX_INDENT = 6


def markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown text; list items and rows of one table stand close, all else a blank line apart."""
    output: list[str] = []
    previous: Any = None
    for group, lines in _pieces(blocks):
        joins = group is not None and group is previous
        output.append(("\n" if joins else "\n\n") + lines if output else lines)
        previous = group
    return "".join(output)


def _pieces(blocks: Sequence[Block]) -> Iterator[tuple[Any, str]]:
    """Each piece of Markdown with what it stands close to others of: its outermost list or its table."""
    tables = data_tables(blocks)
    items: set[Any] = set()
    started: set[Any] = set()
    for row, group in groupby(blocks, key=lambda block: _row_of(block, tables)):
        if row is None:
            for block in group:
                yield _outer_list(block), _piece(block, items)
        else:
            table = next(row.iterancestors("table"))
            text = _row(group)
            if table not in started:
                started.add(table)
                text += "\n" + "|" + "---|" * (text.count(" | ") + 1)
            yield table, text


def _piece(block: Block, items: set[Any]) -> str:
    place, text = block.place, block.text
    if place.is_code:
        return _fenced(text)
    tag = place.node.tag
    if tag in HEADINGS:
        return "#" * HEADINGS[tag] + " " + _line(text)
    item, level = _item_of(block)
    if item is not None:
        indent = "  " * min(level - 1, _MAX_INDENT)
        mark = "  " if item in items else "- "
        items.add(item)
        return indent + mark + _line(text)
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


def data_tables(blocks: Iterable[Block]) -> set[Any]:
    """Tables of short cells without tables in them; others only lay out a page."""
    found: dict[Any, bool] = {}
    for block in blocks:
        tables = [node for node in block.place.ancestors if node.tag == "table"]
        for outer in tables[:-1]:
            found[outer] = False
        if tables:
            is_short = len(block.text) <= _MAX_CELL and not block.place.is_code
            found[tables[-1]] = found.get(tables[-1], True) and is_short
    return {table for table, is_data in found.items() if is_data}


def _row_of(block: Block, tables: set[Any]) -> Any:
    """The row of a data table in which a block stands, if it stands in one."""
    row = None
    for node in block.place.ancestors:
        if node.tag == "table":
            row = None
        elif node.tag == "tr":
            row = node
    table = next(row.iterancestors("table"), None) if row is not None else None
    return row if table in tables else None


def _row(blocks: Iterable[Block]) -> str:
    """One row; the blocks of one cell are joined."""
    cells = groupby(blocks, key=_cell_of)
    texts = (" ".join(_line(block.text) for block in group) for _, group in cells)
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _cell_of(block: Block) -> Any:
    return next((node for node in reversed(block.place.ancestors) if node.tag in _CELLS), None)


def _fenced(code: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}\n{code}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
