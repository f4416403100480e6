"""Discovery of a site's pages through sitemaps, feeds and links, within robots.txt.

A site job is a plan and its pages; every page may add more:

    robots = Robots(fetcher)                                  # one for all jobs: it caches sites' rules
    plan = SitePlan(start, "crawl", prefix="/docs/", max_depth=3, max_pages=200)   # or "sitemap", "feed"
    frontier = Frontier(plan, robots, known=pages_of_the_job)  # known is empty for a new job
    pages = begin(plan, fetcher, parser, frontier)             # a new job's first pages; raises IngestError
    for page in pages:                                         # in order of discovery
        … read the page; links = parser.run("links", body, url=final_url, charset=charset)["links"]
        pages += frontier.expand(page, links)                  # only new ones, within the plan and robots.txt

The fetcher applies the rate limits. `frontier.contains(final_url)` is false for a redirect that left the plan.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.text import lazy_regex
from rag.web.fetch import Fetcher, FetchResult
from rag.web.guard import printable
from rag.web.media import MEGABYTE
from rag.web.robots import Robots
from rag.web.urls import (
    MAX_DEPTH,
    MAX_PAGES,
    FoundPage,
    SiteScope,
    is_trap,
    join_url,
    page_address,
    same_site,
    split_url,
    web_address,
)

log = logging.getLogger(__name__)


MAX_FILES = 50
MAX_NESTING = 3
_MAX_SITEMAP_BYTES = 10 * MEGABYTE
_USUAL_PATHS = ("/sitemap.xml", "/sitemap_index.xml")
_SITEMAP_PATH = lazy_regex(r"(?:sitemap[^/]*|\.xml(?:\.gz)?)$", re.IGNORECASE)

UrlFilter = Callable[[str], bool]


def sitemap_pages(
    fetcher: Fetcher,
    parser: Parser,
    robots: Robots,
    start: str,
    limit: int,
    *,
    admits: UrlFilter | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[FoundPage]:
    """Return up to `limit` pages that the site's sitemaps list and `admits` accepts, each once.

    `start` may be a sitemap itself; otherwise those listed in robots.txt are read, else those at the usual paths.
    Without `admits`, pages of the same site are accepted. Unreadable sitemaps are skipped. Raises
    IngestError("sitemap_missing") if there is none, and the errors of robots.txt.
    """
    accepts = admits or (lambda url: same_site(start, url))
    for urls in _list_candidates(robots, start):
        search = _SitemapSearch(fetcher, parser, start, limit, accepts, is_cancelled)
        search.read(urls)
        if search.files:
            return list(search.found.values())
    raise IngestError("sitemap_missing", url=printable(start))


@dataclass
class _SitemapSearch:
    """A search through a site's sitemaps; `files` counts those that were read."""

    fetcher: Fetcher
    parser: Parser
    start: str
    limit: int
    admits: UrlFilter
    is_cancelled: Callable[[], bool]
    found: dict[str, FoundPage] = field(default_factory=dict)
    files: int = 0

    def read(self, urls: list[str]) -> None:
        """Read the sitemaps at `urls` and those that their indexes list, breadth-first."""
        waiting = deque((url, 1) for url in urls)
        seen = set(urls)
        count = 0
        while waiting and count < MAX_FILES and len(self.found) < self.limit and not self.is_cancelled():
            url, nesting = waiting.popleft()
            count += 1
            for inner in self._read_one(url):
                if inner not in seen and nesting < MAX_NESTING:
                    seen.add(inner)
                    waiting.append((inner, nesting + 1))

    def _read_one(self, url: str) -> list[str]:
        """Add the pages of one sitemap; return the sitemaps that it lists on its own or the start's site."""
        try:
            fetched = self.fetcher.fetch(url, max_raw_bytes=_MAX_SITEMAP_BYTES, is_cancelled=self.is_cancelled)
            content = self.parser.run("sitemap", fetched.body, url=fetched.final_url)
        except IngestError as error:
            log.info("sitemap %s: %s", printable(url), error)
            return []
        if content["sitemaps"] or content["pages"]:
            self.files += 1
        for url, modified in content["pages"]:
            if len(self.found) >= self.limit:
                break
            address = page_address(url)
            if address not in self.found and self.admits(address):
                self.found[address] = FoundPage(address, modified=modified)
        return [inner for inner in content["sitemaps"] if same_site(inner, url) or same_site(inner, self.start)]


