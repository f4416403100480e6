"""The lxml tree that all of the extraction shares, parsed from a page's source, and the part that a reader sees.

A page with more elements than people write skips extraction: its text is read in linear time and little memory.

Text hidden from people still reaches models, and is the usual vehicle for planted instructions. `find_hidden` finds
what the document itself hides: attributes, inline styles, and elements that are never drawn. It does not find text
hidden by a stylesheet.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from rag.patterns import lazy_regex
from rag.reading.extraction.segments import INLINE, SKIPPED

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
_UNDRAWN = frozenset(["template", "noscript", "noembed", "noframes", "iframe", "object", "datalist"])
_CANDIDATES = "//*[@hidden or @style]|//template|//noscript|//noembed|//noframes|//iframe|//object|//datalist|//dialog"
_MAX_STYLE = 4000
_COMMENTS = "//comment()|//processing-instruction()"
_ROOTS = frozenset(["html", "body"])
_FADES = lazy_regex(r"(?:opacity|visibility)\s*:", re.IGNORECASE)
_OUTSIDE_SHARE = 0.2
_MIN_NOSCRIPT = 400
# React sends late parts of a page in hidden elements, and one of its functions moves them into place.
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
    """Return the lxml tree of `source`, or None. lxml gets bytes, since it refuses text that declares a charset."""
    from lxml import etree
    from lxml.html import HTMLParser, document_fromstring

    source = _XML_DECLARATION.sub("", source.replace("\x00", ""))
    data = source.encode("utf-8", "replace")
    try:
        tree = document_fromstring(data, parser=HTMLParser(encoding="utf-8")) if data.strip() else None
    except etree.ParserError:
        return None
    if tree is None:
        return None
    for template in tree.xpath("//template[@shadowrootmode or @shadowroot]"):
        _attach_shadow_root(template)
    return _ensure_body(tree)


def _attach_shadow_root(template: Any) -> None:
    """Put the content of a declarative shadow root into its host, whose own children are drawn only in its slots."""
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


def _ensure_body(tree: Any) -> Any:
    """Give a page without a body tag one: the parser puts all that follows the title into the head."""
    head = tree.find("head")
    if head is None or tree.find("body") is not None:
        return tree
    visible = next((place for place, node in enumerate(head) if node.tag not in _IN_HEAD), len(head))
    body = tree.makeelement("body")
    body.extend(list(head)[visible:])
    tree.append(body)
    return tree


def by_id(tree: Any) -> dict[str, Any]:
    """Return the elements of `tree` by their ids, the first of each."""
    elements: dict[str, Any] = {}
    for node in tree.xpath("//*[@id]"):
        elements.setdefault(node.get("id"), node)
    return elements


def is_huge(tree: Any) -> bool:
    """True if a tree has more elements than people write, too many for careful extraction."""
    return any(count > _HUGE for count, _ in enumerate(tree.iter()))


def body_of(tree: Any) -> Any:
    body = tree.find("body")
    return tree if body is None else body


def flat_text(body: Any) -> str:
    """Return the paragraphs of `body`, a blank line apart; removes boilerplate from this lxml element."""
    from lxml import etree

    etree.strip_elements(body, *_BOILERPLATE, *SKIPPED, with_tail=False)
    source = etree.tostring(body, encoding="unicode", method="html").replace("\n", " ")
    source = _ITEM.sub("\n- ", _HEADING.sub(lambda tag: "\n" + "#" * int(tag[1]) + " ", source))
    text = _SPACES.sub(" ", unescape(_BLOCK.sub("\n", _INLINE.sub("", source))))
    return _LINES.sub("\n\n", text).strip()


def find_hidden(tree: Any) -> list[Any]:
    """Remove scripts and comments; return the elements of an lxml tree that are not drawn, in page order."""
    for node in tree.xpath(_COMMENTS):
        drop(node)
    is_late = any(_LATE_PARTS_SCRIPT in (script.text or "") for script in tree.iter("script"))
    for node in tree.xpath(_SCRIPTS):
        drop(node)
    hidden = [node for node in tree.xpath(_CANDIDATES) if is_hidden(node, is_late)]
    return [node for node in hidden if not _is_whole_page(node, tree)]


def drop(node: Any) -> None:
    """Remove an element from its tree, but not the text after it."""
    if node.getparent() is not None:
        node.drop_tree()


def hides(style: str) -> bool:
    """True if an inline style hides its element: not drawn, of no size, transparent, or off screen."""
    style = style[:_MAX_STYLE]
    if _HIDING_STYLE.search(style):
        return True
    return bool(_OFF_SCREEN.search(style) and _OUT_OF_FLOW.search(style))


def declarations(node: Any) -> dict[str, str]:
    """Return an element's inline style: values by property, in lower case."""
    parts = ((node.get("style") or "")[:_MAX_STYLE].lower().split(";")) if node.get("style") else ()
    pairs = (part.partition(":") for part in parts)
    return {name.strip(): value.strip() for name, _, value in pairs}


def is_hidden(node: Any, has_late_parts: bool = False) -> bool:
    """True if an element hides itself, or is of a kind that is not drawn."""
    if node.tag in _ROOTS:
        return False
    if node.get("hidden") is not None:
        return not (has_late_parts and _LATE_PART.fullmatch(node.get("id") or ""))
    return node.tag in _UNDRAWN or (node.tag == "dialog" and node.get("open") is None) or hides(node.get("style") or "")


def _is_whole_page(node: Any, tree: Any) -> bool:
    """True if `node` is the page itself, transparent until a script fades it in, or shown without scripts."""
    fades = _FADES.search(node.get("style") or "") and (node.tag == "main" or node.xpath(".//main|.//h1"))
    if not fades and node.tag != "noscript":
        return False
    length = _text_length(node)
    if not length or (not fades and length < _MIN_NOSCRIPT):
        return False
    body = tree.find("body")
    total = _text_length(tree if body is None else body)
    return total - length <= _OUTSIDE_SHARE * total


def _text_length(node: Any) -> int:
    return sum(map(len, map(str.strip, node.itertext())))
