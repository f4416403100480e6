"""Link extraction from pages, sitemaps (sitemaps.org) and feeds. Runs in the parser's child process.

Sitemaps are scanned tag by tag, because real ones contain what no XML parser accepts: undeclared prefixes, bare
ampersands, capital letters, truncated files. An entry counts if its URL is complete.
"""

from __future__ import annotations

import html
import io
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from rag.reading.charset import decode
from rag.reading.extraction.tree import parse
from rag.text import lazy_regex
from rag.web.urls import is_page_name, page_address, web_address

MAX_LINKS = 2000
_MAX_HREF = 2048
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")

MAX_ENTRIES = 2000


def links_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """Return {"links": [url, …], "feeds": [url, …]} of HTML; arguments: url (after redirects), charset (or None).

    Links are unique, in page order, normalised by `page_address`, and capped at MAX_LINKS. `<base href>` is respected.
    Excluded are rel=nofollow links, all links if the robots meta says nofollow, links to the page itself, non-HTTP
    links, and unsupported file types. Feeds are the targets of `<link rel=alternate>`.
    """
    url = header["url"]
    tree = parse(decode(body, header.get("charset"), url))
    first_base = next((node.get("href") for node in tree.iter("base") if node.get("href")), "")
    base = web_address(url, first_base.strip()) or url
    feeds = (
        _resolve(base, link.get("href"))
        for link in tree.iter("link")
        if link.get("href")
        and "alternate" in _split_tokens(link.get("rel"))
        and (link.get("type") or "").partition(";")[0].strip().lower() in _FEED_TYPES
    )
    metas = (meta for meta in tree.iter("meta") if (meta.get("name") or "").strip().lower() in ("robots", "pagelight"))
    words = {word for meta in metas for word in _split_tokens((meta.get("content") or "").replace(",", " "))}
    is_nofollow = words & {"nofollow", "none"}
    links = [] if is_nofollow else _find_links(tree, base, page_address(url))
    return {"links": links, "feeds": list(dict.fromkeys(filter(None, feeds)))}


def _find_links(tree: Any, base: str, own: str) -> list[str]:
    """Return the pages that a page links to, except its `own` address."""
    addresses: dict[str, None] = {}
    for link in tree.iter("a", "area"):
        href = link.get("href")
        if not href or "nofollow" in _split_tokens(link.get("rel")):
            continue
        address = _resolve(base, href)
        if address and address != own and is_page_name(address):
            addresses.setdefault(address)
            if len(addresses) >= MAX_LINKS:
                break
    return list(addresses)


def _resolve(base: str, href: str) -> str:
    """Return the normalised URL of the page that `href` links to, or ""."""
    text = href.strip()
    if not text or len(text) > _MAX_HREF or text.startswith("#"):
        return ""
    address = web_address(base, text)
    return page_address(address) if address else ""


def _split_tokens(value: str | None) -> set[str]:
    return set((value or "").lower().split())


def parse_feed(body: bytes, url: str) -> list[tuple[str, str]]:
    """Return the (page, modified) pairs of a feed fetched from `url`, one for each page; [] if it is not a feed.

    `modified` is when the entry was updated, or else published, in UTC (ISO 8601), or "".
    """
    import feedparser

    feed = feedparser.parse(
        io.BytesIO(body), response_headers={"content-location": url}, sanitize_html=False, resolve_relative_uris=True
    )
    if not feed.get("version"):
        return []
    pages: dict[str, str] = {}
    for entry in feed.entries[:MAX_ENTRIES]:
        link = str(entry.get("link") or "").strip()
        is_page = link.startswith(("http://", "https://")) and is_page_name(link)
        if not is_page or not (address := page_address(link)):
            continue
        times = (entry.get(name) for name in ("updated_parsed", "published_parsed") if name in entry)
        moment = next(filter(None, times), None)
        modified = time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if isinstance(moment, time.struct_time) else ""
        pages.setdefault(address, modified)
    return list(pages.items())


def feed_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """Return {"pages": [[url, modified], …]} of a feed; argument: url (after redirects)."""
    return {"pages": [list(page) for page in parse_feed(body, header["url"])]}


_MARKUP = lazy_regex(
    r"<!--(?:.*?-->|.*+)|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<(?P<end>/?)(?:[^\s<>/!?:]*+:)?(?P<name>[^\s<>/!?:]++)[^<>]*+>",
    re.DOTALL,
)
# Bare ampersands stay: `&copy=1` is a parameter, although HTML would decode it.
_ENTITY = lazy_regex(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_ENTRIES = frozenset(["url", "sitemap"])
_DATE = lazy_regex(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9:.]{4,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?", re.ASCII)
MAX_URLS = 50_000  # per file, according to the protocol
_MAX_DECODED = 50 * 1024 * 1024


def parse_sitemap(body: bytes, url: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the child sitemaps and the (page, lastmod) pairs of a sitemap fetched from `url`.

    It may be an index, a list of pages, plain text with one URL per line, a feed, or any of these gzipped. A truncated
    file yields its complete entries, damaged gzip none.
    """
    data = _decompress(body)
    text = decode(data, url=url)
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        lines = text.splitlines()[:MAX_URLS]
        found = ((web_address(url, line.strip()), "") for line in lines if "://" in line[:12])
        return [], [(address, modified) for address, modified in found if address]
    if root_name(text) in ("rss", "feed", "rdf"):
        return [], parse_feed(data, url)
    addresses: dict[str, list[tuple[str, str]]] = {"url": [], "sitemap": []}
    for kind, texts in islice(iter_entries(text), MAX_URLS):
        if address := web_address(url, texts.get("loc", "")):
            modified = texts.get("lastmod", "")
            addresses[kind].append((address, modified if _DATE.fullmatch(modified) else ""))
    return [address for address, _ in addresses["sitemap"]], addresses["url"]


def sitemap_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """Return {"sitemaps": [url, …], "pages": [[url, lastmod], …]}; argument: url (after redirects)."""
    maps, pages = parse_sitemap(body, header["url"])
    return {"sitemaps": maps, "pages": [list(page) for page in pages]}


def _decompress(body: bytes) -> bytes:
    """Decompress a gzip body, up to _MAX_DECODED bytes, or to b"" if it is damaged; return any other body unchanged."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    with suppress(zlib.error):
        return zlib.decompressobj(31).decompress(body, _MAX_DECODED)
    return b""


def root_name(text: str) -> str:
    """Return the name of a document's first element, without prefix and in lower case."""
    return next((match["name"].lower() for match in _MARKUP.finditer(text) if match["name"]), "")


def iter_entries(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the pages ("url") and child sitemaps ("sitemap") in order, each with its direct children's texts by tag."""
    kind, texts = "", dict[str, str]()
    open_names: list[str] = []
    content = ""
    place = 0
    for match in _MARKUP.finditer(text):
        if len(open_names) == 1:
            content += _ENTITY.sub(lambda entity: html.unescape(entity[0].lower()), text[place : match.start()])
            content += match["cdata"] or ""
        place, name = match.end(), (match["name"] or "").lower()
        if name in _ENTRIES and not (kind and open_names):
            if kind:
                yield kind, texts
            kind, texts = "" if match["end"] else name, {}
        elif kind and match["end"]:
            if len(open_names) == 1:
                texts.setdefault(open_names[0], content.strip())
            del open_names[-1:]
        elif kind and name and not match[0].endswith("/>"):
            open_names.append(name)
            content = ""
    if kind:
        yield kind, texts
