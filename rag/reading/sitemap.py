"""The pages that a sitemap (sitemaps.org) names, read from tag to tag without building a tree.

Runs in the process that parses, as its task "sitemap".

Sites write sitemaps that no XML parser takes: prefixes that nobody declared, bare ampersands, capital letters, files
cut off in the middle. An entry counts when its address is whole.
"""

from __future__ import annotations

import html
import io
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rag.reading.charset import decode
from rag.web.site_scope import FoundPage, is_page_name, page_address
from rag.web.url_key import web_address

MAX_ENTRIES = 2000


def feed_pages(body: bytes, url: str) -> list[FoundPage]:
    """The pages that the feed in `body`, read from `url`, names; in its order, each once. Empty for no feed."""
    import feedparser

    feed = feedparser.parse(
        io.BytesIO(body), response_headers={"content-location": url}, sanitize_html=False, resolve_relative_uris=True
    )
    if not feed.get("version"):
        return []
    found: dict[str, FoundPage] = {}
    for entry in feed.entries[:MAX_ENTRIES]:
        address = _page_of(entry)
        if address:
            found.setdefault(address, FoundPage(address, modified=_time_of(entry)))
    return list(found.values())


def feed_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """{"pages": [[url, modified], …]} of a feed; argument: url (where it came from in the end)."""
    return {"pages": [[page.url, page.modified] for page in feed_pages(body, header["url"])]}


def _page_of(entry: Any) -> str:
    """The address of an entry's page, or "" where it has none that could be read."""
    link = str(entry.get("link") or "").strip()
    if not link.startswith(("http://", "https://")) or not is_page_name(link):
        return ""
    return page_address(link)


def _time_of(entry: Any) -> str:
    """When the entry was changed or published, in UTC, or ""."""
    given = (entry.get(name) for name in ("updated_parsed", "published_parsed") if name in entry)
    moment = next((moment for moment in given if moment), None)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if isinstance(moment, time.struct_time) else ""


_MARKUP = re.compile(
    r"<!--(?:.*?-->|.*+)|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<(?P<end>/?)(?:[^\s<>/!?:]*+:)?(?P<name>[^\s<>/!?:]++)[^<>]*+>",
    re.DOTALL,
)
# Bare ampersands stay: `&copy=1` is a parameter, though HTML would read a sign in it.
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_ENTRIES = frozenset(["url", "sitemap"])
_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9:.]{4,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?", re.ASCII)
MAX_URLS = 50_000  # of one file, as the protocol has it
_MAX_DECODED = 50 * 1024 * 1024


def parse_sitemap(body: bytes, url: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The further sitemaps, and the (page, lastmod) pairs, that a sitemap read from `url` names.

    It may be an index, a list of pages, plain text with one address a line, a feed, or any of these in
    gzip. A damaged file gives what stands before the damage. Raises zlib.error for damaged gzip.
    """
    data = _unpacked(body)
    text = decode(data, url=url)
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return [], _listed(text, url)
    if root_name(text) in ("rss", "feed", "rdf"):
        return [], [(page.url, page.modified) for page in feed_pages(data, url)]
    found: dict[str, list[tuple[str, str]]] = {"url": [], "sitemap": []}
    for entry in islice(entries(text), MAX_URLS):
        if address := web_address(url, entry.texts.get("loc", "")):
            modified = entry.texts.get("lastmod", "")
            found[entry.kind].append((address, modified if _DATE.fullmatch(modified) else ""))
    return [address for address, _ in found["sitemap"]], found["url"]


def sitemap_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """{"sitemaps": [url, …], "pages": [[url, lastmod], …]}; argument: url (where it came from in the end)."""
    try:
        maps, pages = parse_sitemap(body, header["url"])
    except zlib.error:
        maps, pages = [], []
    return {"sitemaps": maps, "pages": [list(page) for page in pages]}


def _unpacked(body: bytes) -> bytes:
    """The body without gzip; what is larger than _MAX_DECODED is cut there."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    return zlib.decompressobj(31).decompress(body, _MAX_DECODED)


def _listed(text: str, url: str) -> list[tuple[str, str]]:
    lines = text.splitlines()[:MAX_URLS]
    return [(address, "") for line in lines if (address := web_address(url, line.strip())) and "://" in line[:12]]


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
