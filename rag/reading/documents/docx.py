"""Word documents (.docx): headings, paragraphs, lists, tables, notes and comments in their order.

python-docx opens the package; its body is walked as XML, because python-docx's own lists of paragraphs leave out
inserted text and content controls. Nothing outside the file is opened.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from rag.errors import IngestError
from rag.reading.extract import html_markdown
from rag.reading.office.ooxml import Block, Walker
from rag.reading.office.package import DAMAGE, attribute, local, number, office_file, parsed, stated, value
from rag.reading.parser import Extracted
from rag.reading.properties import described
from rag.web.guard import shown

if TYPE_CHECKING:
    from docx.document import Document

_ROMAN = dict(
    zip("m cm d cd c xc l xl x ix v iv i".split(), (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), strict=True)
)
_HAN = "〇一二三四五六七八九"
_SERIES = {"ideographTraditional": "甲乙丙丁戊己庚辛壬癸", "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"}
_HAN_FORMS = re.compile("chinese|taiwanese|japanese|ideographDigital")
_MOST_LETTERS, _MOST_ROMAN = 26 * 10, 5000
_PLACE = re.compile("%([1-9])")


class Numbering:
    """Counts the items of all lists in a document; `root` holds their definitions."""

    def __init__(self, root: Any) -> None:
        kinds = {attribute(kind, "abstractNumId"): kind for kind in root if local(kind) == "abstractNum"}
        by_style = {value(kind, "{*}styleLink"): kind for kind in kinds.values()}
        # By list: its kind, whose lists count on from each other, its levels, and the numbers that it begins with.
        self._lists: dict[str, tuple[Any, dict[int, Any], dict[int, int]]] = {}
        self._counts: dict[Any, dict[int, int]] = {}
        for one in root:
            kind = kinds.get(value(one, "{*}abstractNumId"))
            if kind is not None:
                kind = by_style.get(value(kind, "{*}numStyleLink") or "-", kind)
                levels = (*kind.findall("{*}lvl"), *one.findall("{*}lvlOverride/{*}lvl"))
                starts = {_depth(start): value(start, "{*}startOverride") for start in one.findall("{*}lvlOverride")}
                self._lists[attribute(one, "numId")] = (
                    kind,
                    {_depth(level): level for level in levels},
                    {depth: number(start, 1) for depth, start in starts.items() if start},
                )

    def level_of(self, name: str, style: str) -> int:
        """The level of a list that a paragraph's style stands for."""
        levels = self._lists[name][1] if name in self._lists else {}
        return next((depth for depth, level in levels.items() if value(level, "{*}pStyle") == style), 0)

    def label(self, name: str, depth: int) -> str | None:
        """What stands before the next item of a list, with the space after it; "" for a bullet, None for no item."""
        kind, levels, starts = self._lists.get(name, (None, {}, {}))
        if depth not in levels:
            return None
        own, counts = levels[depth], self._counts.setdefault(kind, {})
        counts[depth] = starts.pop(depth) if depth in starts else counts.get(depth, _start(own) - 1) + 1
        for deeper in [one for one in counts if one > depth]:
            if deeper not in levels or value(levels[deeper], "{*}lvlRestart") != "0":
                del counts[deeper]

        def counted(place: re.Match[str]) -> str:
            level = levels.get(int(place[1]) - 1, own)
            form = value(level, "{*}numFmt") if own.find("{*}isLgl") is None else "decimal"
            return in_form(counts.get(int(place[1]) - 1, _start(level)), form)

        text = "" if value(own, "{*}numFmt") == "bullet" else _PLACE.sub(counted, value(own, "{*}lvlText"))
        return text + " " * (text != "" and value(own, "{*}suff") != "nothing")


def _depth(level: Any) -> int:
    return number(attribute(level, "ilvl"), 0)


def _start(level: Any) -> int:
    return number(value(level, "{*}start"), 1)


