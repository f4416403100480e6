"""The lxml tree of a page, shared by all extraction steps, and the part of it that a reader sees.

A page with more elements than people write skips extraction: its text is read in linear time with little memory.

Hidden text is the usual vehicle for prompt injection. `find_hidden` finds what the document itself hides: by
attributes, inline styles, and elements that are never drawn, but not by style sheets. `open_panels` reveals what a
click would show: tab panels, accordions, and sections that find-in-page opens. An element counts as visible if a
visible control opens it, or if it is one of several panels. Text of zero size, transparent or off screen stays hidden.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from html import unescape
from itertools import islice, pairwise
from typing import Any, Final

from rag.reading.extraction.segments import COPY, INLINE, SKIPPED
from rag.text import clean_line, lazy_regex, letters_and_digits

_XML_DECLARATION = lazy_regex(r"\A\s*<\?xml[^>]*>")
_HUGE = 60_000
_IN_HEAD = frozenset("title meta link base style script noscript template object".split())
_BOILERPLATE = ("nav", "footer", "aside", "form", "button")
_HEADING = lazy_regex(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_ITEM = lazy_regex(r"<li\b[^<>]*>", re.IGNORECASE)
_INLINE = lazy_regex(rf"</?(?!br\b)(?:{'|'.join(sorted(INLINE))})\b[^<>]*>", re.IGNORECASE)
_BLOCK = lazy_regex(r"</?[A-Za-z][^<>]*>")
_SPACES = lazy_regex(r"[ \t\r\f\v\xa0]+")
_LINES = lazy_regex(r"(?<![^\S\n])[^\S\n]*+\n\s*+")

_SCRIPTS = "//script|//style"
_SELECTS = "//*[@role='listbox'][.//*[@role='option']]"  # select elements made of others
_UNDRAWN = frozenset(["template", "noscript", "noembed", "noframes", "iframe", "object", "datalist"])
_CANDIDATES = "//*[@hidden or @style]|//template|//noscript|//noembed|//noframes|//iframe|//object|//datalist|//dialog"
_MAX_STYLE = 4000
_COMMENTS = "//comment()|//processing-instruction()"
_ROOTS = frozenset(["html", "body"])
_FADES = lazy_regex(r"(?:opacity|visibility)\s*:", re.IGNORECASE)
_OUTSIDE_SHARE = 0.2
_MIN_NOSCRIPT = 400
# React streams late parts of a page in hidden elements, and a script moves them into place.
_LATE_PART = lazy_regex(r"S:[0-9a-f]+", re.ASCII)
_LATE_PARTS_SCRIPT = "$RC("
_OFF = r"-\s*\d{3,}(?:\.\d+)?\s*(?:px|r?em|v[wh]|%)?"
_ZERO = r"(?:0++(?:\.0*+)?|\.0++)"
_HIDING_STYLE = lazy_regex(
    r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|content-visibility\s*:\s*hidden"
    rf"|font-size\s*:\s*{_ZERO}(?:px|r?em|pt|%)?\s*(?:!|;|$)|opacity\s*:\s*{_ZERO}%?\s*(?:!|;|$)"
    rf"|text-indent\s*:\s*{_OFF}|clip\s*:\s*rect\(\s*[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?"
    r"|clip-path\s*:\s*inset\(\s*(?:50|100)%|transform\s*:[^;]{0,200}scale\(\s*0\s*\))",
    re.IGNORECASE,
)
_OFF_SCREEN = lazy_regex(rf"(?:^|[;\s])(?:left|right|top|bottom|margin-left|margin-top)\s*:\s*{_OFF}", re.IGNORECASE)
_OUT_OF_FLOW = lazy_regex(r"position\s*:\s*(?:absolute|fixed)|margin-", re.IGNORECASE)


def parse(source: str) -> Any:
    """Return the lxml tree of `source`. lxml gets bytes, since it refuses strings that declare a charset."""
    from lxml import etree
    from lxml.html import Element, HTMLParser, document_fromstring

    source = _XML_DECLARATION.sub("", source.replace("\x00", ""))
    tree = Element("html")
    with suppress(etree.ParserError):  # no elements
        tree = document_fromstring(source.encode("utf-8", "replace"), parser=HTMLParser(encoding="utf-8"))
    for template in tree.xpath("//template[@shadowrootmode or @shadowroot]"):
        _attach_shadow_root(template)
    head = tree.find("head")
    if head is not None and tree.find("body") is None:
        # Without the tag of the body, the parser puts everything after the title into the head.
        visible = next((place for place, node in enumerate(head) if node.tag not in _IN_HEAD), len(head))
        body = tree.makeelement("body")
        body.extend(list(head)[visible:])
        tree.append(body)
    return tree


def _attach_shadow_root(template: Any) -> None:
    """Move a declarative shadow root into its host, and the host's children into its slots, as browsers draw them."""
    host = template.getparent()
    if host is None:
        return
    children = [node for node in host if node is not template]
    text, template.tail = (host.text or "") + (template.tail or ""), None
    host.text, template.tail = None, None
    for node in children:
        host.remove(node)
    for slot in [inner for inner in template.iter("slot") if next(inner.iterancestors("template")) is template]:
        fill = [node for node in children if isinstance(node.tag, str) and node.get("slot", "") == slot.get("name", "")]
        if fill or (text.strip() and not slot.get("name")):
            for child in list(slot):
                slot.remove(child)
            slot.text = text if not slot.get("name") else None
            slot.extend(fill)
        slot.drop_tag()
    template.drop_tag()


