"""Discovery of a site's pages through sitemaps, feeds and links, within robots.txt.

A site job is a plan and its pages; every page may add more:

    robots = Robots(fetcher)                                  # one for all jobs: it caches sites' rules
    plan = SitePlan(start, "crawl", prefix="/docs/", max_depth=3, max_pages=200)   # or "sitemap", "feed"
    walk = Walk(plan, fetcher, parser, robots, known=pages_of_the_job)   # known is empty for a new job
    pages = walk.begin()                                      # a new job's first pages; raises IngestError
    for page in pages:                                        # in order of discovery
        … read the page; links = parser.run("links", body, url=final_url, charset=charset)["links"]
        pages += walk.expand(page, links)                     # only new ones, within the plan and robots.txt

The fetcher applies the rate limits. `walk.contains(final_url, depth)` is false for a redirect that left the plan.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.text import lazy_regex
from rag.web.fetch import Fetcher, FetchResult
from rag.web.guard import printable
from rag.web.media import MEGABYTE
from rag.web.robots import Robots
from rag.web.urls import (
    FoundPage,
    is_trap,
    join_url,
    page_address,
    same_site,
    site_and_folder,
    site_of,
    split_url,
    url_key,
    web_address,
)

log = logging.getLogger(__name__)


MAX_FILES = 50
MAX_NESTING = 3
_MAX_SITEMAP_BYTES = 10 * MEGABYTE
_USUAL_PATHS = ("/sitemap.xml", "/sitemap_index.xml")
_SITEMAP_PATH = lazy_regex(r"(?:sitemap[^/]*|\.xml(?:\.gz)?)$", re.IGNORECASE)


def sitemap_pages(
    fetcher: Fetcher,
    parser: Parser,
    robots: Robots,
    start: str,
    limit: int,
    admits: Callable[[str], bool],
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[FoundPage]:
    """Return up to `limit` pages that the site's sitemaps list and `admits` accepts, each once.

    `start` may be a sitemap itself; otherwise those listed in robots.txt are read, else those at the usual paths.
    Unreadable sitemaps are skipped. Raises IngestError("sitemap_missing") if there is none, and the errors of
    robots.txt.
    """
    from_robots = [url for address in robots.sitemaps(start) if (url := web_address(start, address))][:MAX_FILES]
    direct = [start] if _SITEMAP_PATH.search(split_url(start).path) else []
    usual = [join_url(start, url) for url in _USUAL_PATHS]
    for urls in filter(None, (direct, from_robots, usual)):
        readable = _read_sitemaps(fetcher, parser, start, urls, is_cancelled)
        if (first := next(readable, None)) is None:
            continue
        found: dict[str, FoundPage] = {}
        for url, modified in chain(first, chain.from_iterable(readable)):
            address = page_address(url)
            if address not in found and admits(address):
                found[address] = FoundPage(address, modified=modified)
            if len(found) >= limit:
                break
        return list(found.values())
    raise IngestError("sitemap_missing", url=printable(start))


def _read_sitemaps(
    fetcher: Fetcher, parser: Parser, start: str, urls: list[str], is_cancelled: Callable[[], bool]
) -> Iterator[list[tuple[str, str]]]:
    """Yield the pages (URL, date) of each sitemap at `urls` and of those that their indexes list, breadth-first.

    Indexes may only list sitemaps on their own or the start's site.
    """
    waiting = deque((url, 1) for url in urls)
    seen = set(urls)
    for _ in range(MAX_FILES):
        if not waiting or is_cancelled():
            return
        url, nesting = waiting.popleft()
        try:
            fetched = fetcher.fetch(url, max_raw_bytes=_MAX_SITEMAP_BYTES, is_cancelled=is_cancelled)
            content = parser.run("sitemap", fetched.body, url=fetched.final_url)
        except IngestError as error:
            log.info("sitemap %s: %s", printable(url), error)
            continue
        if content["sitemaps"] or content["pages"]:
            yield content["pages"]
        for inner in content["sitemaps"] if nesting < MAX_NESTING else ():
            if inner not in seen and (same_site(inner, url) or same_site(inner, start)):
                seen.add(inner)
                waiting.append((inner, nesting + 1))


_MAX_FEED_BYTES = 5 * MEGABYTE
_MAX_FEEDS = 3


def read_feed(fetcher: Fetcher, parser: Parser, url: str) -> list[FoundPage]:
    """Return the pages of the feed at `url`, or of the first working feed that the page at `url` links to.

    Raises IngestError: fetch errors, and "feed_missing".
    """
    fetched = fetcher.fetch(url, max_raw_bytes=_MAX_FEED_BYTES)
    if pages := _pages(parser, fetched):
        return pages
    feeds = parser.run("links", fetched.body, url=fetched.final_url, charset=fetched.charset)["feeds"]
    for address in feeds[:_MAX_FEEDS]:
        try:
            if pages := _pages(parser, fetcher.fetch(address, max_raw_bytes=_MAX_FEED_BYTES)):
                return pages
        except IngestError as error:
            log.info("feed %s: %s", printable(address), error)
    raise IngestError("feed_missing", url=printable(url))


def _pages(parser: Parser, fetched: FetchResult) -> list[FoundPage]:
    rows = parser.run("feed", fetched.body, url=fetched.final_url)["pages"]
    return [FoundPage(address, modified=modified) for address, modified in rows]


SiteKind = Literal["sitemap", "crawl", "feed"]

MAX_DEPTH = 3
MAX_PAGES = 200
MIN_VARIANTS = 20
_SHARE_OF_VARIANTS = 4  # one path with ever-changing parameters gets up to a quarter of the pages
_MAX_RECENT = 50_000


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A user's choices for a site import, stored with the job as plain data.

    For a crawl or a sitemap, they select the pages on `start`'s host with a path below `prefix`, by default the folder
    of `start`, up to `max_depth` links from the start. The scheme and a leading `www.` are ignored; other subdomains
    are other sites.
    """

    start: str
    kind: SiteKind
    prefix: str = ""
    max_depth: int = MAX_DEPTH
    max_pages: int = MAX_PAGES

    def admits(self, url: str, depth: int = 0) -> bool:
        """Return whether `url`, found `depth` links from the start, is a page to import."""
        return depth <= self.max_depth and self.contains(url) and not is_trap(url)

    def contains(self, url: str) -> bool:
        """Return whether `url` has the right host and path; redirects must stay within them too."""
        parts = split_url(url_key(url))
        site, root = site_and_folder(self.start, self.prefix)
        if parts.scheme not in ("http", "https") or site_of(parts.netloc) != site:
            return False
        return parts.path == root or parts.path.startswith(root if root.endswith("/") else root + "/")

    @property
    def folder(self) -> str:
        """The path prefix of all pages, normalised as in a page's key."""
        return site_and_folder(self.start, self.prefix)[1]


