"""The lxml tree that all of the extraction shares, parsed from a page's source.

A page with more elements than people write skips extraction: its text is read in linear time and little memory.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from rag.reading.extraction.segments import INLINE, SKIPPED

_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
_HUGE = 60_000
_IN_HEAD = frozenset("title meta link base style script noscript template object".split())
_BOILERPLATE = ("nav", "footer", "aside", "form", "button")
_HEADING = re.compile(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_ITEM = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(rf"</?(?!br\b)(?:{'|'.join(sorted(INLINE))})\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?[A-Za-z][^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")


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
