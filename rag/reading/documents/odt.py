"""Reader for OpenDocument text (.odt): headings, paragraphs, lists, tables, notes and comments in document order."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any
from zipfile import ZipFile

from rag.errors import IngestError
from rag.reading.documents.office import get_attr, get_tag, open_package, parse_xml, read_meta, report_broken, to_int
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.metadata import build_extracted
from rag.reading.parser import ExtractedDocument
from rag.web.guard import printable

_SKIPPED = frozenset(
    "tracked-changes sequence-decls forms event-listeners annotation-end covered-table-cell title desc hidden-text "
    "hidden-paragraph table-of-content".split()
)
_TAGS = {"table": "table", "table-row": "tr", "table-cell": "td", "p": "p", "h": "p", "list": "ul"}
_TAGS |= {"list-item": "li", "list-header": "li", "ruby": "ruby", "ruby-text": "rt", "line-break": "br"}
_MAX_REPEATED = 100


def read_odt(body: bytes, url: str) -> ExtractedDocument:
    """Extract an OpenDocument text.

    Raises IngestError: "office_broken", "office_too_large", "office_locked", "document_too_long", "document_no_text".
    """
    with report_broken(url):
        package = open_package(body, url)
        if b":encryption-data" in package.read("META-INF/manifest.xml"):
            raise IngestError("office_locked", url=printable(url))
        text, about = html_to_markdown("".join(_Writer(package).write_blocks())), read_meta(package, "meta.xml")
    return build_extracted(text, url, **about)


class _Writer:
    """A converter from a document's body to HTML."""

    def __init__(self, package: ZipFile) -> None:
        self._package = package
        self._asides: list[str] = []  # text boxes and notes of the current block
        self._comments = 0
        roots = [parse_xml(package.read(name)) for name in ("styles.xml", "content.xml") if name in package.namelist()]
        self._body = next(roots[-1].iter("{*}text"))
        self._styles = {get_attr(el, "name"): el for root in roots for el in root.iter("{*}style", "{*}list-style")}

    def write_blocks(self) -> Iterator[str]:
        """Yield headings, paragraphs, whole lists and tables, each followed by its text boxes and notes."""
        for node in self._body:
            yield self._write(node)
            asides, self._asides = self._asides, []
            yield from asides

    def _write_content(self, node: Any) -> str:
        parts = (self._write(child) + escape(child.tail or "", quote=False) for child in node)
        return escape(node.text or "", quote=False) + "".join(parts)

    def _write(self, node: Any) -> str:
        name, tag, attributes = get_tag(node), _TAGS.get(get_tag(node), ""), ""
        if not name or name in _SKIPPED or (name == "section" and get_attr(node, "display") == "none"):
            return ""
        if name in ("note", "annotation"):
            return self._write_note(node)
        if name == "object":
            return self._read_formula(get_attr(node, "href"))
        if name in ("s", "tab"):
            return " "
        content = self._write_content(node)
        if name == "text-box":
            self._asides.append(content)
            return ""
        if name == "h":
            tag = f"h{min(to_int(get_attr(node, 'outline-level'), 1) + 1, 6)}"
        if name == "list" and (form := self._find_number_format(node)):
            tag, attributes = "ol", f' type="{escape(form)}"'
        if name == "table-cell":
            spans = [to_int(get_attr(node, f"number-{side}-spanned"), 1) for side in ("columns", "rows")]
            attributes = " colspan={} rowspan={}".format(*spans)
            tag = (
                "th" if next(node.iterancestors("{*}table-header-rows", "{*}table"), node).tag.endswith("rows") else tag
            )
        if name in ("p", "h", "span") and (style := self._read_style(get_attr(node, "style-name"))):
            content = _apply_style(content, style)
            tag = "h1" if name == "p" and "title" in style else tag
        count_name = {"table-row": "number-rows-repeated", "table-cell": "number-columns-repeated"}.get(name, "")
        html = f"<{tag}{attributes}>{content}</{tag}>" if tag else content
        return html * min(to_int(get_attr(node, count_name), 1), _MAX_REPEATED)

    def _read_style(self, name: str) -> dict[str, str]:
        """Return the text properties of a style and its parents; with `title` if one of them is the Title style."""
        settings: dict[str, str] = {}
        seen: set[str] = set()
        while name in self._styles and name not in seen:
            seen.add(name)
            for properties in self._styles[name].findall("{*}text-properties"):
                settings = {key.rpartition("}")[2]: value for key, value in properties.items()} | settings
            name = get_attr(self._styles[name], "parent-style-name")
        return settings | {"title": "Title"} if "Title" in seen else settings

    def _find_number_format(self, node: Any) -> str:
        """Return the number format of a list; "" for bullets."""
        lists = [node, *node.iterancestors("{*}list")]
        name = next(filter(None, (get_attr(item, "style-name") for item in lists)), "")
        levels = (item for item in self._styles.get(name, ()) if get_attr(item, "level") == str(len(lists)))
        return next((get_attr(item, "num-format") for item in levels if get_tag(item) == "list-level-style-number"), "")

    def _write_note(self, node: Any) -> str:
        citation, body = node.find("{*}note-citation"), node.find("{*}note-body")
        self._comments += citation is None
        mark = f"[^{f'c{self._comments}' if citation is None else escape(''.join(citation.itertext()).strip())}]"
        by = f"Comment by {escape(node.findtext('{*}creator', ''))}: " if citation is None else ""
        lines = (node if body is None else body).iter("{*}p", "{*}h")
        self._asides.append(f"<p>{mark}: {by}{' '.join(map(self._write_content, lines))}</p>")
        return mark

    def _read_formula(self, href: str) -> str:
        """Return the MathML of a formula object; other objects have no text."""
        name = href.removeprefix("./").rstrip("/") + "/content.xml"
        root = parse_xml(self._package.read(name)) if name in self._package.namelist() else None
        return _to_html(root) if root is not None and get_tag(root) == "math" else ""


def _apply_style(html: str, style: dict[str, str]) -> str:
    """Wrap HTML in the tags of its style; return "" for hidden text."""
    if style.get("display") == "none":
        return ""
    place = style.get("text-position", "0%").split()[0].rstrip("%")
    tags = ["sub"] * (place == "sub" or place[:1] == "-")
    tags += ["sup"] * (place == "super" or place.strip("0").isdigit())
    for tag in tags + ["s"] * (style.get("text-line-through-style", "none") != "none"):
        html = f"<{tag}>{html}</{tag}>"
    return html


def _to_html(node: Any) -> str:
    inside = escape(node.text or "") + "".join(_to_html(child) + escape(child.tail or "") for child in node)
    return f"<{get_tag(node)}>{inside}</{get_tag(node)}>" if get_tag(node) else ""