def index_by_id(tree: Any) -> dict[str, Any]:
    """Return the elements of `tree` by id; the first one with an id wins."""
    return {node.get("id"): node for node in reversed(tree.xpath("//*[@id]"))}


def is_huge(tree: Any) -> bool:
    """Return whether a tree has more elements than people write, too many for careful extraction."""
    return any(count > _HUGE for count, _ in enumerate(tree.iter()))


def body_of(tree: Any) -> Any:
    body = tree.find("body")
    return tree if body is None else body


def extract_flat_text(body: Any) -> str:
    """Return the paragraphs of `body`, separated by blank lines; removes boilerplate from this lxml element."""
    from lxml import etree

    for node in body.xpath(f".//*[@{COPY}]"):
        drop(node)
    etree.strip_elements(body, *_BOILERPLATE, *SKIPPED, with_tail=False)
    source = etree.tostring(body, encoding="unicode", method="html").replace("\n", " ")
    source = _ITEM.sub("\n- ", _HEADING.sub(lambda tag: "\n" + "#" * int(tag[1]) + " ", source))
    text = _SPACES.sub(" ", unescape(_BLOCK.sub("\n", _INLINE.sub("", source))))
    return _LINES.sub("\n\n", text).strip()


def find_hidden(tree: Any) -> list[Any]:
    """Remove scripts, styles, comments and list boxes; return the elements of an lxml tree that are not drawn."""
    for node in tree.xpath(_COMMENTS):
        drop(node)
    is_late = any(_LATE_PARTS_SCRIPT in (script.text or "") for script in tree.iter("script"))
    for node in tree.xpath(f"{_SCRIPTS}|{_SELECTS}"):
        drop(node)
    hidden = [node for node in tree.xpath(_CANDIDATES) if is_hidden(node, is_late)]
    return [node for node in hidden if not _is_whole_page(node, tree)]


def drop(node: Any) -> None:
    """Remove an element from its tree, but not the text after it."""
    if node.getparent() is not None:
        node.drop_tree()


def is_hiding_style(style: str) -> bool:
    """Return whether an inline style hides its element: not drawn, zero size, transparent, or off screen."""
    style = style[:_MAX_STYLE]
    if _HIDING_STYLE.search(style):
        return True
    return bool(_OFF_SCREEN.search(style) and _OUT_OF_FLOW.search(style))


def read_inline_style(node: Any) -> dict[str, str]:
    """Return an element's inline style: values by property, in lower case."""
    parts = ((node.get("style") or "")[:_MAX_STYLE].lower().split(";")) if node.get("style") else ()
    pairs = (part.partition(":") for part in parts)
    return {name.strip(): value.strip() for name, _, value in pairs}


def is_hidden(node: Any, has_late_parts: bool = False) -> bool:
    """Return whether an element hides itself or is never drawn; `has_late_parts` exempts those that React reveals."""
    if node.tag in _ROOTS:
        return False
    if node.get("hidden") is not None:
        return not (has_late_parts and _LATE_PART.fullmatch(node.get("id") or ""))
    return (
        node.tag in _UNDRAWN
        or (node.tag == "dialog" and node.get("open") is None)
        or is_hiding_style(node.get("style") or "")
    )


