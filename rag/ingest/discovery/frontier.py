"""The pages that an import of a site reads next, found by its sitemaps, its feed or the links of its pages."""

from __future__ import annotations

import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.web.fetch import Fetched, Fetcher
from rag.web.guard import shown
from rag.web.robots import Robots
from rag.web.site_scope import MAX_DEPTH, MAX_PAGES, FoundPage, SiteScope, is_trap, page_address, same_site
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


_MAX_BYTES = 5 * 1024 * 1024
_MAX_TRIED = 3


def read_feed(fetcher: Fetcher, parser: Parser, url: str) -> list[FoundPage]:
    """The pages of the feed at `url`, or of the first that works of those which the page at `url` names.

    Raises IngestError: what fetching raises, and "feed_missing".
    """
    fetched = fetcher.fetch(url, raw=_MAX_BYTES)
    if pages := _pages(parser, fetched):
        return pages
    named = parser.run("links", fetched.body, url=fetched.final_url, charset=fetched.charset)["feeds"]
    for address in named[:_MAX_TRIED]:
        try:
            if pages := _pages(parser, fetcher.fetch(address, raw=_MAX_BYTES)):
                return pages
        except IngestError as error:
            log.info("feed %s: %s", shown(address), error)
    raise IngestError("feed_missing", url=shown(url))


def _pages(parser: Parser, fetched: Fetched) -> list[FoundPage]:
    rows = parser.run("feed", fetched.body, url=fetched.final_url)["pages"]
    return [FoundPage(address, modified=modified) for address, modified in rows]


SiteKind = Literal["sitemap", "crawl", "feed"]

MIN_VARIANTS = 20
_SHARE_OF_VARIANTS = 4  # one path with ever other parameters gets a quarter of the pages at most
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class SitePlan:
    """What the person asked for; plain data that a job keeps."""

    start: str
    kind: SiteKind
    prefix: str = ""
    max_depth: int = MAX_DEPTH
    max_pages: int = MAX_PAGES

    @property
    def scope(self) -> SiteScope:
        return SiteScope(self.start, self.prefix, self.max_depth, self.max_pages)

    def as_options(self) -> dict[str, Any]:
        """The plan as JSON can carry it."""
        return {name: getattr(self, name) for name in ("start", "kind", "prefix", "max_depth", "max_pages")}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Self:
        """The plan out of `as_options`."""
        return cls(**options)


class Frontier:
    """Takes what pages link to and says which of it is new and within the plan. For one thread.

    `known` are the pages that the job has already: with them a job goes on after a restart where it was.
    The same pages in the same order give the same answer.
    """

    def __init__(self, plan: SitePlan, robots: Robots, known: Iterable[FoundPage] = ()) -> None:
        self.plan = plan
        self._scope = plan.scope
        self._start = page_address(plan.start)
        self.robots = robots
        self._seen: set[str] = set()
        self._judged: set[str] = set()
        self._variants: Counter[str] = Counter()
        for page in known:
            self._keep(page_address(page.url))

    @property
    def is_empty(self) -> bool:
        """Whether the job has no page yet."""
        return not self._seen

    @property
    def is_full(self) -> bool:
        """Whether the plan's number of pages is reached."""
        return len(self._seen) >= self.plan.max_pages

    def expand(self, page: FoundPage, links: Iterable[str]) -> list[FoundPage]:
        """The new pages among the `links` of `page`, one link deeper; none unless the plan is to crawl."""
        if self.plan.kind != "crawl":
            return []
        return self.admit(FoundPage(link, page.depth + 1) for link in links)

    def admit(self, pages: Iterable[FoundPage]) -> list[FoundPage]:
        """Those of `pages` that are new and within the plan, and that robots.txt lets programs read."""
        new = []
        for page in pages:
            if self.is_full:
                break
            if page.url in self._judged or page.depth > self.plan.max_depth:
                continue
            self._remember(page.url)
            address = page_address(page.url)
            if address not in self._seen and self._takes(address, page.depth):
                self._keep(address)
                new.append(FoundPage(address, page.depth, page.modified))
        return new

    def would_take(self, url: str) -> bool:
        """Whether `url` is new and within the plan, its depth aside."""
        address = page_address(url)
        return address not in self._seen and self._takes(address, 0)

    def holds(self, url: str) -> bool:
        """Whether a page that a redirect ended at still belongs to the plan."""
        return self.plan.kind == "feed" or self._scope.holds(url)

    def _takes(self, address: str, depth: int) -> bool:
        if self.plan.kind == "feed":
            within = not is_trap(address)
        else:  # the start of a crawl leads to its pages even if it is not one of them
            starts = self.plan.kind == "crawl" and address == self._start and depth == 0
            within = starts or self._scope.admits(address, depth)
        return within and self._has_room(address) and self.robots.allowed(address)

    def _has_room(self, address: str) -> bool:
        """Whether the path of `address` has not yet come with too many different queries."""
        path, _, query = address.partition("?")
        allowance = max(MIN_VARIANTS, self.plan.max_pages // _SHARE_OF_VARIANTS)
        return self.plan.kind != "crawl" or not query or self._variants[path] < allowance

    def _remember(self, url: str) -> None:
        """Judge an address once only: the links of a site's menu are on each of its pages."""
        if len(self._judged) >= _REMEMBERED:
            self._judged.clear()
        self._judged.add(url)

    def _keep(self, address: str) -> None:
        self._seen.add(address)
        path, _, query = address.partition("?")
        if query:
            self._variants[path] += 1


def begin(
    plan: SitePlan, fetcher: Fetcher, parser: Parser, frontier: Frontier, stopped: Callable[[], bool] = lambda: False
) -> list[FoundPage]:
    """The pages that a job of `plan` begins with, kept in `frontier`: those that it does not hold yet.

    Raises IngestError when it ends up without any: what robots.txt says of the start, "sitemap_missing",
    "sitemap_empty", "feed_missing", "feed_empty", and what fetching raises.
    """
    fetcher.check(plan.start)
    # The start of a site need not be a page that may be read: only that its rules can be had matters.
    frontier.robots.check(join_url(plan.start, "/robots.txt") if plan.kind == "sitemap" else plan.start)
    if plan.kind == "crawl":
        return frontier.admit([FoundPage(plan.start)])
    if plan.kind == "feed":
        pages = frontier.admit(read_feed(fetcher, parser, plan.start))
        if frontier.is_empty:
            raise IngestError("feed_empty", url=shown(plan.start))
        return pages
    takes = frontier.would_take
    found = sitemap_pages(fetcher, parser, frontier.robots, plan.start, plan.max_pages, admits=takes, stopped=stopped)
    pages = frontier.admit(found)
    if frontier.is_empty:
        host = split_url(plan.start).hostname or ""
        raise IngestError("sitemap_empty", host=shown(host), prefix=shown(plan.scope.folder))
    return pages
