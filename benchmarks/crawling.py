"""Speed of crawling a slow site with faults, compared with one request at a time in the same run.

    python -m benchmarks.crawling [--pages N] [--delay SECONDS] [--at-once N] [--deadline SECONDS] [--runs N]

The site is a real server on loopback: each response is delayed, 1% of the pages return status 500, 1% never respond, 1%
redirect in a loop, and some have several addresses. It is crawled from its first page through the fetcher, the rate
limiter and the parsing process that imports use. Each round reads it three ways: one request at a time, `--at-once` at
a time, and with the defaults.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from rag.errors import IngestError
from rag.ingest.discovery import SitePlan, Walk
from rag.reading.parser import Parser
from rag.web.connections import DELAY, LIMIT, RateLimiter
from rag.web.fetch import Fetcher, FetchResult
from rag.web.robots import Robots
from rag.web.urls import FoundPage
from tests.support.site_server import OUTCOME_BY_ERROR, SiteServer, merge_duplicates


@dataclass
class Crawl:
    """A crawled site: the outcome of each address, and the seconds it took."""

    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    texts: set[str] = field(default_factory=set)

    def record(self, page: FoundPage, answer: FetchResult | IngestError) -> None:
        """Record the outcome of a page: new text, known text, or an error."""
        if isinstance(answer, IngestError):
            self.outcomes[page.url] = OUTCOME_BY_ERROR.get(answer.code, answer.code)
            return
        text = hashlib.sha256(answer.body).hexdigest()
        self.outcomes[page.url] = "duplicate" if text in self.texts else "page"
        self.texts.add(text)


def crawl(site: SiteServer, parser: Parser, rate_limiter: RateLimiter, workers: int, deadline: float) -> Crawl:
    """Crawl `site` by following links, with up to `workers` pages in progress."""
    began = time.perf_counter()
    result = Crawl()
    plan = SitePlan(site.url("/"), "crawl", max_depth=len(site.expected), max_pages=10 * len(site.expected))
    with (
        Fetcher([site.pair], deadline=deadline, rate_limiter=rate_limiter) as fetcher,
        ThreadPoolExecutor(workers) as pool,
    ):
        walk = Walk(plan, fetcher, parser, Robots(fetcher))
        reading = {pool.submit(_read, fetcher, parser, page): page for page in walk.begin()}
        while reading:
            finished, _ = wait(reading, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=lambda one: reading[one].url):
                page = reading.pop(future)
                for link_page in walk.expand(page, _record(result, page, future)):
                    reading[pool.submit(_read, fetcher, parser, link_page)] = link_page
    result.seconds = time.perf_counter() - began
    return result


def _read(fetcher: Fetcher, parser: Parser, page: FoundPage) -> tuple[FetchResult, list[str]]:
    fetched = fetcher.fetch(page.url)
    links = parser.run("links", fetched.body, url=fetched.final_url, charset=fetched.charset)["links"]
    return fetched, links


def _record(result: Crawl, page: FoundPage, future: Future[tuple[FetchResult, list[str]]]) -> list[str]:
    """Record the outcome of a page and return its links."""
    try:
        fetched, links = future.result()
    except IngestError as error:
        result.record(page, error)
        return []
    result.record(page, fetched)
    return links


def report(site: SiteServer, result: Crawl) -> dict[str, Any]:
    """Return the site's counters, and whether each of its addresses is accounted for correctly.

    Which of a page's addresses comes first is random, so pages and duplicates count alike; the number of texts shows
    whether one was saved twice.
    """
    outcomes = {url.removeprefix(site.url("")): outcome for url, outcome in result.outcomes.items()}
    found, expected = merge_duplicates(outcomes), merge_duplicates(site.expected)
    wrong = [path for path, outcome in expected.items() if found.get(path, "missing") != outcome]
    repeated = [path for path, count in site.counts.items() if count > 1 and path in outcomes]
    return {
        "seconds": round(result.seconds, 2),
        "addresses": len(site.expected),
        "accounted for": len(site.expected) - len(wrong),
        "not on the site": len(outcomes.keys() - site.expected.keys()),
        "texts": len(result.texts),
        "texts of the site": len(site.paths("page")),
        "asked for by two addresses": len(repeated),
        "requests": len(site.requests),
        "connections": site.connections,
        "most open at once": site.max_open,
        **{f"as {outcome}": count for outcome, count in sorted(Counter(outcomes.values()).items())},
    }


def is_complete(row: dict[str, Any]) -> bool:
    """Return whether every address is accounted for and every text was saved once."""
    whole = row["accounted for"] == row["addresses"] and row["not on the site"] == 0
    return bool(whole and row["texts"] == row["texts of the site"] == row["as page"])


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    ways = {
        "one at a time": (1, 0.0),
        f"{options.at_once} at a time": (options.at_once, 0.0),
        "defaults": (LIMIT, DELAY),
    }
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    with Parser() as parser, SiteServer(options.pages, delay=options.delay) as site:
        parser.run("links", b"<p>ready</p>", url=site.url(), charset=None)
        for _ in range(options.runs):
            for name, (limit, pause) in ways.items():
                site.reset_counters()
                rows[name].append(
                    report(site, crawl(site, parser, RateLimiter(limit, pause), 2 * limit, options.deadline))
                )
    medians = {name: statistics.median(row["seconds"] for row in runs) for name, runs in rows.items()}
    for name, runs in rows.items():
        speed = {"times as fast as one at a time": round(medians["one at a time"] / medians[name], 1)}
        print(json.dumps({"way": name, **runs[-1], "seconds": round(medians[name], 2), **speed}))
    return 0 if all(is_complete(row) for runs in rows.values() for row in runs) else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300, metavar="N")
    parser.add_argument("--delay", type=float, default=0.15, metavar="SECONDS")
    parser.add_argument("--at-once", type=int, default=24, metavar="N", help="requests open to the host at once")
    parser.add_argument("--deadline", type=float, default=2.0, metavar="SECONDS", help="of a page that never answers")
    parser.add_argument("--runs", type=int, default=1, metavar="N")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