def _is_whole_page(node: Any, tree: Any) -> bool:
    """Return whether `node` is the whole page, transparent until a script fades it in, or for use without scripts."""
    fades = _FADES.search(node.get("style") or "") and (node.tag == "main" or node.xpath(".//main|.//h1"))
    if not fades and node.tag != "noscript":
        return False
    length = _text_length(node)
    if not length or (not fades and length < _MIN_NOSCRIPT):
        return False
    total = _text_length(body_of(tree))
    return total - length <= _OUTSIDE_SHARE * total


def _text_length(node: Any) -> int:
    return sum(map(len, map(str.strip, node.itertext())))


_HEADING_NODES: Final = "//h1|//h2|//h3|//h4|//h5|//h6|//dt|//summary"
_MIN_CONTENTS: Final = 3
_CONTENTS_SHARE: Final = 0.8


def drop_contents(tree: Any) -> None:
    """Remove tables of contents: lists of links to the page's own headings, with their text."""
    headings = {_without_number(node.text_content()) for node in tree.xpath(_HEADING_NODES)} - {""}
    for node in tree.xpath("//ul|//ol"):
        items = node.xpath(".//li")
        count = sum(_is_contents_item(item, headings) for item in items)
        if count >= max(_MIN_CONTENTS, _CONTENTS_SHARE * len(items)):
            drop(node)


def _is_contents_item(item: Any, headings: Set[str]) -> bool:
    own = [node for node in item if node.tag not in ("ul", "ol")]
    links = [link for node in own for link in node.xpath("descendant-or-self::a")]
    if len(links) != 1 or not (links[0].get("href") or "").startswith("#"):
        return False
    text = (item.text or "") + "".join(node.text_content() + (node.tail or "") for node in own)
    return _without_number(text) in headings


def _without_number(heading: str) -> str:
    """Return the letters and digits of a heading, without its number."""
    return letters_and_digits(heading).lstrip("0123456789")


_DRAWN_ONLY: Final = "//*[@aria-hidden='true']"
_MAX_COPY: Final = 200
_MAX_ADDED: Final = 40


def mark_copies(tree: Any) -> None:
    """Mark text that is not for screen readers if the text beside it says the same, as of a price and "Price $9".

    It stays in the tree while blocks are selected: the classifier was trained on pages that have both.
    """
    for node in tree.xpath(_DRAWN_ONLY):
        own = letters_and_digits(node.text_content()) if node.tag in INLINE else ""
        if 0 < len(own) <= _MAX_COPY and any(
            own == other or (len(own) > 2 and own in other and len(other) <= len(own) + _MAX_ADDED)
            for sibling in (node.getprevious(), node.getnext())
            if sibling is not None and sibling.get("aria-hidden") != "true"
            for other in [letters_and_digits(sibling.text_content())]
        ):
            node.set(COPY, "")


PANEL_LABEL: Final = "data-panel-label"
"""The attribute that marks a paragraph with the name of the panel below it."""

