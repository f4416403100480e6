"""Sites that jobs walk through: their first pages, and the pages that these link to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from rag.ingest.discovery import FoundPage, Frontier, Robots, SitePlan, begin
from rag.reading.parser import Parser
from rag.web.fetch import Fetcher


class Sites:
    """The fetcher, the parser and the robots.txt rules that all walks share."""

    def __init__(self, fetcher: Fetcher, parser: Parser) -> None:
        self._fetcher = fetcher
        self._parser = parser
        self._robots = Robots(fetcher)

    def walk(self, plan: SitePlan, known: Iterable[FoundPage]) -> Walk:
        """Return a walk by `plan`, or the rest of one that has found the `known` pages."""
        return Walk(plan, Frontier(plan, self._robots, known), self._fetcher, self._parser)


class Walk:
    """One job's walk through a site; safe to share between threads. Methods raise IngestError."""

    def __init__(self, plan: SitePlan, frontier: Frontier, fetcher: Fetcher, parser: Parser) -> None:
        self._plan = plan
        self._frontier = frontier
        self._fetcher = fetcher
        self._parser = parser
        self._lock = threading.Lock()

    def begin(self, stopped: Callable[[], bool]) -> list[FoundPage]:
        """Return the first pages, without those that an earlier call returned."""
        with self._lock:
            return begin(self._plan, self._fetcher, self._parser, self._frontier, stopped)

    def can_follow(self, depth: int) -> bool:
        """True if links are followed from a page that is `depth` links away from the start."""
        return self._plan.kind == "crawl" and depth < self._plan.max_depth

    def contains(self, final_url: str, depth: int) -> bool:
        """True if a page at the end of redirects belongs to the walk; the start may redirect elsewhere."""
        is_start = depth == 0 and self._plan.kind == "crawl"
        return is_start or self._frontier.contains(final_url)

    def expand(self, url: str, depth: int, links: Iterable[str]) -> list[FoundPage]:
        """Return the pages that the one at `url` links to and no other did before."""
        with self._lock:
            return self._frontier.expand(FoundPage(url, depth), links)