def in_form(count: int, form: str) -> str:
    """A count in one of Word's number formats; in figures where the format is not known or runs out."""
    written = str(count)
    if form in ("none", "bullet"):
        return ""
    if form.endswith("Letter") and 0 < count <= _MOST_LETTERS:
        written = chr(ord("a") + (count - 1) % 26) * (1 + (count - 1) // 26)
    elif form.endswith("Roman") and count < _MOST_ROMAN:
        written = ""
        for sign, size in _ROMAN.items():
            written, count = written + sign * (count // size), count % size
    elif form == "decimalZero":
        written = f"{count:02}"
    elif _HAN_FORMS.match(form) and count < 100:
        tens, ones = divmod(count, 10)
        written = (_HAN[tens] if tens > 1 else "") + "十" * (tens > 0) + (_HAN[ones] if ones or not tens else "")
    elif count <= len(_SERIES.get(form, "")):
        written = _SERIES[form][count - 1]
    return written.upper() if form.startswith("upper") else written


_HEADING = re.compile(r"(?:heading|标题|titre|überschrift)\s*([1-9])", re.IGNORECASE)
_LISTED = re.compile(r"list (?:bullet|(number))", re.IGNORECASE)
_CODE = re.compile(r"code|preformatted|source", re.IGNORECASE)
_CONTENTS = re.compile(r"toc \d", re.IGNORECASE)
_PLAIN_NUMBER = re.compile(r"(\d{1,5})[.)、．]\s?")
_TAG = re.compile("<[^<>]*>")
_MAX_DEPTH = 8


def read_docx(body: bytes, url: str) -> Extracted:
    """The text of a Word document.

    Raises IngestError: "docx_broken", "office_too_large", "document_too_long", "document_no_text".
    """
    import docx
    from docx.exceptions import PythonDocxError

    try:
        file = office_file(body, url)
        walker = _Body(docx.Document(file))
        text = html_markdown("".join(walker.blocks(walker.body)))
        about = stated(zipfile.ZipFile(file))
    except (PythonDocxError, *DAMAGE) as error:
        raise IngestError("docx_broken", url=shown(url)) from error
    return described(text, url, own_title=walker.own_title, **about)


class _Body(Walker):
    """Walks a document's body once; `own_title` is known when its blocks have been taken."""

    def __init__(self, word: Document) -> None:
        super().__init__()
        self.own_title = ""
        self.body = word.element.body
        self._styles = {attribute(style, "styleId"): style for style in word.styles.element.findall("{*}style")}
        self._above: list[Any] = []  # the paragraph's style and those that it is based on
        self._joined = ""  # the text before a deleted paragraph mark
        self._notes: dict[tuple[str, str], Any] = {}
        self._counts = {"footnote": 0, "endnote": 0, "comment": 0}
        self._numbering = Numbering(())
        for relation in word.part.rels.values():
            kind = relation.reltype.rpartition("/")[2].removesuffix("s")
            if kind in (*self._counts, "numbering") and not relation.is_external:
                root = parsed(relation.target_part.blob)
                if kind == "numbering":
                    self._numbering = Numbering(root)
                self._notes |= {(kind, attribute(note, "id")): note for note in root}

    def parts(self, node: Any) -> Iterator[Block]:
        """Paragraphs and tables; in the body, each is followed by the text boxes and notes in it."""
        for block in super().parts(node):
            yield block
            if node is self.body:
                asides, self.asides = self.asides, []
                yield from map(Block, asides)
        if self._joined:
            yield Block(f"<p>{self._joined}</p>")
        self._joined = ""

    def paragraph(self, node: Any) -> Iterator[Block]:
        outer, self._above = self._above, list(self._based_on(value(node, "{*}pPr/{*}pStyle")))
        text, self._joined = self._joined + self.line(node), ""
        label, depth = self._label(node)
        if node.find("{*}pPr/{*}rPr/{*}del") is not None:
            self._joined = text
        elif (text.strip() or label) and not _CONTENTS.match(value(self._above[0], "{*}name") if self._above else ""):
            yield self._block(node, text.rstrip(), label, depth)
        self._above = outer

    def _block(self, node: Any, drawn: str, label: str | None, depth: int) -> Block:
        text, name = drawn.strip(), value(self._above[0], "{*}name") if self._above else ""
        match = _HEADING.match(name)
        level = int(match[1]) if match else number(self._setting(node, "outlineLvl"), 9) + 1
        if level < 10:
            return Block(f"<h{min(level + 1, 6)}>{escape(label or '')}{text}</h{min(level + 1, 6)}>")
        if name.lower() in ("title", "标题"):
            self.own_title = self.own_title or unescape(_TAG.sub(" ", text))
            return Block(f"<h1>{text}</h1>")
        if label is None and (listed := _LISTED.match(name)):
            return Block(f"<li>{text}</li>", "ol" if listed[1] else "ul")
        if label and not self.depth and (counted := _PLAIN_NUMBER.fullmatch(label)):
            return Block(f"<li value={int(counted[1])}>{text}</li>", "ol", depth)
        if label is not None:
            return Block(f"<li>{escape(label)}{text}</li>", "ul", depth)
        return Block(drawn, "pre") if _CODE.search(name) else Block(f"<p>{text}</p>")

    def _label(self, node: Any) -> tuple[str | None, int]:
        """The number of a list's item or heading and how deep it is nested; None for other paragraphs."""
        name, given = self._setting(node, "numPr/{*}numId"), self._setting(node, "numPr/{*}ilvl")
        of_style = (self._numbering.level_of(name, attribute(style, "styleId")) for style in self._above)
        depth = number(given, 0) if given else next(filter(None, of_style), 0)
        return self._numbering.label(name, depth), min(depth, _MAX_DEPTH)

    def _setting(self, node: Any, path: str) -> str:
        """A setting of a paragraph, its own or its style's."""
        return next(filter(None, (value(one, "{*}pPr/{*}" + path) for one in (node, *self._above))), "")

    def _based_on(self, style: str) -> Iterator[Any]:
        """A style and those that it is based on."""
        seen: set[str] = set()
        while style in self._styles and style not in seen:
            seen.add(style)
            yield self._styles[style]
            style = value(self._styles[style], "{*}basedOn")

    def properties(self, run: Any) -> Iterable[Any]:
        own = run.findall("{*}rPr")
        styles = [*self._based_on(value(own[0], "{*}rStyle") if own else ""), *self._above]
        return [*own, *(properties for style in styles for properties in style.findall("{*}rPr"))]

    def note(self, kind: str, reference: Any) -> str:
        note = self._notes.pop((kind, attribute(reference, "id")), None)
        if note is None:
            return ""
        count = self._counts[kind] = self._counts[kind] + 1
        mark = {"endnote": in_form(count, "lowerRoman"), "comment": f"c{count}"}.get(kind, str(count))
        by = f"Comment by {escape(attribute(note, 'author'))}: " if kind == "comment" else ""
        self.asides.append(f"<p>[^{mark}]: {by}{' '.join(map(self.line, note.iter('{*}p')))}</p>")
        return f"[^{mark}]"
