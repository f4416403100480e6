"""Code listings as plain text: whole lines with indentation, without line numbers and buttons.

Each becomes one `pre`, whatever markup a highlighter added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate, islice
from textwrap import dedent
from typing import Any, Final

from rag.reading.extraction.tree import read_inline_style
from rag.text import lazy_regex

_NUMBER_CLASS = lazy_regex(
    r"(?:^|[\s_-])(?:(?:code)?line[_-]?n(?:o|os|um|umber|umbers|ums)|ln[tn]?|gutter|blob-num|linenodiv|ln-n\w*)(?:$|[\s_-])"
    r"|linenumber",
    re.IGNORECASE,
)
_NUMBER_ANCHOR = lazy_regex(r"^#?(?:[\w-]+-)?(?:L|line-?)\d+$", re.IGNORECASE)
_LINE_CLASS = lazy_regex(r"line|row", re.IGNORECASE)
_LINE_TAGS: Final = frozenset(["div", "p", "li", "tr", "ol", "ul", "table", "tbody", "pre"])
_CODE_CLASS = lazy_regex(
    r"(?:^|[\s_-])(?:code|blob|hljs|highlight\w*|syntaxhighlighter|line)(?:$|[\s_-])", re.IGNORECASE
)
_COPY = lazy_regex(
    r"\W*(?:copy|copied|copy (?:code|to clipboard)|复制(?:代码)?|複製(?:程式碼)?|コピー)\W*", re.IGNORECASE
)
_LINE_DISPLAYS: Final = frozenset(["block", "flex", "grid", "table-row"])
_PRE_SPACES: Final = frozenset(["pre", "pre-wrap", "break-spaces"])
_MONOSPACE: Final = ("mono", "courier", "consolas", "menlo")
_MAX_WRAPPERS = 3
_MAX_EXTRA = 120
_CONTROLS: Final = (
    ".//button|.//*[@role='button' or contains(@class,'copy') or contains(@class,'gutter') or contains(@class,'line')]"
)
_CODE_CELLS: Final = "//td[.//pre or .//code or contains(@class,'code')][not(ancestor::pre)]"
_LISTINGS: Final = "//*[contains(@style,'white-space')][not(self::pre)]|//code[br][not(ancestor::pre)]"


def write_listings(tree: Any) -> None:
    """Replace each code listing in `tree` with one `pre` of plain text."""
    for table in dict.fromkeys(
        outer for cell in tree.xpath(_CODE_CELLS) for outer in islice(cell.iterancestors("table"), 1)
    ):
        _unwrap(table)
    for node in tree.xpath(_LISTINGS):
        if _is_listing(node):
            node.tag = "pre"
    for pre in tree.xpath("//pre[not(ancestor::pre)]"):
        _drop_controls(pre)
        code = read_code(pre)
        for child in list(pre):
            pre.remove(child)
        pre.text = code
        previous = pre.getprevious()
        if previous is not None and _continues(previous, pre):
            pre.text = f"{previous.text}\n{code}"
            previous.drop_tree()
        for figure in islice(pre.iterancestors("figure"), 1):
            figure.tag = "div"  # figures count as pictures, whose captions are rarely main text
            figure.attrib.pop("class", None)


def _continues(previous: Any, pre: Any) -> bool:
    """Return whether a one-line `pre` continues the one before it."""
    is_alike = previous.tag == "pre" and previous.get("class") == pre.get("class") and pre.get("class")
    return bool(is_alike and "\n" not in pre.text.strip("\n") and not (previous.tail or "").strip())


@dataclass(slots=True)
class _Code:
    """A builder of a listing's text; `lines` has the elements that are one line each."""

    lines: frozenset[Any]
    pieces: list[str] = field(default_factory=list)
    is_numbered: bool = False

    def add(self, text: str | None) -> None:
        if text:
            self.pieces.append(text)

    def end_line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.add("\n")


def read_code(node: Any) -> str:
    """Return the text of a listing, line by line."""
    code = _Code(_find_lines(node))
    _collect(node, code)
    text = "".join(code.pieces)
    return dedent(text.expandtabs(4)) if code.is_numbered else text


