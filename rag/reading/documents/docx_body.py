"""The body of a Word document, block by block, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag.reading.documents.table import markdown_row

if TYPE_CHECKING:
    from docx.document import Document

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_P, _TBL, _TR, _TC = f"{_W}p", f"{_W}tbl", f"{_W}tr", f"{_W}tc"
_TEXT = frozenset([f"{_W}t", f"{_M}t"])
_BREAKS = frozenset([f"{_W}br", f"{_W}cr"])
# Deleted and moved text, the second copy of a drawing for old programs, and what stands outside the body.
_SKIPPED = frozenset([f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback", f"{_W}instrText", f"{_W}delText"])
_PARTS = frozenset([f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}moveTo", f"{_W}customXml", f"{_W}smartTag"])
_HEADING = re.compile(r"(?:heading|标题|titre|überschrift)\s*([1-9])", re.IGNORECASE)
_LISTED = re.compile(r"list|列表", re.IGNORECASE)
_CODE = re.compile(r"code|preformatted|source", re.IGNORECASE)
_ON = frozenset([None, "1", "true", "on"])
_MAX_COLUMNS = 100
_MAX_DEPTH = 8


class BodyReader:
    """Walks a document's body once; `title` and `first_heading` are known when `blocks` has ended."""

    def __init__(self, document: Document, limit: int) -> None:
        """`limit` is the longest text in characters; past it `is_full` is set and the walk ends."""
        self.title = ""
        self.first_heading = ""
        self.is_full = False
        self._room = limit
        self._body = document.element.body
        self._styles = _style_names(document)
        self._numbers = _ordered_lists(document)

    def blocks(self) -> Iterator[str]:
        """Headings, paragraphs, whole lists and tables, in order."""
        items: list[str] = []
        for node in _children(self._body, 0):
            is_item, text = self._block(node)
            self._room -= len(text)
            if self._room < 0:
                self.is_full = True
                return
            if is_item:
                items.append(text)
                continue
            if items:
                yield "\n".join(items)
                items = []
            if text:
                yield text
        if items:
            yield "\n".join(items)

    def _block(self, node: Any) -> tuple[bool, str]:
        """Whether a block is a list's item, and its text."""
        if node.tag == _TBL:
            return False, "\n".join(self._table(node))
        text = _text(node)
        if not text.strip():
            return False, ""
        name = self._style(node)
        if level := _level(node, name):
            line = " ".join(text.split())
            self.first_heading = self.first_heading or line
            return False, f"{'#' * min(level + 1, 6)} {line}"
        if name.lower() in ("title", "标题"):
            self.title = self.title or " ".join(text.split())
            return False, f"# {' '.join(text.split())}"
        if item := self._item(node, name):
            return True, item + text.replace("\n", "\n  ")
        return False, f"```\n{text}\n```" if _CODE.search(name) else text

    def _style(self, node: Any) -> str:
        found = node.find(f"{_W}pPr/{_W}pStyle")
        return self._styles.get(found.get(f"{_W}val"), "") if found is not None else ""

    def _item(self, node: Any, style: str) -> str:
        """The mark before a list's item, with its indentation; "" for other paragraphs."""
        number = node.find(f"{_W}pPr/{_W}numPr/{_W}numId")
        if number is None or number.get(f"{_W}val") == "0":
            if not _LISTED.match(style):
                return ""
            return "1. " if "number" in style.lower() else "- "
        depth = node.find(f"{_W}pPr/{_W}numPr/{_W}ilvl")
        level = _number(depth.get(f"{_W}val"), 0) if depth is not None else 0
        ordered = (number.get(f"{_W}val"), level) in self._numbers
        return "  " * min(max(level, 0), _MAX_DEPTH) + ("1. " if ordered else "- ")

    def _table(self, table: Any) -> Iterator[str]:
        """Rows with a rule below the first; merged cells count once in a row and are repeated down a column."""
        above: list[str] = []
        for i, row in enumerate(table.iter(_TR) if table.find(f".//{_TBL}") is None else table.findall(_TR)):
            cells = _cells(row, above)
            above = cells
            if any(cells):
                yield markdown_row(cells)
            if i == 0:
                yield "| " + " | ".join("---" for _ in cells) + " |"


