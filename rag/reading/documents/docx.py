"""Reader for Word documents (.docx): headings, paragraphs, lists, tables, notes and comments in document order.

python-docx opens the package. The body is walked as XML, because python-docx's list of paragraphs omits inserted text
and content controls. Nothing outside the file is opened.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from rag.reading.documents.office import (
    HtmlBlock,
    Walker,
    get_attr,
    get_tag,
    get_val,
    normalize_package,
    parse_xml,
    read_meta,
    report_broken,
    to_int,
)
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.metadata import build_extracted
from rag.reading.extraction.render import to_roman
from rag.reading.parser import ExtractedDocument
from rag.text import lazy_regex

if TYPE_CHECKING:
    from docx.document import Document

_CHINESE_DIGITS = "〇一二三四五六七八九"
_SERIES = {"ideographTraditional": "甲乙丙丁戊己庚辛壬癸", "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"}
_HAN_FORMS = lazy_regex("chinese|taiwanese|japanese|ideographDigital")
_MAX_LETTERS, _MAX_ROMAN = 26 * 10, 5000
_FIELD = lazy_regex("%([1-9])")


class Numbering:
    """The counters of a document's lists; `root` has the definitions of the lists."""

    def __init__(self, root: Any) -> None:
        kinds = {get_attr(kind, "abstractNumId"): kind for kind in root if get_tag(kind) == "abstractNum"}
        by_style = {get_val(kind, "{*}styleLink"): kind for kind in kinds.values()}
        # By list: its kind (lists of a kind share their counters), its levels, and its start numbers.
        self._lists: dict[str, tuple[Any, dict[int, Any], dict[int, int]]] = {}
        self._counts: dict[Any, dict[int, int]] = {}
        for node in root:
            kind = kinds.get(get_val(node, "{*}abstractNumId"))
            if kind is not None:
                kind = by_style.get(get_val(kind, "{*}numStyleLink") or "-", kind)
                levels = (*kind.findall("{*}lvl"), *node.findall("{*}lvlOverride/{*}lvl"))
                starts = {_depth_of(s): get_val(s, "{*}startOverride") for s in node.findall("{*}lvlOverride")}
                self._lists[get_attr(node, "numId")] = (
                    kind,
                    {_depth_of(level): level for level in levels},
                    {depth: to_int(start, 1) for depth, start in starts.items() if start},
                )

    def find_level(self, name: str, style: str) -> int:
        """Return the list level assigned to a paragraph style, or 0."""
        levels = self._lists[name][1] if name in self._lists else {}
        return next((depth for depth, level in levels.items() if get_val(level, "{*}pStyle") == style), 0)

    def count_item(self, name: str, depth: int) -> str | None:
        """Count the next item of a list and return its label with a space; "" for a bullet, None if not an item."""
        kind, levels, starts = self._lists.get(name, (None, {}, {}))
        if depth not in levels:
            return None
        own, counts = levels[depth], self._counts.setdefault(kind, {})
        counts[depth] = starts.pop(depth) if depth in starts else counts.get(depth, _start_of(own) - 1) + 1
        for deeper in [key for key in counts if key > depth]:
            if deeper not in levels or get_val(levels[deeper], "{*}lvlRestart") != "0":
                del counts[deeper]

        def fill(place: re.Match[str]) -> str:
            level = levels.get(int(place[1]) - 1, own)
            form = get_val(level, "{*}numFmt") if own.find("{*}isLgl") is None else "decimal"
            return format_number(counts.get(int(place[1]) - 1, _start_of(level)), form)

        text = "" if get_val(own, "{*}numFmt") == "bullet" else _FIELD.sub(fill, get_val(own, "{*}lvlText"))
        return text + " " * (text != "" and get_val(own, "{*}suff") != "nothing")


def _depth_of(level: Any) -> int:
    return to_int(get_attr(level, "ilvl"), 0)


def _start_of(level: Any) -> int:
    return to_int(get_val(level, "{*}start"), 1)


