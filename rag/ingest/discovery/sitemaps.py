"""Sitemaps (sitemaps.org): where they are, and the pages that they name."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.web.fetch import Fetcher
from rag.web.guard import shown
from rag.web.robots import Robots
from rag.web.site_scope import FoundPage, page_address, same_site
from rag.web.url_key import join_url, split_url, web_address

log = logging.getLogger(__name__)

MAX_FILES = 50
MAX_NESTING = 3
_MAX_FETCHED = 10 * 1024 * 1024
_USUAL_PLACES = ("/sitemap.xml", "/sitemap_index.xml")
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
    named = [place for address in robots.sitemaps(start) if (place := web_address(start, address))][:MAX_FILES]
    usual = [join_url(start, place) for place in _USUAL_PLACES]
    given = [[start]] if _LOOKS_LIKE_ONE.search(split_url(start).path) else []
    return [*given, *([named] if named else []), usual]
