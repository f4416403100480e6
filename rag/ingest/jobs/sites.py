"""The sites that jobs walk through: what they begin with, and what their pages lead to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from rag.ingest.discovery import FoundPage, Frontier, Robots, SitePlan, begin
from rag.reading.parser import Parser
from rag.web.fetch import Fetcher


class Sites:
    """What all walks share: who fetches and parses, and what the sites' robots.txt say."""

    def __init__(self, fetcher: Fetcher, parser: Parser) -> None:
        self._fetcher = fetcher
        self._parser = parser
        self._robots = Robots(fetcher)

    def walk(self, plan: SitePlan, known: Iterable[FoundPage]) -> Walk:
        """A walk by `plan`, or the rest of one that has found the `known` pages."""
        return Walk(plan, Frontier(plan, self._robots, known), self._fetcher, self._parser)


class Walk:
    """One job's way through a site; safe to share between threads. Methods raise IngestError."""

    def __init__(self, plan: SitePlan, frontier: Frontier, fetcher: Fetcher, parser: Parser) -> None:
        self._plan = plan
        self._frontier = frontier
        self._fetcher = fetcher
        self._parser = parser
        self._lock = threading.Lock()

    def begin(self, stopped: Callable[[], bool]) -> list[FoundPage]:
        """The pages to begin with. What an earlier call found is not found again."""
        with self._lock:
            return begin(self._plan, self._fetcher, self._parser, self._frontier, stopped)

    def follows(self, depth: int) -> bool:
        """Whether the links of a page that is `depth` links away from the start are followed."""
        return self._plan.kind == "crawl" and depth < self._plan.max_depth

    def holds(self, final_url: str, depth: int) -> bool:
        """Whether the page that redirects ended at belongs to the walk; where it starts may lead elsewhere."""
        starts = depth == 0 and self._plan.kind == "crawl"
        return starts or self._frontier.holds(final_url)

    def expand(self, url: str, depth: int, links: Iterable[str]) -> list[FoundPage]:
        """The pages that the one at `url` leads to and no other did before."""
        with self._lock:
            return self._frontier.expand(FoundPage(url, depth), links)
