"""Text of Office Open XML as HTML: runs, symbols, notes, equations, text boxes and tables, in Word and on slides.

WordprocessingML and DrawingML name these things alike, so elements go by their names without a namespace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rag.reading.office.package import attribute, local, number, value

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]|\S")
# Elements of which MathML has the like, with their parts in the same order; parts and all others are rows.
_NAMES = {"f": "mfrac", "sSup": "msup", "sSub": "msub", "sSubSup": "msubsup", "limLow": "munder", "limUpp": "mover"}
_NAMES |= {"m": "mtable", "eqArr": "mtable", "mr": "mtr"}
_SIGNS = {"nary": "∫", "acc": "̂", "groupChr": "⏟", "bar": "¯"}
_SUMS = "∑∏∐⋃⋂⋁⋀"


def mathml(node: Any) -> str:
    """An element of an equation as MathML."""
    name = local(node)
    written = [(local(part), mathml(part)) for part in node if not local(part).endswith("Pr")]
    parts, inside = dict(written), "".join(html for _, html in written)
    e, sub, sup = (parts.get(part, "") for part in ("e", "sub", "sup"))
    sign = _property(node, "chr", _SIGNS.get(name, ""))
    if name == "r":
        text = "".join(part.text or "" for part in node if local(part) == "t")
        is_word = len(text) > 1 and (node.find("{*}rPr/{*}nor") is not None or local(node.getparent()) == "fName")
        return f"<mi>{escape(text)}</mi>" if is_word else "".join(map(_token, _TOKEN.findall(text)))
    if name in ("t", "del", "moveFrom"):
        return ""
    if name == "rad":
        return f"<msqrt>{e}</msqrt>" if node.find("{*}deg/*") is None else f"<mroot>{e}{parts['deg']}</mroot>"
    if name == "nary":
        tag = "munderover" if sign in _SUMS else "msubsup"
        return f"<{tag}>{_token(sign)}{sub}{sup}</{tag}>{e}"
    if name == "sPre":
        return f"<msubsup><mrow></mrow>{sub}{sup}</msubsup>{e}"
    if name in _SIGNS:
        tag = "munder" if _property(node, "pos", "bot" if name == "groupChr" else "top") == "bot" else "mover"
        return f"<{tag}>{e}{_token(sign)}</{tag}>"
    if name == "d":
        fences = [
            _token(_property(node, fence, sign)) for fence, sign in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
        ]
        return f"<mrow>{fences[0]}{fences[1].join(html for part, html in written if part == 'e')}{fences[2]}</mrow>"
    if name == "e" and local(node.getparent()) in ("mr", "eqArr"):
        return f"<mtd>{inside}</mtd>" if local(node.getparent()) == "mr" else f"<mtr><mtd>{inside}</mtd></mtr>"
    return f"<{_NAMES.get(name, 'mrow')}>{inside}</{_NAMES.get(name, 'mrow')}>"


def _token(token: str) -> str:
    tag = "mn" if token[:1].isdigit() else "mi" if token.isalpha() else "mo"
    return f"<{tag}>{escape(token)}</{tag}>" if token else ""


def _property(node: Any, name: str, default: str) -> str:
    found = node.find(f"{{*}}{local(node)}Pr/{{*}}{name}")
    return default if found is None else attribute(found, "val")


_SYMBOLS = Path(__file__).with_name("symbols.json")
# Deleted and moved text, instructions of fields, and properties.
_SKIPPED = frozenset("del moveFrom instrText delText delInstrText pPr rPr sdtPr endParaRPr sectPr".split())
_AROUND = frozenset("sdt sdtContent ins moveTo customXml smartTag AlternateContent Choice txBody".split())
_DRAWN = {"tab": "\t", "ptab": "\t", "br": "<br>", "cr": "<br>", "noBreakHyphen": "-"}
_OFF = frozenset(["", "0", "false", "off", "none", "noStrike"])
_MAX_COLUMNS = 100
_LONG = 300
_PRIVATE = 0xF000

Run = tuple[tuple[str, ...], str]
"""The elements that a run stands in (`sup`, `s`), and its font or its HTML."""


class Block(NamedTuple):
    """HTML of a paragraph or table. `kind` is "ul", "ol" or "pre" for what is joined to its neighbours."""

    html: str
    kind: str = ""
    depth: int = 0


class Walker:
    """Writes elements as HTML. What does not belong in the line that it is anchored in waits in `asides`."""

    def __init__(self) -> None:
        self.asides: list[str] = []
        self.depth = 0  # of tables within tables

    def blocks(self, node: Any) -> Iterator[str]:
        """The paragraphs, whole lists and tables in an element."""
        for kind, group in groupby(self.parts(node), key=lambda block: block.kind.replace("ol", "ul")):
            if kind == "pre":
                yield f"<pre>{chr(10).join(block.html for block in group)}</pre>"
            else:
                yield _nested(group) if kind else "".join(block.html for block in group)

    def parts(self, node: Any) -> Iterator[Block]:
        for child in children(node):
            if local(child) == "p" and len(child):
                yield from self.paragraph(child)
            elif local(child) == "tbl":
                yield Block(self.table(child))

    def paragraph(self, node: Any) -> Iterator[Block]:
        yield Block(f"<p>{self.line(node)}</p>")

    def line(self, node: Any) -> str:
        """The runs in an element; neighbours that are struck out or raised are so together."""
        parts = []
        for tags, group in groupby(self._runs(node, ((), "")), key=lambda run: run[0]):
            text = "".join(html for _, html in group)
            for tag in tags if text.strip() else ():
                text = f"<{tag}>{text}</{tag}>"
            parts.append(text)
        return "".join(parts)

    def table(self, table: Any) -> str:
        """Rows of cells with their spans; deleted rows and cells are left out."""
        started: dict[int, list[Any]] = {}  # by column, the cells that may go on below: HTML, columns, rows
        rows = []
        self.depth += 1
        for row in (row for row in children(table) if local(row) == "tr" and row.find("{*}trPr/{*}del") is None):
            column = number(value(row, "{*}trPr/{*}gridBefore"), 0)
            cells: list[list[Any]] = [["", column, 1]] if column else []
            for cell in children(row):
                if local(cell) != "tc" or cell.find("{*}tcPr/{*}cellDel") is not None or is_on(cell.get("hMerge", "")):
                    continue
                if column in started and _goes_on(cell):
                    started[column][2] += 1
                else:
                    width = number(value(cell, "{*}tcPr/{*}gridSpan") or cell.get("gridSpan"), 1)
                    started[column] = ["".join(self.blocks(cell)), min(max(1, width), _MAX_COLUMNS), 1]
                    cells.append(started[column])
                column += started[column][1]
            rows.append(("th" if is_on(value(row, "{*}trPr/{*}tblHeader")) else "td", cells))
        self.depth -= 1
        # Without names a table of long texts, or of tables, would be taken for one that lays out a page.
        if any(len(html) > _LONG or "<table>" in html for _, cells in rows for html, _, _ in cells):
            rows[0] = ("th", rows[0][1])
        written = (
            "".join(f"<{tag} colspan={width} rowspan={height}>{html}</{tag}>" for html, width, height in cells)
            for tag, cells in rows
        )
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in written)}</table>"

    def properties(self, run: Any) -> Iterable[Any]:
        """The properties that hold for a run, the nearest first."""
        yield from run.findall("{*}rPr")

    def note(self, kind: str, reference: Any) -> str:
        """The mark of the note that is referred to."""
        return ""

    def _runs(self, node: Any, style: Run) -> Iterator[Run]:
        """HTML with the elements that it stands in; `style` holds those of the run around it, and its font."""
        for child in node:
            name = local(child)
            if name in ("r", "fld"):
                if own := _style(self.properties(child)):
                    yield from self._runs(child, own)
            elif name == "t":
                yield style[0], escape(_as_drawn(child.text or "", style[1]), quote=False)
            elif name == "sym":
                sign = chr(int(attribute(child, "char") or "20", 16))
                yield style[0], escape(_as_drawn(sign, attribute(child, "font")), quote=False)
            elif name in _DRAWN:
                yield style[0], _DRAWN[name]
            elif name in ("oMath", "oMathPara"):
                yield (), f"<math>{mathml(child)}</math>"
            elif name.endswith("Reference"):
                yield (), self.note(name.removesuffix("Reference"), child)
            elif name == "txbxContent":
                self.asides += list(self.blocks(child))
            elif name == "ruby":
                parts = {local(part): self.line(part) for part in child}
                yield style[0], f"<ruby>{parts.get('rubyBase', '')}<rt>{parts.get('rt', '')}</rt></ruby>"
            elif (box := _check_box(child)) is not None:
                state = value(box, "{*}checked") or value(box, "{*}default")
                yield (), f"<span role=checkbox aria-checked={str(is_on(state)).lower()}></span> "
            elif name and name not in _SKIPPED and not _is_prompt(child):
                yield style[0], " " if name == "p" else ""
                yield from self._runs(_chosen(child), style)


def children(node: Any) -> Iterator[Any]:
    """The elements in one, and those in what is only put around them, such as content controls and insertions."""
    for child in _chosen(node):
        if local(child) not in _AROUND:
            yield child
        elif not _is_prompt(child):
            yield from children(child)


def is_on(setting: str) -> bool:
    return setting not in _OFF


def _chosen(node: Any) -> Any:
    """The first of several drawings of the same; else what is in the element."""
    return node[:1] if local(node) == "AlternateContent" else node


def _is_prompt(node: Any) -> bool:
    """Whether a content control asks for what nobody has filled in."""
    return local(node) == "sdt" and node.find("{*}sdtPr/{*}showingPlcHdr") is not None


def _check_box(node: Any) -> Any:
    """The check box that a content control or the field of an old form is, or None."""
    place = {"sdt": "{*}sdtPr/{*}checkbox", "fldChar": "{*}ffData/{*}checkBox"}.get(local(node))
    return node.find(place) if place else None


def _goes_on(cell: Any) -> bool:
    """Whether a cell is part of the one above it."""
    merge = cell.find("{*}tcPr/{*}vMerge")
    return is_on(cell.get("vMerge", "")) if merge is None else attribute(merge, "val") != "restart"


def _style(properties: Iterable[Any]) -> Run | None:
    """The elements that a run stands in, and its font; None for hidden text."""
    said: dict[str, str] = {}
    for one in properties:  # in Word a property is an element, on slides an attribute
        fonts = [attribute(child, "ascii") or attribute(child, "typeface") for child in one]
        own = {"font": next(filter(None, fonts), ""), **{local(child): attribute(child, "val", "1") for child in one}}
        said = {name: text for name, text in {**dict(one.items()), **own}.items() if text} | said
    if is_on(said.get("vanish", "")):
        return None
    place = said.get("vertAlign") or said.get("baseline", "0")
    tags = ["sup"] * (place == "superscript" or (is_on(place.strip("0%")) and place.strip("0%").isdigit()))
    tags += ["sub"] * (place == "subscript" or place.startswith("-"))
    tags += ["s"] * any(is_on(said.get(name, "")) for name in ("strike", "dstrike"))
    return tuple(tags), said.get("font", "")


def _as_drawn(text: str, font: str) -> str:
    """The signs that a font such as Symbol or Wingdings draws for the characters of a text."""
    if font not in _signs():
        return text
    places = (code - _PRIVATE if code >= _PRIVATE else code for code in map(ord, text))
    return "".join(_signs()[font][place - 0x20] if 0x20 <= place < 0x100 else chr(place) for place in places)


@cache
def _signs() -> dict[str, str]:
    """By font, the character that it draws for each code from 0x20 to 0xFF."""
    loaded: dict[str, str] = json.loads(_SYMBOLS.read_text("utf-8"))
    return loaded


def _nested(items: Iterable[Block]) -> str:
    """Items as lists within lists, by their depth."""
    opened: list[str] = []
    parts: list[str] = []
    for item in items:
        while len(opened) > item.depth + 1 or (len(opened) == item.depth + 1 and opened[-1] != item.kind):
            parts.append(f"</{opened.pop()}>")
        while len(opened) <= item.depth:
            opened.append(item.kind)
            parts.append(f"<{item.kind}>")
        parts.append(item.html)
    return "".join([*parts, *(f"</{tag}>" for tag in reversed(opened))])
