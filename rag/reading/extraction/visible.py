"""The part of an HTML document that a reader sees.

Text hidden from people still reaches models, and is the usual vehicle for planted instructions. This finds
what the document itself hides: attributes, inline styles, and elements that are never drawn.
It does not find text hidden by a stylesheet.
"""

from __future__ import annotations

import re
from typing import Any

_SCRIPTS = "//script|//style"
_UNDRAWN = frozenset(["template", "noscript", "noembed", "noframes", "iframe", "object", "datalist"])
_CANDIDATES = "//*[@hidden or @style]|//template|//noscript|//noembed|//noframes|//iframe|//object|//datalist|//dialog"
_MAX_STYLE = 4000
_COMMENTS = "//comment()|//processing-instruction()"
_ROOTS = frozenset(["html", "body"])
_FADES = re.compile(r"(?:opacity|visibility)\s*:", re.IGNORECASE)
_OUTSIDE_SHARE = 0.2
_MIN_NOSCRIPT = 400
# React sends late parts of a page in hidden elements, and one of its functions moves them into place.
_LATE_PART = re.compile(r"S:[0-9a-f]+", re.ASCII)
_LATE_PARTS_SCRIPT = "$RC("
_OFF = r"-\s*\d{3,}(?:\.\d+)?\s*(?:px|r?em|v[wh]|%)?"
_ZERO = r"(?:0++(?:\.0*+)?|\.0++)"
_HIDING_STYLE = re.compile(
    r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|content-visibility\s*:\s*hidden"
    rf"|font-size\s*:\s*{_ZERO}(?:px|r?em|pt|%)?\s*(?:!|;|$)|opacity\s*:\s*{_ZERO}%?\s*(?:!|;|$)"
    rf"|text-indent\s*:\s*{_OFF}|clip\s*:\s*rect\(\s*[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?[,\s]+[01](?:px)?"
    r"|clip-path\s*:\s*inset\(\s*(?:50|100)%|transform\s*:[^;]{0,200}scale\(\s*0\s*\))",
    re.IGNORECASE,
)
_OFF_SCREEN = re.compile(rf"(?:^|[;\s])(?:left|right|top|bottom|margin-left|margin-top)\s*:\s*{_OFF}", re.IGNORECASE)
_OUT_OF_FLOW = re.compile(r"position\s*:\s*(?:absolute|fixed)|margin-", re.IGNORECASE)


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