def _list_candidates(robots: Robots, start: str) -> list[list[str]]:
    """Return lists of URLs that may be sitemaps, to be tried in order until one list has a sitemap."""
    from_robots = [url for address in robots.sitemaps(start) if (url := web_address(start, address))][:MAX_FILES]
    usual = [join_url(start, url) for url in _USUAL_PATHS]
    direct = [[start]] if _SITEMAP_PATH.search(split_url(start).path) else []
    return [*direct, *([from_robots] if from_robots else []), usual]


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

MIN_VARIANTS = 20
_SHARE_OF_VARIANTS = 4  # one path with ever-changing parameters gets up to a quarter of the pages
_MAX_RECENT = 50_000


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A user's choices for a site import, stored with the job as plain data."""

    start: str
    kind: SiteKind
    prefix: str = ""
    max_depth: int = MAX_DEPTH
    max_pages: int = MAX_PAGES

    @property
    def scope(self) -> SiteScope:
        return SiteScope(self.start, self.prefix, self.max_depth, self.max_pages)


class Frontier:
    """A crawl frontier, which admits pages that are new and within the plan. Not thread-safe.

    `known` are the pages that the job already has, to resume after a restart. The same pages in the same order give the
    same result.
    """

    def __init__(self, plan: SitePlan, robots: Robots, known: Iterable[FoundPage] = ()) -> None:
        self.plan = plan
        self._scope = plan.scope
        self._start = page_address(plan.start)
        self.robots = robots
        self._seen: set[str] = set()
        self._recent: set[str] = set()
        self._variants: Counter[str] = Counter()
        for page in known:
            self._add(page_address(page.url))

    @property
    def is_empty(self) -> bool:
        """True if the job has no page yet."""
        return not self._seen

    @property
    def is_full(self) -> bool:
        """True if the plan's maximum number of pages is reached."""
        return len(self._seen) >= self.plan.max_pages

    def expand(self, page: FoundPage, links: Iterable[str]) -> list[FoundPage]:
        """Return the new pages among the `links` of `page`, one link deeper; none unless the plan is a crawl."""
        if self.plan.kind != "crawl":
            return []
        return self.admit(FoundPage(link, page.depth + 1) for link in links)

    def admit(self, pages: Iterable[FoundPage]) -> list[FoundPage]:
        """Add and return the pages that are new, within the plan and allowed by robots.txt."""
        new = []
        for page in pages:
            if self.is_full:
                break
            if page.url in self._recent or page.depth > self.plan.max_depth:
                continue
            self._remember(page.url)
            address = page_address(page.url)
            if address not in self._seen and self._admits(address, page.depth):
                self._add(address)
                new.append(FoundPage(address, page.depth, page.modified))
        return new

    def can_admit(self, url: str) -> bool:
        """Return whether `url` is new, within the plan at any depth, and allowed by robots.txt."""
        address = page_address(url)
        return address not in self._seen and self._admits(address, 0)

    def contains(self, url: str) -> bool:
        """Return whether `url`, the target of a redirect, still belongs to the plan."""
        return self.plan.kind == "feed" or self._scope.contains(url)

    def _admits(self, address: str, depth: int) -> bool:
        if self.plan.kind == "feed":
            is_within = not is_trap(address)
        else:  # the start of a crawl may link to its pages without being one of them
            is_start = self.plan.kind == "crawl" and address == self._start and depth == 0
            is_within = is_start or self._scope.admits(address, depth)
        return is_within and self._has_variant_budget(address) and self.robots.is_allowed(address)

    def _has_variant_budget(self, address: str) -> bool:
        """Return whether the path of `address` has few enough query variants so far."""
        path, _, query = address.partition("?")
        allowance = max(MIN_VARIANTS, self.plan.max_pages // _SHARE_OF_VARIANTS)
        return self.plan.kind != "crawl" or not query or self._variants[path] < allowance

    def _remember(self, url: str) -> None:
        """Remember a URL so that it is checked only once: a site's menu links are on each of its pages."""
        if len(self._recent) >= _MAX_RECENT:
            self._recent.clear()
        self._recent.add(url)

    def _add(self, address: str) -> None:
        self._seen.add(address)
        path, _, query = address.partition("?")
        if query:
            self._variants[path] += 1


def begin(
    plan: SitePlan,
    fetcher: Fetcher,
    parser: Parser,
    frontier: Frontier,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[FoundPage]:
    """Add the first pages of a plan to `frontier`; return those that are new.

    Raises IngestError if there are none at all: robots.txt errors for the start, "sitemap_missing", "sitemap_empty",
    "feed_missing", "feed_empty", and fetch errors.
    """
    fetcher.check(plan.start)
    # For a sitemap, the start itself need not be allowed: only robots.txt must be available.
    frontier.robots.check(join_url(plan.start, "/robots.txt") if plan.kind == "sitemap" else plan.start)
    if plan.kind == "crawl":
        return frontier.admit([FoundPage(plan.start)])
    if plan.kind == "feed":
        pages = frontier.admit(read_feed(fetcher, parser, plan.start))
        if frontier.is_empty:
            raise IngestError("feed_empty", url=printable(plan.start))
        return pages
    admits = frontier.can_admit
    pages = sitemap_pages(
        fetcher, parser, frontier.robots, plan.start, plan.max_pages, admits=admits, is_cancelled=is_cancelled
    )
    pages = frontier.admit(pages)
    if frontier.is_empty:
        host = split_url(plan.start).hostname or ""
        raise IngestError("sitemap_empty", host=printable(host), prefix=printable(plan.scope.folder))
    return pages


class Sites:
    """A factory of walks, which share the fetcher, the parser and the robots.txt rules."""

    def __init__(self, fetcher: Fetcher, parser: Parser) -> None:
        self._fetcher = fetcher
        self._parser = parser
        self._robots = Robots(fetcher)

    def walk(self, plan: SitePlan, known: Iterable[FoundPage]) -> Walk:
        """Return a walk for `plan`; `known` are the pages already found, if it resumes."""
        return Walk(plan, Frontier(plan, self._robots, known), self._fetcher, self._parser)


class Walk:
    """One job's walk through a site; safe to share between threads. Methods raise IngestError."""

    def __init__(self, plan: SitePlan, frontier: Frontier, fetcher: Fetcher, parser: Parser) -> None:
        self._plan = plan
        self._frontier = frontier
        self._fetcher = fetcher
        self._parser = parser
        self._lock = threading.Lock()

    def begin(self, is_cancelled: Callable[[], bool]) -> list[FoundPage]:
        """Return the first pages, except those that an earlier call returned."""
        with self._lock:
            return begin(self._plan, self._fetcher, self._parser, self._frontier, is_cancelled)

    def can_follow(self, depth: int) -> bool:
        """Return whether links are followed from a page that is `depth` links away from the start."""
        return self._plan.kind == "crawl" and depth < self._plan.max_depth

    def contains(self, final_url: str, depth: int) -> bool:
        """Return whether a page at the end of redirects belongs to the walk; the start may redirect elsewhere."""
        is_start = depth == 0 and self._plan.kind == "crawl"
        return is_start or self._frontier.contains(final_url)

    def expand(self, url: str, depth: int, links: Iterable[str]) -> list[FoundPage]:
        """Return the new pages that the page at `url` links to."""
        with self._lock:
            return self._frontier.expand(FoundPage(url, depth), links)