def _cells(row: Any, above: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iter(_TC):
        if any(outer is not row and outer.tag == _TR for outer in _rows_around(cell, row)):
            continue  # of a table within the cell, whose text the cell has
        merge = cell.find(f"{_W}tcPr/{_W}vMerge")
        place = len(cells)
        goes_on = merge is not None and merge.get(f"{_W}val") != "restart"
        text = above[place] if goes_on and place < len(above) else " ".join(_text(cell).split())
        span = cell.find(f"{_W}tcPr/{_W}gridSpan")
        width = _number(span.get(f"{_W}val"), 1) if span is not None else 1
        cells.extend([text, *[""] * (max(1, width) - 1)][:_MAX_COLUMNS])
        if len(cells) >= _MAX_COLUMNS:
            break
    return cells[:_MAX_COLUMNS]


def _rows_around(cell: Any, row: Any) -> Iterator[Any]:
    for outer in cell.iterancestors(_TR):
        if outer is row:
            return
        yield outer


def _children(node: Any, depth: int) -> Iterator[Any]:
    """Paragraphs and tables, also those within content controls and insertions."""
    for child in node:
        if child.tag in (_P, _TBL):
            yield child
        elif child.tag in _PARTS and depth < _MAX_DEPTH:
            yield from _children(child, depth + 1)


def _text(node: Any) -> str:
    """What a reader sees of a paragraph or cell: without deleted and hidden text."""
    parts: list[str] = []
    _gather(node, parts)
    return "".join(parts).strip()


def _gather(node: Any, parts: list[str]) -> None:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            parts.append(here)
            continue
        if here.tag in _SKIPPED or (here.tag == f"{_W}r" and _is_hidden(here)):
            continue
        if here.tag in _TEXT:
            parts.append(here.text or "")
        elif here.tag == f"{_W}tab":
            parts.append("\t")
        elif here.tag in _BREAKS:
            parts.append("\n")
        else:
            if here.tag == _P and here is not node:
                parts.append("\n")
            waiting.extend(reversed(here))


def _is_hidden(run: Any) -> bool:
    vanish = run.find(f"{_W}rPr/{_W}vanish")
    return vanish is not None and vanish.get(f"{_W}val") in _ON


def _level(node: Any, style: str) -> int:
    """A heading's level from 1, by its style or its outline level; 0 for text."""
    if match := _HEADING.match(style):
        return int(match[1])
    outline = node.find(f"{_W}pPr/{_W}outlineLvl")
    level = _number(outline.get(f"{_W}val"), 9) if outline is not None else 9
    return level + 1 if 0 <= level < 9 else 0


def _style_names(document: Document) -> dict[str, str]:
    """Style id -> name; the built-in ones have English names in every language of Word."""
    names: dict[str, str] = {}
    for style in document.styles.element.findall(f"{_W}style"):
        name = style.find(f"{_W}name")
        names[style.get(f"{_W}styleId") or ""] = (name.get(f"{_W}val") or "") if name is not None else ""
    return names


def _ordered_lists(document: Document) -> set[tuple[str, int]]:
    """The (list id, level) pairs that count their items."""
    try:
        root = document.part.numbering_part.element
    except (KeyError, NotImplementedError):
        return set()
    ordered: dict[str, set[int]] = {}
    for kind in root.findall(f"{_W}abstractNum"):
        formats = ((level.get(f"{_W}ilvl"), level.find(f"{_W}numFmt")) for level in kind.findall(f"{_W}lvl"))
        ordered[kind.get(f"{_W}abstractNumId") or ""] = {
            _number(level, 0)
            for level, how in formats
            if how is not None and how.get(f"{_W}val") not in ("bullet", "none")
        }
    pairs: set[tuple[str, int]] = set()
    for number in root.findall(f"{_W}num"):
        kind = number.find(f"{_W}abstractNumId")
        levels = ordered.get(kind.get(f"{_W}val") or "", set()) if kind is not None else set()
        pairs |= {(number.get(f"{_W}numId") or "", level) for level in levels}
    return pairs


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default
