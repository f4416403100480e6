"""From a page's source to the one lxml tree that all of the extraction shares.

A page with more elements than people write is read without it, by the shortest way that stays linear and small.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from rag.reading.extraction.segments import INLINE, SKIPPED

_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*>")
_HUGE = 60_000
_IN_HEAD = frozenset("title meta link base style script noscript template object".split())
_FURNITURE = ("nav", "footer", "aside", "form", "button")
_HEADING = re.compile(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_ITEM = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(rf"</?(?!br\b)(?:{'|'.join(sorted(INLINE))})\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?[A-Za-z][^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")


def parse(source: str) -> Any:
    """The lxml tree of `source`, or None. lxml gets bytes, since it refuses text that declares a charset."""
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
        _attach(template)
    return _with_body(tree)


def _attach(template: Any) -> None:
    """Put what a declarative shadow root holds into its element, whose own children are drawn only in its slots."""
    host = template.getparent()
    if host is None:
        return
    own = [node for node in host if node is not template]
    text, template.tail = (host.text or "") + (template.tail or ""), None
    host.text, template.tail = None, None
    for node in own:
        host.remove(node)
    for slot in [one for one in template.iter("slot") if next(one.iterancestors("template")) is template]:
        given = [node for node in own if isinstance(node.tag, str) and node.get("slot", "") == slot.get("name", "")]
        if given or (text.strip() and not slot.get("name")):
            for child in list(slot):
                slot.remove(child)
            slot.text = text if not slot.get("name") else None
            slot.extend(given)
        slot.drop_tag()
    template.drop_tag()


def _with_body(tree: Any) -> Any:
    """A page without a body tag, of which the parser puts all that follows the title into the head."""
    head = tree.find("head")
    if head is None or tree.find("body") is not None:
        return tree
    visible = next((place for place, node in enumerate(head) if node.tag not in _IN_HEAD), len(head))
    body = tree.makeelement("body")
    body.extend(list(head)[visible:])
    tree.append(body)
    return tree


def by_id(tree: Any) -> dict[str, Any]:
    """The elements of `tree` by their ids, the first of each."""
    found: dict[str, Any] = {}
    for node in tree.xpath("//*[@id]"):
        found.setdefault(node.get("id"), node)
    return found


def is_huge(tree: Any) -> bool:
    """Whether a tree has more elements than pages written by people, which careful reading would not survive."""
    return any(count > _HUGE for count, _ in enumerate(tree.iter()))


def body_of(tree: Any) -> Any:
    body = tree.find("body")
    return tree if body is None else body


def flat_text(body: Any) -> str:
    """The paragraphs of `body`, an lxml element that loses its furniture by this, a blank line apart."""
    from lxml import etree

    etree.strip_elements(body, *_FURNITURE, *SKIPPED, with_tail=False)
    source = etree.tostring(body, encoding="unicode", method="html").replace("\n", " ")
    source = _ITEM.sub("\n- ", _HEADING.sub(lambda tag: "\n" + "#" * int(tag[1]) + " ", source))
    text = _SPACES.sub(" ", unescape(_BLOCK.sub("\n", _INLINE.sub("", source))))
    return _LINES.sub("\n\n", text).strip()
