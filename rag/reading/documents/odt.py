"""OpenDocument texts (.odt): headings, paragraphs, lists, tables, notes and comments in their order."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any
from zipfile import ZipFile

from rag.errors import IngestError
from rag.reading.extract import html_markdown
from rag.reading.office.package import DAMAGE, attribute, local, number, open_package, parsed, stated
from rag.reading.parser import Extracted
from rag.reading.properties import described
from rag.web.guard import shown

_SKIPPED = frozenset(
    "tracked-changes sequence-decls forms event-listeners annotation-end covered-table-cell title desc hidden-text "
    "hidden-paragraph table-of-content".split()
)
_TAGS = {"table": "table", "table-row": "tr", "table-cell": "td", "p": "p", "h": "p", "list": "ul"}
_TAGS |= {"list-item": "li", "list-header": "li", "ruby": "ruby", "ruby-text": "rt", "line-break": "br"}
_MAX_REPEATED = 100


def read_odt(body: bytes, url: str) -> Extracted:
    """The text of an OpenDocument text.

    Raises IngestError: "office_broken", "office_too_large", "office_locked", "document_too_long", "document_no_text".
    """
    try:
        package = open_package(body, url)
        if b":encryption-data" in package.read("META-INF/manifest.xml"):
            raise IngestError("office_locked", url=shown(url))
        text, about = html_markdown("".join(_Writer(package).pieces())), stated(package, "meta.xml")
    except DAMAGE as error:
        raise IngestError("office_broken", url=shown(url)) from error
    return described(text, url, **about)


class _Writer:
    """Writes a document's body as HTML."""

    def __init__(self, package: ZipFile) -> None:
        self._package = package
        self._asides: list[str] = []  # text boxes and notes of the piece that is being written
        self._comments = 0
        roots = [parsed(package.read(name)) for name in ("styles.xml", "content.xml") if name in package.namelist()]
        self._body = next(roots[-1].iter("{*}text"))
        self._styles = {attribute(one, "name"): one for root in roots for one in root.iter("{*}style", "{*}list-style")}

    def pieces(self) -> Iterator[str]:
        """Headings, paragraphs, whole lists and tables, each followed by the text boxes and notes in it."""
        for node in self._body:
            yield self._written(node)
            asides, self._asides = self._asides, []
            yield from asides

    def _inside(self, node: Any) -> str:
        written = (self._written(child) + escape(child.tail or "", quote=False) for child in node)
        return escape(node.text or "", quote=False) + "".join(written)

    def _written(self, node: Any) -> str:
        name, tag, more = local(node), _TAGS.get(local(node), ""), ""
        if not name or name in _SKIPPED or (name == "section" and attribute(node, "display") == "none"):
            return ""
        if name in ("note", "annotation"):
            return self._note(node)
        if name == "object":
            return self._formula(attribute(node, "href"))
        if name in ("s", "tab"):
            return " "
        inside = self._inside(node)
        if name == "text-box":
            self._asides.append(inside)
            return ""
        if name == "h":
            tag = f"h{min(number(attribute(node, 'outline-level'), 1) + 1, 6)}"
        if name == "list" and (form := self._number_form(node)):
            tag, more = "ol", f' type="{escape(form)}"'
        if name == "table-cell":
            spans = [number(attribute(node, f"number-{side}-spanned"), 1) for side in ("columns", "rows")]
            more = " colspan={} rowspan={}".format(*spans)
            tag = (
                "th" if next(node.iterancestors("{*}table-header-rows", "{*}table"), node).tag.endswith("rows") else tag
            )
        if name in ("p", "h", "span") and (style := self._style(attribute(node, "style-name"))):
            inside = _styled(inside, style)
            tag = "h1" if name == "p" and "title" in style else tag
        repeated = {"table-row": "number-rows-repeated", "table-cell": "number-columns-repeated"}.get(name, "")
        written = f"<{tag}{more}>{inside}</{tag}>" if tag else inside
        return written * min(number(attribute(node, repeated), 1), _MAX_REPEATED)

    def _style(self, name: str) -> dict[str, str]:
        """What a style and those above it say of text; `title` where one of them is that of a document's title."""
        said: dict[str, str] = {}
        seen: set[str] = set()
        while name in self._styles and name not in seen:
            seen.add(name)
            for one in self._styles[name].findall("{*}text-properties"):
                said = {key.rpartition("}")[2]: value for key, value in one.items()} | said
            name = attribute(self._styles[name], "parent-style-name")
        return said | {"title": "Title"} if "Title" in seen else said

    def _number_form(self, node: Any) -> str:
        """How a list counts its items; "" for bullets."""
        lists = [node, *node.iterancestors("{*}list")]
        name = next(filter(None, (attribute(one, "style-name") for one in lists)), "")
        levels = (one for one in self._styles.get(name, ()) if attribute(one, "level") == str(len(lists)))
        return next((attribute(one, "num-format") for one in levels if local(one) == "list-level-style-number"), "")

    def _note(self, node: Any) -> str:
        citation, body = node.find("{*}note-citation"), node.find("{*}note-body")
        self._comments += citation is None
        mark = f"[^{f'c{self._comments}' if citation is None else escape(''.join(citation.itertext()).strip())}]"
        by = f"Comment by {escape(node.findtext('{*}creator', ''))}: " if citation is None else ""
        lines = (node if body is None else body).iter("{*}p", "{*}h")
        self._asides.append(f"<p>{mark}: {by}{' '.join(map(self._inside, lines))}</p>")
        return mark

    def _formula(self, href: str) -> str:
        """The MathML of an object that is a formula; other objects have no text."""
        name = href.removeprefix("./").rstrip("/") + "/content.xml"
        root = parsed(self._package.read(name)) if name in self._package.namelist() else None
        return _html(root) if root is not None and local(root) == "math" else ""


def _styled(html: str, style: dict[str, str]) -> str:
    """A run of text in the elements that its style stands for."""
    if style.get("display") == "none":
        return ""
    place = style.get("text-position", "0%").split()[0].rstrip("%")
    tags = ["sub"] * (place == "sub" or place[:1] == "-")
    tags += ["sup"] * (place == "super" or place.strip("0").isdigit())
    for tag in tags + ["s"] * (style.get("text-line-through-style", "none") != "none"):
        html = f"<{tag}>{html}</{tag}>"
    return html


def _html(node: Any) -> str:
    """An element of XML as HTML, its names without their namespace."""
    inside = escape(node.text or "") + "".join(_html(child) + escape(child.tail or "") for child in node)
    return f"<{local(node)}>{inside}</{local(node)}>" if local(node) else ""