class Walk:
    """One job's walk through a site: it admits pages that are new and within the plan. Safe to share between threads.

    `known` are the pages that the job already has, to resume after a restart. The same pages in the same order give the
    same result.
    """

    def __init__(
        self, plan: SitePlan, fetcher: Fetcher, parser: Parser, robots: Robots, known: Iterable[FoundPage] = ()
    ) -> None:
        self._plan = plan
        self._fetcher = fetcher
        self._parser = parser
        self._robots = robots
        self._start = page_address(plan.start)
        self._seen: set[str] = set()
        self._recent: set[str] = set()
        self._variants: Counter[str] = Counter()
        self._lock = threading.Lock()
        for page in known:
            self._add(page_address(page.url))

    def begin(self, is_cancelled: Callable[[], bool] = lambda: False) -> list[FoundPage]:
        """Return the first pages of the plan, except those that are known.

        Raises IngestError if there are none at all: robots.txt errors for the start, "sitemap_missing",
        "sitemap_empty", "feed_missing", "feed_empty", and fetch errors.
        """
        plan, fetcher, parser = self._plan, self._fetcher, self._parser
        fetcher.check(plan.start)
        # For a sitemap, the start itself need not be allowed: only robots.txt must be available.
        self._robots.check(join_url(plan.start, "/robots.txt") if plan.kind == "sitemap" else plan.start)
        if plan.kind == "crawl":
            return self.admit([FoundPage(plan.start)])
        if plan.kind == "feed":
            pages = read_feed(fetcher, parser, plan.start)
        else:
            pages = sitemap_pages(fetcher, parser, self._robots, plan.start, plan.max_pages, self._is_new, is_cancelled)
        new_pages = self.admit(pages)
        if self._seen:
            return new_pages
        if plan.kind == "feed":
            raise IngestError("feed_empty", url=printable(plan.start))
        host = split_url(plan.start).hostname or ""
        raise IngestError("sitemap_empty", host=printable(host), prefix=printable(plan.folder))

    def can_follow(self, depth: int) -> bool:
        """Return whether links are followed from a page that is `depth` links away from the start."""
        return self._plan.kind == "crawl" and depth < self._plan.max_depth

    def contains(self, url: str, depth: int) -> bool:
        """Return whether `url`, the target of a redirect, belongs to the plan; the start may redirect elsewhere."""
        kind = self._plan.kind
        return kind == "feed" or (kind == "crawl" and depth == 0) or self._plan.contains(url)

    def expand(self, page: FoundPage, links: Iterable[str]) -> list[FoundPage]:
        """Return the new pages among the `links` of `page`, one link deeper; none unless the plan is a crawl."""
        if not self.can_follow(page.depth):
            return []
        return self.admit(FoundPage(link, page.depth + 1) for link in links)

    def admit(self, pages: Iterable[FoundPage]) -> list[FoundPage]:
        """Add and return the pages that are new, within the plan and allowed by robots.txt."""
        new = []
        with self._lock:
            for page in pages:
                if len(self._seen) >= self._plan.max_pages:
                    break
                if page.url in self._recent or page.depth > self._plan.max_depth:
                    continue
                if len(self._recent) >= _MAX_RECENT:
                    self._recent.clear()
                self._recent.add(page.url)  # to check it only once: a site's menu links are on each of its pages
                address = page_address(page.url)
                if self._is_new(address, page.depth):
                    self._add(address)
                    new.append(FoundPage(address, page.depth, page.modified))
        return new

    def _is_new(self, address: str, depth: int = 0) -> bool:
        """Return whether `address` is new, within the plan and allowed by robots.txt."""
        plan = self._plan
        if address in self._seen:
            return False
        if plan.kind == "feed":
            is_within = not is_trap(address)
        else:  # the start of a crawl may link to its pages without being one of them
            is_start = plan.kind == "crawl" and address == self._start and depth == 0
            is_within = is_start or plan.admits(address, depth)
        path, _, query = address.partition("?")
        allowance = max(MIN_VARIANTS, plan.max_pages // _SHARE_OF_VARIANTS)
        has_few_variants = plan.kind != "crawl" or not query or self._variants[path] < allowance
        return is_within and has_few_variants and self._robots.is_allowed(address)

    def _add(self, address: str) -> None:
        self._seen.add(address)
        path, _, query = address.partition("?")
        if query:
            self._variants[path] += 1