def format_number(count: int, form: str) -> str:
    """Format a count in one of Word's number formats, or in digits if the format is unknown or exceeded."""
    text = str(count)
    if form in ("none", "bullet"):
        return ""
    if form.endswith("Letter") and 0 < count <= _MAX_LETTERS:
        text = chr(ord("a") + (count - 1) % 26) * (1 + (count - 1) // 26)
    elif form.endswith("Roman") and count < _MAX_ROMAN:
        text = to_roman(count)
    elif form == "decimalZero":
        text = f"{count:02}"
    elif _HAN_FORMS.match(form) and count < 100:
        tens, ones = divmod(count, 10)
        text = (
            (_CHINESE_DIGITS[tens] if tens > 1 else "")
            + "十" * (tens > 0)
            + (_CHINESE_DIGITS[ones] if ones or not tens else "")
        )
    elif count <= len(_SERIES.get(form, "")):
        text = _SERIES[form][count - 1]
    return text.upper() if form.startswith("upper") else text


_HEADING_STYLE = lazy_regex(r"(?:heading|标题|titre|überschrift)\s*([1-9])", re.IGNORECASE)
_LIST_STYLE = lazy_regex(r"list (?:bullet|(number))", re.IGNORECASE)
_CODE_STYLE = lazy_regex(r"code|preformatted|source", re.IGNORECASE)
_CONTENTS = lazy_regex(r"toc \d", re.IGNORECASE)
_PLAIN_NUMBER = lazy_regex(r"(\d{1,5})[.)、．]\s?")
_TAG = lazy_regex("<[^<>]*>")
_MAX_DEPTH = 8


def read_docx(body: bytes, url: str) -> ExtractedDocument:
    """Return the text of a Word document.

    Raises IngestError: "docx_broken", "office_too_large", "document_too_long", "document_no_text".
    """
    import docx
    from docx.exceptions import PythonDocxError

    with report_broken(url, "docx_broken", PythonDocxError):
        file = normalize_package(body, url)
        walker = _Body(docx.Document(file))
        text = html_to_markdown("".join(walker.write_blocks(walker.body)))
        about = read_meta(zipfile.ZipFile(file))
    return build_extracted(text, url, own_title=walker.own_title, **about)


class _Body(Walker):
    """A single-use converter from a document's body to HTML; `own_title` is set once all blocks have been read."""

    def __init__(self, word: Document) -> None:
        super().__init__()
        self.own_title = ""
        self.body = word.element.body
        self._styles = {get_attr(style, "styleId"): style for style in word.styles.element.findall("{*}style")}
        self._bases: list[Any] = []  # the paragraph's style and its base styles
        self._pending_text = ""  # the text before a deleted paragraph mark
        self._notes: dict[tuple[str, str], Any] = {}
        self._counts = {"footnote": 0, "endnote": 0, "comment": 0}
        self._numbering = Numbering(())
        for relation in word.part.rels.values():
            kind = relation.reltype.rpartition("/")[2].removesuffix("s")
            if kind in (*self._counts, "numbering") and not relation.is_external:
                root = parse_xml(relation.target_part.blob)
                if kind == "numbering":
                    self._numbering = Numbering(root)
                self._notes |= {(kind, get_attr(note, "id")): note for note in root}

    def iter_blocks(self, node: Any) -> Iterator[HtmlBlock]:
        """Yield paragraphs and tables; in the body, each is followed by its text boxes and notes."""
        for block in super().iter_blocks(node):
            yield block
            if node is self.body:
                asides, self.asides = self.asides, []
                yield from map(HtmlBlock, asides)
        if self._pending_text:
            yield HtmlBlock(f"<p>{self._pending_text}</p>")
        self._pending_text = ""

    def write_paragraph(self, node: Any) -> Iterator[HtmlBlock]:
        outer, self._bases = self._bases, list(self._iter_styles(get_val(node, "{*}pPr/{*}pStyle")))
        text, self._pending_text = self._pending_text + self.write_line(node), ""
        label, depth = self._read_label(node)
        if node.find("{*}pPr/{*}rPr/{*}del") is not None:
            self._pending_text = text
        elif (text.strip() or label) and not _CONTENTS.match(get_val(self._bases[0], "{*}name") if self._bases else ""):
            yield self._write_block(node, text.rstrip(), label, depth)
        self._bases = outer

    def _write_block(self, node: Any, line: str, label: str | None, depth: int) -> HtmlBlock:
        text, name = line.strip(), get_val(self._bases[0], "{*}name") if self._bases else ""
        match = _HEADING_STYLE.match(name)
        level = int(match[1]) if match else to_int(self._get_setting(node, "outlineLvl"), 9) + 1
        if level < 10:
            return HtmlBlock(f"<h{min(level + 1, 6)}>{escape(label or '')}{text}</h{min(level + 1, 6)}>")
        if name.lower() in ("title", "标题"):
            self.own_title = self.own_title or unescape(_TAG.sub(" ", text))
            return HtmlBlock(f"<h1>{text}</h1>")
        if label is None and (list_style := _LIST_STYLE.match(name)):
            return HtmlBlock(f"<li>{text}</li>", "ol" if list_style[1] else "ul")
        if label and not self.depth and (item_number := _PLAIN_NUMBER.fullmatch(label)):
            return HtmlBlock(f"<li value={int(item_number[1])}>{text}</li>", "ol", depth)
        if label is not None:
            return HtmlBlock(f"<li>{escape(label)}{text}</li>", "ul", depth)
        return HtmlBlock(line, "pre") if _CODE_STYLE.search(name) else HtmlBlock(f"<p>{text}</p>")

    def _read_label(self, node: Any) -> tuple[str | None, int]:
        """Return the number of a list item or heading and its nesting depth; None for other paragraphs."""
        name, level = self._get_setting(node, "numPr/{*}numId"), self._get_setting(node, "numPr/{*}ilvl")
        style_levels = (self._numbering.find_level(name, get_attr(style, "styleId")) for style in self._bases)
        depth = to_int(level, 0) if level else next(filter(None, style_levels), 0)
        return self._numbering.count_item(name, depth), min(depth, _MAX_DEPTH)

    def _get_setting(self, node: Any, path: str) -> str:
        """Return a setting of a paragraph, directly applied or from its style."""
        return next(filter(None, (get_val(source, "{*}pPr/{*}" + path) for source in (node, *self._bases))), "")

    def _iter_styles(self, style: str) -> Iterator[Any]:
        """Yield a style and its base styles."""
        seen: set[str] = set()
        while style in self._styles and style not in seen:
            seen.add(style)
            yield self._styles[style]
            style = get_val(self._styles[style], "{*}basedOn")

    def find_properties(self, run: Any) -> Iterable[Any]:
        own = run.findall("{*}rPr")
        styles = [*self._iter_styles(get_val(own[0], "{*}rStyle") if own else ""), *self._bases]
        return [*own, *(properties for style in styles for properties in style.findall("{*}rPr"))]

    def write_note(self, kind: str, reference: Any) -> str:
        note = self._notes.pop((kind, get_attr(reference, "id")), None)
        if note is None:
            return ""
        count = self._counts[kind] = self._counts[kind] + 1
        mark = {"endnote": format_number(count, "lowerRoman"), "comment": f"c{count}"}.get(kind, str(count))
        by = f"Comment by {escape(get_attr(note, 'author'))}: " if kind == "comment" else ""
        self.asides.append(f"<p>[^{mark}]: {by}{' '.join(map(self.write_line, note.iter('{*}p')))}</p>")
        return f"[^{mark}]"