_CONTROLS: Final = (
    "//*[@aria-controls or @data-bs-target or @data-target or @onclick]"
    "|//a[starts-with(@href,'#')]"
    "[@role='tab' or @data-toggle or @data-bs-toggle or ancestor::ul[contains(@class,'tab')]]"
)
_TABPANELS: Final = "//*[@role='tabpanel']"
_PANELS: Final = "//*[@role='tabpanel' or (@id and contains(@class,'tab'))]"
_CLOSED_STYLE = lazy_regex(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\s*(?:!\s*important)?\s*;?", re.IGNORECASE)
_OTHER_TAGS: Final = frozenset(["nav", "header", "footer", "menu", "dialog"])
_OTHER_ROLES: Final = frozenset(
    "navigation menu menubar banner contentinfo search dialog alertdialog listbox tooltip combobox".split()
)
_TOGGLES: Final = frozenset(["tab", "pill", "collapse"])
_QUOTED = lazy_regex(r"['\"]#?([\w:.-]{1,80})['\"]")
_RADIO_TABS: Final = "//*[count(input[@type='radio'])>1][contains(@class,'tab')]"
_MAX_LABEL = 60
_MAX_EXPANDERS = 3
_MAX_TEXTS = 8
_CONTAINERS: Final = frozenset(["div", "p", "section", "article"])


def open_panels(tree: Any, hidden: Sequence[Any]) -> None:
    """Reveal those of the `hidden` elements of `tree`, in page order, that a click would reveal."""
    if not hidden:
        return
    controls = _find_controls(tree)
    panels = Counter(node.getparent() for node in tree.xpath(_TABPANELS))
    has_tabs = bool(panels) and bool(tree.xpath("//*[@role='tab']"))
    labels = index_by_id(tree) if any(node.get("aria-labelledby") for node in hidden) else {}
    for node in hidden:
        style = node.get("style") or ""
        is_closed = node.get("hidden") is not None or _CLOSED_STYLE.search(style)
        is_panel = node.get("role") == "tabpanel" and (has_tabs or panels[node.getparent()] > 1)
        label = labels.get(node.get("aria-labelledby") or "")
        is_opened = is_panel or _is_opened_by_click(node, controls) or (label is not None and _is_expander(label))
        if is_closed and is_opened and not _is_elsewhere(node):
            node.attrib.pop("hidden", None)
            node.set("style", _CLOSED_STYLE.sub("", style))


def name_panels(tree: Any) -> None:
    """Write the names of tabs before their panels, which may have similar texts, say one for each operating system."""
    controls, panels = _find_controls(tree), tree.xpath(_PANELS)
    groups: dict[Any, list[Any]] = defaultdict(list)
    for panel in panels:
        if panel.get("role") == "tabpanel" or any(map(_is_tab, controls.get(panel.get("id"), ()))):
            groups[panel.getparent()].append(panel)
    elements = index_by_id(tree) if groups else {}
    for box, panels in groups.items():
        if len(panels) > 1:
            _write_labels(panels, _tab_names(box, panels, controls, elements))
    for box in tree.xpath(_RADIO_TABS):
        names = [_read_label(label) for label in box.xpath("./*/label")]
        if len(box) and len(box[-1]) == len(names):
            _write_labels(box[-1], names)


def _find_controls(tree: Any) -> Mapping[str, Sequence[Any]]:
    """Return the visible, clickable controls by the ids of the elements that they open."""
    controls: dict[str, list[Any]] = defaultdict(list)
    for node in tree.xpath(_CONTROLS):
        if not (names := _find_targets(node)) or (node.get("aria-haspopup") or "false") != "false":
            continue
        if _read_label(node) and not is_closed(node) and not _is_elsewhere(node):
            for name in names:
                controls[name].append(node)
    return controls


def _find_targets(node: Any) -> list[str]:
    toggle = node.get("data-bs-toggle") or node.get("data-toggle") or ""
    if node.get("aria-controls") and (node.get("aria-expanded") or node.get("role") == "tab" or toggle in _TOGGLES):
        return str(node.get("aria-controls")).split()
    if toggle in _TOGGLES or _is_tab(node):
        target = node.get("data-bs-target") or node.get("data-target") or node.get("href") or ""
        if target.startswith("#"):
            return [target.removeprefix("#")]
    return _QUOTED.findall(node.get("onclick") or "")


def _is_tab(node: Any) -> bool:
    toggles = (node.get("data-bs-toggle"), node.get("data-toggle"))
    is_listed = node.tag == "a" and any("tab" in (above.get("class") or "") for above in node.iterancestors("ul"))
    is_named = bool(node.get("onclick")) and "tab" in (node.get("class") or "")
    return node.get("role") == "tab" or "tab" in toggles or "pill" in toggles or is_listed or is_named


def _is_opened_by_click(node: Any, controls: Mapping[str, Sequence[Any]]) -> bool:
    if (node.get("hidden") or "").strip().lower() == "until-found" or node.get("id") in controls:
        return True
    previous = None if node.get("role") == "tabpanel" else node.getprevious()
    return previous is not None and any(_is_expander(element) for element in islice(previous.iter(), _MAX_EXPANDERS))


def _is_expander(node: Any) -> bool:
    is_button = node.get("aria-expanded") and not node.get("aria-haspopup")
    return bool(is_button and _read_label(node) and not is_closed(node) and not _is_elsewhere(node))


def _is_elsewhere(node: Any) -> bool:
    """Return whether an element is a form, part of a menu, dialog or the like, or within a hidden element."""
    return node.tag == "form" or any(
        above.tag in _OTHER_TAGS or above.get("role") in _OTHER_ROLES or (above is not node and is_closed(above))
        for above in (node, *node.iterancestors())
    )


def is_closed(node: Any) -> bool:
    """Return whether an element hides itself, by attribute or style."""
    return node.get("hidden") is not None or is_hiding_style(node.get("style") or "")


def _tab_names(
    box: Any, panels: Sequence[Any], controls: Mapping[str, Sequence[Any]], elements: Mapping[str, Any]
) -> list[str]:
    """Return the names of the tabs that open `panels`: by their references, else by their order."""
    names = []
    for panel in panels:
        tabs = list(filter(_is_tab, controls.get(panel.get("id"), ())))
        label = tabs[0] if tabs else elements.get(panel.get("aria-labelledby") or "")
        names.append(clean_line(panel.get("aria-label") or "") if label is None else _read_label(label))
    for above in () if all(names) else (box, *islice(box.iterancestors(), 2)):
        for tabs in above.xpath(".//*[@role='tablist']")[:1]:
            tab_nodes = tabs.xpath(".//*[@role='tab']") or list(tabs)
            if len(tab_nodes) == len(panels):
                return list(map(_read_label, tab_nodes))
    return names


def _write_labels(panels: Sequence[Any], names: Sequence[str]) -> None:
    """Start each panel with its name: as a prefix of its text, or else in a paragraph before it."""
    for panel, name in zip(panels, names, strict=True):
        texts = [" ".join(text.split()) for text in islice(panel.itertext(), _MAX_TEXTS) if text.strip()]
        if not texts or not name or len(name) > _MAX_LABEL or texts[0].rstrip(":：").casefold() == name.casefold():
            continue
        label = name + ("：" if not name.isascii() and not name[-1:].isascii() else ":")
        first = panel
        while not (first.text or "").strip() and len(first) and (first[0].tag in _CONTAINERS or first[0].tag in INLINE):
            first = first[0]
        if (first.text or "").strip():
            first.text = f"{label} {first.text.lstrip()}"
            continue
        line = panel.makeelement("p")
        line.text = label
        line.set(PANEL_LABEL, "")
        panel.insert(0, line)


def _read_label(node: Any) -> str:
    text = " ".join(islice(node.itertext(), _MAX_TEXTS))
    return clean_line(text) or clean_line(node.get("aria-label") or node.get("title") or "")


_ARIA_TABLES: Final = "//*[not(self::table)][@role='table' or @role='grid' or @role='treegrid'][.//*[@role='row']]"
_TAG_OF_ROLE: Final = {
    **dict.fromkeys(("table", "grid", "treegrid"), "table"),
    **dict.fromkeys(("columnheader", "rowheader"), "th"),
    **dict.fromkeys(("cell", "gridcell"), "td"),
    "row": "tr",
    "rowgroup": "tbody",
}


_MIN_FROZEN_ROWS = 3


def name_table_parts(tree: Any) -> None:
    """Give elements with ARIA table roles, such as grids drawn by style sheets, the tags of tables."""
    for table in tree.xpath(_ARIA_TABLES):
        for node in [table, *table.xpath(".//*[@role]")]:
            if tag := _TAG_OF_ROLE.get(node.get("role")):
                node.tag = tag
                for span in ("colspan", "rowspan"):
                    if size := node.get(f"aria-{span}"):
                        node.set(span, size)


def join_frozen_columns(tree: Any) -> None:
    """Move a column that is a separate table, so that it stays in view, into the table beside it.

    Both follow each other directly and have the same number of rows, at least three.
    """
    for column, table in pairwise(list(tree.iter("table"))):
        names, rows = list(column.iter("tr")), list(table.iter("tr"))
        is_column = len(names) >= _MIN_FROZEN_ROWS and all(len(row) == 1 for row in names)
        if is_column and len(names) == len(rows) and max(map(len, rows)) > 1 and _is_adjacent(column, table):
            for name, row in zip(names, rows, strict=True):
                row.insert(0, name[0])
            drop(column)


def _is_adjacent(first: Any, second: Any) -> bool:
    """Return whether two elements with text have none between them."""
    ancestors = set(first.iterancestors())
    shared = next((node for node in second.iterancestors() if node in ancestors), None)
    count = sum(bool(text.strip()) for node in (first, second) for text in node.itertext())
    if shared is None or not count:
        return False
    # No more than needed: in a list of many tables, all have the same ancestor.
    return len(list(islice(filter(str.strip, shared.itertext()), count + 1))) == count
