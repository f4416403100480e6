"""The entries of an XML sitemap, read from tag to tag without building a tree.

Sites write sitemaps that no XML parser takes: prefixes that nobody declared, bare ampersands, capital letters, files
cut off in the middle. An entry counts when its address is whole.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_MARKUP = re.compile(
    r"<!--(?:.*?-->|.*+)|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<(?P<end>/?)(?:[^\s<>/!?:]*+:)?(?P<name>[^\s<>/!?:]++)[^<>]*+>",
    re.DOTALL,
)
# Bare ampersands stay: `&copy=1` is a parameter, though HTML would read a sign in it.
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_ENTRIES = frozenset(["url", "sitemap"])


@dataclass(slots=True)
class Entry:
    """A page ("url") or a further sitemap: the texts of its own children, not of what lies deeper in them."""

    kind: str
    texts: dict[str, str] = field(default_factory=dict)


def root_name(text: str) -> str:
    """The name of a document's first element, without prefix and in lower case."""
    return next((match["name"].lower() for match in _MARKUP.finditer(text) if match["name"]), "")


def entries(text: str) -> Iterator[Entry]:
    """The entries of a sitemap in order."""
    entry: Entry | None = None
    inside: list[str] = []
    written = ""
    place = 0
    for match in _MARKUP.finditer(text):
        if len(inside) == 1:
            written += _unescaped(text[place : match.start()]) + (match["cdata"] or "")
        place, name = match.end(), (match["name"] or "").lower()
        if name in _ENTRIES and not (entry and inside):
            if entry:
                yield entry
            entry = None if match["end"] else Entry(name)
        elif entry and match["end"]:
            if len(inside) == 1:
                entry.texts.setdefault(inside[0], written.strip())
            del inside[-1:]
        elif entry and name and not match[0].endswith("/>"):
            inside.append(name)
            written = ""
    if entry:
        yield entry


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda match: html.unescape(match[0].lower()), text)
