"""The text of pages with more elements than people write, by the shortest way that stays linear and small."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from rag.ingest.extraction.segments import INLINE, SKIPPED

_FURNITURE = ("nav", "footer", "aside", "form", "button")
_HEADING = re.compile(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_ITEM = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(rf"</?(?!br\b)(?:{'|'.join(sorted(INLINE))})\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?[A-Za-z][^<>]*>")
_SPACES = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")


def flat_text(body: Any) -> str:
    """The paragraphs of `body`, an lxml element that loses its furniture by this, a blank line apart."""
    from lxml import etree

    etree.strip_elements(body, *_FURNITURE, *SKIPPED, with_tail=False)
    source = etree.tostring(body, encoding="unicode", method="html").replace("\n", " ")
    source = _ITEM.sub("\n- ", _HEADING.sub(lambda tag: "\n" + "#" * int(tag[1]) + " ", source))
    text = _SPACES.sub(" ", unescape(_BLOCK.sub("\n", _INLINE.sub("", source))))
    return _LINES.sub("\n\n", text).strip()