def _collect(node: Any, code: _Code) -> None:
    code.add(node.text)
    for child in node:
        is_line = (
            child in code.lines or child.tag in _LINE_TAGS or read_inline_style(child).get("display") in _LINE_DISPLAYS
        )
        if child.tag == "br":
            code.add("\n")
        elif _is_number(child):
            code.is_numbered = True
        elif isinstance(child.tag, str) and child.tag != "button":
            if is_line:
                code.end_line()
            count = len(code.pieces)
            _collect(child, code)
            if is_line and len(code.pieces) == count:
                code.add("\n")  # an empty line
            elif is_line:
                code.end_line()
        if not is_line or (child.tail or "").strip():
            code.add(child.tail)


def _find_lines(node: Any) -> frozenset[Any]:
    """Return the elements that only a style sheet draws as lines: siblings of one kind, without line breaks."""
    if "\n" in node.text_content().strip() or node.find(".//br") is not None:
        # The text already has line breaks.
        return frozenset()
    box = node
    while len(box) == 1 and not (box.text or "").strip():
        box = box[0]
    names = {(child.tag, (child.get("class") or "").partition(" ")[0]) for child in box}
    are_alike = len(box) > 1 and len(names) == 1 and not any((child.tail or "").strip() for child in box)
    return frozenset(box) if are_alike and (box[0].tag == "code" or _LINE_CLASS.search(names.pop()[1])) else frozenset()


def _is_number(node: Any) -> bool:
    """Return whether an element is a line number, by its name and text."""
    return _has_number_name(node) and all(map(str.isdigit, node.text_content().split()))


def _has_number_name(node: Any) -> bool:
    return bool(
        _NUMBER_CLASS.search(node.get("class") or "")
        or (node.get("data-line-number") and node.tag != "tr")
        or read_inline_style(node).get("user-select") == "none"
        or (node.tag == "a" and _NUMBER_ANCHOR.match(node.get("href") or node.get("id") or node.get("name") or ""))
    )


def _unwrap(table: Any) -> None:
    """Replace a table of line numbers and code with a `pre` of the code."""
    rows = [[cell for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]
    rows = [cells for cells in rows if cells]
    if any(len(cells) < 2 or not all(map(_is_number_cell, cells[:-1])) for cells in rows):
        return
    for *_, cell in rows:
        has_code = cell.find(".//pre") is not None or (len(cell) == 1 and cell[0].tag == "code")
        if not has_code and not _CODE_CLASS.search(cell.get("class") or ""):
            return
    listing = table.makeelement("pre")
    listing.text = "\n".join(read_code(cells[-1]).strip("\n") for cells in rows)
    listing.tail = table.tail
    table.tail = None
    table.getparent().replace(table, listing)


def _is_number_cell(cell: Any) -> bool:
    if not all(map(str.isdigit, cell.text_content().split())):
        return False
    return _has_number_name(cell) or any(map(_has_number_name, cell.iterdescendants()))


def _is_listing(node: Any) -> bool:
    """Return whether an element other than a `pre` is drawn as one."""
    if node.tag == "code" and node.find("br") is not None:
        return bool(node.getparent().text_content().strip() == node.text_content().strip())
    style = read_inline_style(node)
    fonts = style.get("font", "") + style.get("font-family", "")
    is_code = node.tag == "code" or any(name in fonts for name in _MONOSPACE)
    is_code = is_code or bool(_CODE_CLASS.search(node.get("class") or ""))
    keeps_spaces = style.get("white-space", "").partition(" ")[0] in _PRE_SPACES
    return is_code and keeps_spaces and node.find(".//pre") is None and "\n" in node.text_content()


def _drop_controls(pre: Any) -> None:
    """Remove the buttons and separate line numbers around a listing."""
    size = len(pre.text_content())
    for box in islice(pre.iterancestors(), _MAX_WRAPPERS):
        # Added up only as far as needed, since the box may be the whole page.
        is_longer = any(total > size + _MAX_EXTRA + size // 2 for total in accumulate(map(len, box.itertext())))
        if box.tag in ("body", "main", "article") or is_longer:
            break
        for node in box.xpath(_CONTROLS):
            is_control = node.tag == "button" or _COPY.fullmatch(node.text_content()) or _is_number(node)
            if is_control and node is not pre and pre not in node.iterdescendants():
                node.drop_tree()
        if not "".join(box.xpath(".//text()[not(ancestor::pre)]")).strip():
            box.attrib.pop("class", None)  # a toolbar's class would make the code look like controls
