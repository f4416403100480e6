"""Office files: zip packages, checked for size before they are opened, and Office Open XML as HTML.

Office Open XML has two dialects. Strict differs from Transitional, which libraries read, only in its namespaces
(ISO/IEC 29500-4, annex A), so these are rewritten. WordprocessingML and DrawingML use the same names for runs, symbols,
notes, equations, text boxes and tables, so elements are matched without their namespace. Readers convert the HTML to
Markdown like that of web pages.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rag.errors import IngestError
from rag.text import lazy_regex
from rag.web.guard import printable

MAX_UNPACKED = 40_000_000
"""Max. bytes of a package's XML parts, without pictures, which are not unpacked."""
_PACKAGE_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, OSError, StopIteration, TypeError),
    *(RuntimeError, SyntaxError, ValueError, zipfile.BadZipFile, zlib.error),  # XML errors are SyntaxErrors
)
"""Errors that libraries raise for invalid or inconsistent packages."""
_MAX_PARTS = 20_000
_PROPERTIES = {
    "title": "title",
    "author": "creator initial-creator",
    "created": "created creation-date",
    "modified": "modified date",
}
_TEXT_SUFFIXES = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_STRICT = lazy_regex(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_NULL_RELATION = lazy_regex(rb'<Relationship\b[^<>]*\bTarget="[^"<>]*\bNULL"[^<>]*/>')

_TOKEN = lazy_regex(r"\d+(?:[.,]\d+)*|[^\W\d_]|\S")
# Elements with a MathML equivalent, whose children are in the same order; all others become `mrow`.
_NAMES = {"f": "mfrac", "sSup": "msup", "sSub": "msub", "sSubSup": "msubsup", "limLow": "munder", "limUpp": "mover"}
_NAMES |= {"m": "mtable", "eqArr": "mtable", "mr": "mtr"}
_SIGNS = {"nary": "∫", "acc": "̂", "groupChr": "⏟", "bar": "¯"}
_SUMS = "∑∏∐⋃⋂⋁⋀"


@contextmanager
def report_broken(url: str, code: str = "office_broken", *more: type[Exception]) -> Iterator[None]:
    """Turn errors about an invalid package, and those of `more` types, into IngestError(`code`)."""
    errors: tuple[type[Exception], ...] = (*_PACKAGE_ERRORS, *more)
    try:
        yield
    except errors as error:
        raise IngestError(code, url=printable(url)) from error


def open_package(body: bytes, url: str, limit: int = MAX_UNPACKED) -> zipfile.ZipFile:
    """Open a package unless its declared unpacked size exceeds `limit`; zipfile reads no more than declared.

    Raises IngestError("office_too_large"), and what `report_broken` handles.
    """
    package = zipfile.ZipFile(BytesIO(body))
    parts = package.infolist()
    unpacked = sum(part.file_size for part in parts if part.filename.endswith(_TEXT_SUFFIXES))
    if unpacked > limit or sum(part.file_size for part in parts) > 10 * MAX_UNPACKED or len(parts) > _MAX_PARTS:
        raise IngestError("office_too_large", url=printable(url), limit=limit // 1_000_000)
    return package


def normalize_package(body: bytes, url: str, limit: int = MAX_UNPACKED) -> BytesIO:
    """Return Office Open XML in the dialect that libraries read, without relations to missing parts.

    Raises what `open_package` does.
    """
    package = open_package(body, url, limit)
    relations = b"".join(package.read(name) for name in package.namelist() if name.endswith(".rels"))
    if not (_STRICT.search(relations) or _NULL_RELATION.search(relations)):
        return BytesIO(body)
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in package.namelist():
            data = package.read(name)
            if name.endswith((".xml", ".rels")):
                data = _NULL_RELATION.sub(b"", _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data))
            archive.writestr(name, data)
    return stream


def parse_xml(data: bytes) -> Any:
    """Parse a part's XML and return its root, without external files or entities."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def read_meta(package: zipfile.ZipFile, name: str = "docProps/core.xml") -> dict[str, str]:
    """Return the properties of a package: title, author, created and modified."""
    root = parse_xml(package.read(name) if name in package.namelist() else b"<none/>")
    texts = {get_tag(node): node.text or "" for node in root.iter() if get_tag(node)}
    return {
        key: next((texts[name] for name in names.split() if name in texts), "") for key, names in _PROPERTIES.items()
    }


def get_tag(node: Any) -> str:
    """Return an element's name without its namespace; "" for comments."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def get_attr(node: Any, name: str, default: str = "") -> str:
    """Return an attribute's value in any namespace."""
    return next((str(text) for key, text in node.items() if key.rpartition("}")[2] == name), default)


def get_val(node: Any, path: str) -> str:
    """Return the `val` of the element at `path`: "" without the element, "1" (on) without the attribute."""
    element = node.find(path)
    return "" if element is None else get_attr(element, "val", "1")


def to_int(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default


def to_mathml(node: Any) -> str:
    """Convert an Office Math element to MathML."""
    name = get_tag(node)
    html_parts = [(get_tag(part), to_mathml(part)) for part in node if not get_tag(part).endswith("Pr")]
    parts, inside = dict(html_parts), "".join(html for _, html in html_parts)
    e, sub, sup = (parts.get(part, "") for part in ("e", "sub", "sup"))
    sign = _get_prop(node, "chr", _SIGNS.get(name, ""))
    if name == "r":
        text = "".join(part.text or "" for part in node if get_tag(part) == "t")
        is_word = len(text) > 1 and (node.find("{*}rPr/{*}nor") is not None or get_tag(node.getparent()) == "fName")
        return f"<mi>{escape(text)}</mi>" if is_word else "".join(map(_wrap, _TOKEN.findall(text)))
    if name in ("t", "del", "moveFrom"):
        return ""
    if name == "rad":
        return f"<msqrt>{e}</msqrt>" if node.find("{*}deg/*") is None else f"<mroot>{e}{parts['deg']}</mroot>"
    if name == "nary":
        tag = "munderover" if sign in _SUMS else "msubsup"
        return f"<{tag}>{_wrap(sign)}{sub}{sup}</{tag}>{e}"
    if name == "sPre":
        return f"<msubsup><mrow></mrow>{sub}{sup}</msubsup>{e}"
    if name in _SIGNS:
        tag = "munder" if _get_prop(node, "pos", "bot" if name == "groupChr" else "top") == "bot" else "mover"
        return f"<{tag}>{e}{_wrap(sign)}</{tag}>"
    if name == "d":
        fences = [
            _wrap(_get_prop(node, fence, sign)) for fence, sign in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
        ]
        return f"<mrow>{fences[0]}{fences[1].join(html for part, html in html_parts if part == 'e')}{fences[2]}</mrow>"
    if name == "e" and get_tag(node.getparent()) in ("mr", "eqArr"):
        return f"<mtd>{inside}</mtd>" if get_tag(node.getparent()) == "mr" else f"<mtr><mtd>{inside}</mtd></mtr>"
    return f"<{_NAMES.get(name, 'mrow')}>{inside}</{_NAMES.get(name, 'mrow')}>"


def _wrap(token: str) -> str:
    tag = "mn" if token[:1].isdigit() else "mi" if token.isalpha() else "mo"
    return f"<{tag}>{escape(token)}</{tag}>" if token else ""


def _get_prop(node: Any, name: str, default: str) -> str:
    child = node.find(f"{{*}}{get_tag(node)}Pr/{{*}}{name}")
    return default if child is None else get_attr(child, "val")


_SYMBOLS = Path(__file__).with_name("symbols.json")
# Deleted and moved text, field instructions, and properties.
_SKIPPED = frozenset("del moveFrom instrText delText delInstrText pPr rPr sdtPr endParaRPr sectPr".split())
_WRAPPERS = frozenset("sdt sdtContent ins moveTo customXml smartTag AlternateContent Choice txBody".split())
_REPLACEMENTS = {"tab": "\t", "ptab": "\t", "br": "<br>", "cr": "<br>", "noBreakHyphen": "-"}
_OFF = frozenset(["", "0", "false", "off", "none", "noStrike"])
_MAX_COLUMNS = 100
_LONG_CELL = 300
_PRIVATE_USE = 0xF000

Run = tuple[tuple[str, ...], str]
"""The tags of a run (`sup`, `s`), and its font or its HTML."""


class HtmlBlock(NamedTuple):
    """HTML of a paragraph or table. `kind` is "ul", "ol" or "pre" if it is joined with its neighbours."""

    html: str
    kind: str = ""
    depth: int = 0


class Walker:
    """A converter from Office Open XML to HTML. Text boxes and notes inside a line are collected in `asides`."""

    def __init__(self) -> None:
        self.asides: list[str] = []
        self.depth = 0  # of nested tables

    def write_blocks(self, node: Any) -> Iterator[str]:
        """Yield the paragraphs, whole lists and tables in an element."""
        for kind, group in groupby(self.iter_blocks(node), key=lambda block: block.kind.replace("ol", "ul")):
            if kind == "pre":
                yield f"<pre>{chr(10).join(block.html for block in group)}</pre>"
            else:
                yield _nest_lists(group) if kind else "".join(block.html for block in group)

    def iter_blocks(self, node: Any) -> Iterator[HtmlBlock]:
        for child in unwrap(node):
            if get_tag(child) == "p" and len(child):
                yield from self.write_paragraph(child)
            elif get_tag(child) == "tbl":
                yield HtmlBlock(self.write_table(child))

    def write_paragraph(self, node: Any) -> Iterator[HtmlBlock]:
        yield HtmlBlock(f"<p>{self.write_line(node)}</p>")

    def write_line(self, node: Any) -> str:
        """Return the runs of an element as HTML; adjacent runs with the same tags are merged."""
        parts = []
        for tags, group in groupby(self._iter_runs(node, ((), "")), key=lambda run: run[0]):
            text = "".join(html for _, html in group)
            for tag in tags if text.strip() else ():
                text = f"<{tag}>{text}</{tag}>"
            parts.append(text)
        return "".join(parts)

    def write_table(self, table: Any) -> str:
        """Return a table as HTML with its spans, without deleted rows and cells."""
        open_cells: dict[int, list[Any]] = {}  # by column, the cells that may continue below: HTML, columns, rows
        rows = []
        self.depth += 1
        for row in (row for row in unwrap(table) if get_tag(row) == "tr" and row.find("{*}trPr/{*}del") is None):
            column = to_int(get_val(row, "{*}trPr/{*}gridBefore"), 0)
            cells: list[list[Any]] = [["", column, 1]] if column else []
            for cell in unwrap(row):
                is_left_out = cell.find("{*}tcPr/{*}cellDel") is not None or is_on(cell.get("hMerge", ""))
                if get_tag(cell) != "tc" or is_left_out:
                    continue
                if column in open_cells and _is_merged(cell):
                    open_cells[column][2] += 1
                else:
                    width = to_int(get_val(cell, "{*}tcPr/{*}gridSpan") or cell.get("gridSpan"), 1)
                    open_cells[column] = ["".join(self.write_blocks(cell)), min(max(1, width), _MAX_COLUMNS), 1]
                    cells.append(open_cells[column])
                column += open_cells[column][1]
            rows.append(("th" if is_on(get_val(row, "{*}trPr/{*}tblHeader")) else "td", cells))
        self.depth -= 1
        # Without a header, a table with long texts or inner tables would be mistaken for a layout table.
        if any(len(html) > _LONG_CELL or "<table>" in html for _, cells in rows for html, _, _ in cells):
            rows[0] = ("th", rows[0][1])
        html_rows = (
            "".join(f"<{tag} colspan={width} rowspan={height}>{html}</{tag}>" for html, width, height in cells)
            for tag, cells in rows
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in html_rows)}</table>"

    def find_properties(self, run: Any) -> Iterable[Any]:
        """Yield the properties that apply to a run, the closest first."""
        yield from run.findall("{*}rPr")

    def write_note(self, kind: str, reference: Any) -> str:
        """Return the mark of the referenced note."""
        return ""

    def _iter_runs(self, node: Any, style: Run) -> Iterator[Run]:
        """Yield HTML with its tags; `style` has the tags and font of the enclosing run."""
        for child in node:
            name = get_tag(child)
            if name in ("r", "fld"):
                if own := _read_style(self.find_properties(child)):
                    yield from self._iter_runs(child, own)
            elif name == "t":
                yield style[0], escape(_map_symbols(child.text or "", style[1]), quote=False)
            elif name == "sym":
                sign = chr(int(get_attr(child, "char") or "20", 16))
                yield style[0], escape(_map_symbols(sign, get_attr(child, "font")), quote=False)
            elif name in _REPLACEMENTS:
                yield style[0], _REPLACEMENTS[name]
            elif name in ("oMath", "oMathPara"):
                yield (), f"<math>{to_mathml(child)}</math>"
            elif name.endswith("Reference"):
                yield (), self.write_note(name.removesuffix("Reference"), child)
            elif name == "txbxContent":
                self.asides += list(self.write_blocks(child))
            elif name == "ruby":
                parts = {get_tag(part): self.write_line(part) for part in child}
                yield style[0], f"<ruby>{parts.get('rubyBase', '')}<rt>{parts.get('rt', '')}</rt></ruby>"
            elif (box := _find_check_box(child)) is not None:
                state = get_val(box, "{*}checked") or get_val(box, "{*}default")
                yield (), f"<span role=checkbox aria-checked={str(is_on(state)).lower()}></span> "
            elif name and name not in _SKIPPED and not _is_prompt(child):
                yield style[0], " " if name == "p" else ""
                yield from self._iter_runs(_select_alternative(child), style)


def unwrap(node: Any) -> Iterator[Any]:
    """Yield the child elements, including those in wrappers such as content controls and insertions."""
    for child in _select_alternative(node):
        if get_tag(child) not in _WRAPPERS:
            yield child
        elif not _is_prompt(child):
            yield from unwrap(child)


def is_on(setting: str) -> bool:
    return setting not in _OFF


def _select_alternative(node: Any) -> Any:
    """Return the first of several alternative drawings, or else the element's content."""
    return node[:1] if get_tag(node) == "AlternateContent" else node


def _is_prompt(node: Any) -> bool:
    """Return whether a content control shows its placeholder text."""
    return get_tag(node) == "sdt" and node.find("{*}sdtPr/{*}showingPlcHdr") is not None


def _find_check_box(node: Any) -> Any:
    """Return the check box of a content control or legacy form field, or None."""
    place = {"sdt": "{*}sdtPr/{*}checkbox", "fldChar": "{*}ffData/{*}checkBox"}.get(get_tag(node))
    return node.find(place) if place else None


def _is_merged(cell: Any) -> bool:
    """Return whether a cell is merged with the one above it."""
    merge = cell.find("{*}tcPr/{*}vMerge")
    return is_on(cell.get("vMerge", "")) if merge is None else get_attr(merge, "val") != "restart"


def _read_style(properties: Iterable[Any]) -> Run | None:
    """Return the tags of a run and its font; None for hidden text."""
    settings: dict[str, str] = {}
    for node in properties:  # in Word a property is an element, on slides an attribute
        fonts = [get_attr(child, "ascii") or get_attr(child, "typeface") for child in node]
        own = {"font": next(filter(None, fonts), ""), **{get_tag(child): get_attr(child, "val", "1") for child in node}}
        settings = {name: text for name, text in {**dict(node.items()), **own}.items() if text} | settings
    if is_on(settings.get("vanish", "")):
        return None
    place = settings.get("vertAlign") or settings.get("baseline", "0")
    tags = ["sup"] * (place == "superscript" or (is_on(place.strip("0%")) and place.strip("0%").isdigit()))
    tags += ["sub"] * (place == "subscript" or place.startswith("-"))
    tags += ["s"] * any(is_on(settings.get(name, "")) for name in ("strike", "dstrike"))
    return tuple(tags), settings.get("font", "")


def _map_symbols(text: str, font: str) -> str:
    """Map characters to the signs that a font such as Symbol or Wingdings draws for them."""
    if font not in _load_symbols():
        return text
    codes = (code - _PRIVATE_USE if code >= _PRIVATE_USE else code for code in map(ord, text))
    return "".join(_load_symbols()[font][place - 0x20] if 0x20 <= place < 0x100 else chr(place) for place in codes)


@cache
def _load_symbols() -> dict[str, str]:
    """Load the characters that symbol fonts draw for the codes from 0x20 to 0xFF, by font name."""
    loaded: dict[str, str] = json.loads(_SYMBOLS.read_text("utf-8"))
    return loaded


def _nest_lists(items: Iterable[HtmlBlock]) -> str:
    """Nest list items by their depth."""
    open_tags: list[str] = []
    parts: list[str] = []
    for item in items:
        while len(open_tags) > item.depth + 1 or (len(open_tags) == item.depth + 1 and open_tags[-1] != item.kind):
            parts.append(f"</{open_tags.pop()}>")
        while len(open_tags) <= item.depth:
            open_tags.append(item.kind)
            parts.append(f"<{item.kind}>")
        parts.append(item.html)
    return "".join([*parts, *(f"</{tag}>" for tag in reversed(open_tags))])
