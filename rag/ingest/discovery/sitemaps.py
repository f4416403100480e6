"""Sitemaps (sitemaps.org): where they are, and the pages that they name.

Parsing runs in the process that parses, as its task "sitemap".
"""

from __future__ import annotations

import logging
import re
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rag.errors import IngestError
from rag.ingest.charset import decode
from rag.ingest.discovery.feeds import feed_pages
from rag.ingest.discovery.sitemap_xml import entries, root_name
from rag.ingest.parser import Parser
from rag.web.fetch import Fetcher
from rag.web.guard import shown
from rag.web.robots import Robots
from rag.web.site_scope import FoundPage, page_address, same_site
from rag.web.url_key import join_url, split_url

log = logging.getLogger(__name__)

MAX_FILES = 50
MAX_NESTING = 3
MAX_URLS = 50_000  # of one file, as the protocol has it
_MAX_FETCHED = 10 * 1024 * 1024
_MAX_DECODED = 50 * 1024 * 1024
_USUAL_PLACES = ("/sitemap.xml", "/sitemap_index.xml")
_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9:.]{4,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?", re.ASCII)
_LOOKS_LIKE_ONE = re.compile(r"(?:sitemap[^/]*|\.xml(?:\.gz)?)$", re.IGNORECASE)

Admits = Callable[[str], bool]


def sitemap_pages(
    fetcher: Fetcher,
    parser: Parser,
    robots: Robots,
    start: str,
    limit: int,
    *,
    admits: Admits | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[FoundPage]:
    """At most `limit` pages that the sitemaps of the site of `start` name and `admits` takes, each once.

    `start` may be a sitemap itself; else those that robots.txt names are read, or those at the usual
    places. Without `admits` it takes the pages of the same site. A sitemap that cannot be read is left
    out. Raises IngestError("sitemap_missing") when there is none, and what robots.txt raises.
    """
    takes = admits or (lambda url: same_site(start, url))
    for places in _places(robots, start):
        hunt = _Hunt(fetcher, parser, start, limit, takes, stopped)
        hunt.read(places)
        if hunt.files:
            return list(hunt.found.values())
    raise IngestError("sitemap_missing", url=shown(start))


def parse_sitemap(body: bytes, url: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The further sitemaps, and the (page, lastmod) pairs, that a sitemap read from `url` names.

    It may be an index, a list of pages, plain text with one address a line, a feed, or any of these in
    gzip. A damaged file gives what stands before the damage. Raises zlib.error for damaged gzip.
    """
    data = _unpacked(body)
    text = decode(data)
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return [], _listed(text, url)
    if root_name(text) in ("rss", "feed", "rdf"):
        return [], [(page.url, page.modified) for page in feed_pages(data, url)]
    found: dict[str, list[tuple[str, str]]] = {"url": [], "sitemap": []}
    for entry in islice(entries(text), MAX_URLS):
        if address := _absolute(url, entry.texts.get("loc", "")):
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


@dataclass
class _Hunt:
    """One search through a site's sitemaps; `files` counts those that were read."""

    fetcher: Fetcher
    parser: Parser
    start: str
    limit: int
    admits: Admits
    stopped: Callable[[], bool]
    found: dict[str, FoundPage] = field(default_factory=dict)
    files: int = 0

    def read(self, places: list[str]) -> None:
        """Read `places` and what their indexes name, the outer ones first."""
        waiting = deque((place, 1) for place in places)
        seen = set(places)
        tried = 0
        while waiting and tried < MAX_FILES and len(self.found) < self.limit and not self.stopped():
            place, nesting = waiting.popleft()
            tried += 1
            for inner in self._read_one(place):
                if inner not in seen and nesting < MAX_NESTING:
                    seen.add(inner)
                    waiting.append((inner, nesting + 1))

    def _read_one(self, place: str) -> list[str]:
        """Keep the pages of one sitemap; returns the sitemaps that it names on hosts that may speak for it."""
        try:
            fetched = self.fetcher.fetch(place, raw=_MAX_FETCHED, stopped=self.stopped)
            made = self.parser.run("sitemap", fetched.body, url=fetched.final_url)
        except IngestError as error:
            log.info("sitemap %s: %s", shown(place), error)
            return []
        if made["sitemaps"] or made["pages"]:
            self.files += 1
        for url, modified in made["pages"]:
            if len(self.found) >= self.limit:
                break
            address = page_address(url)
            if address not in self.found and self.admits(address):
                self.found[address] = FoundPage(address, modified=modified)
        return [inner for inner in made["sitemaps"] if same_site(inner, place) or same_site(inner, self.start)]


def _places(robots: Robots, start: str) -> list[list[str]]:
    """Where to look, one list after the other until one holds a sitemap."""
    named = [place for address in robots.sitemaps(start) if (place := _absolute(start, address))][:MAX_FILES]
    usual = [join_url(start, place) for place in _USUAL_PLACES]
    given = [[start]] if _LOOKS_LIKE_ONE.search(split_url(start).path) else []
    return [*given, *([named] if named else []), usual]


def _unpacked(body: bytes) -> bytes:
    """The body without gzip; what is larger than _MAX_DECODED is cut there."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    return zlib.decompressobj(31).decompress(body, _MAX_DECODED)


def _listed(text: str, url: str) -> list[tuple[str, str]]:
    lines = text.splitlines()[:MAX_URLS]
    return [(address, "") for line in lines if (address := _absolute(url, line.strip())) and "://" in line[:12]]


def _absolute(base: str, text: str) -> str:
    joined = join_url(base, text) if text else ""
    parts = split_url(joined)
    return joined if parts.scheme in ("http", "https") and parts.hostname else ""
