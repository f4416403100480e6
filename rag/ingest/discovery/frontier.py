"""What an import of a site reads next: the plan of the person, and the pages found so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from rag.errors import IngestError
from rag.ingest.discovery.feeds import read_feed
from rag.ingest.discovery.sitemaps import sitemap_pages
from rag.reading.parser import Parser
from rag.web.fetch import Fetcher
from rag.web.guard import shown
from rag.web.robots import Robots
from rag.web.site_scope import MAX_DEPTH, MAX_PAGES, FoundPage, SiteScope, is_trap, page_address
from rag.web.url_key import join_url, split_url

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
