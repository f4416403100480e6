"""The crawling benchmark on a small site: its figures come from what the site saw, and can be wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks import crawling
from rag.errors import FetchError
from rag.reading.parser import Parser
from rag.types import because
from rag.web.connections import RateLimiter
from rag.web.fetch import FetchResult
from rag.web.urls import FoundPage
from tests.support.site_server import OUTCOME_BY_ERROR, SiteServer


@pytest.fixture
def site() -> Iterator[SiteServer]:
    with SiteServer(20, delay=0.02, share=0.05) as one:
        yield one


@pytest.mark.parametrize("limit", [1, 2, 8])
def test_every_page_is_read_once_within_the_limit_of_requests(site: SiteServer, parser: Parser, limit: int) -> None:
    done = crawling.crawl(site, parser, RateLimiter(limit, 0.0), 2 * limit, deadline=1.0)
    row = crawling.report(site, done)
    assert crawling.is_complete(row), row
    assert min(2, limit) <= site.max_open <= limit
    assert (row["as error"], row["as timeout"], row["as loop"], row["as duplicate"]) == (1, 1, 1, 3)
    assert row["connections"] <= limit + 1, "but for the one that timed out, connections are kept"


def test_missing_repeated_and_unexpected_addresses_are_detected(site: SiteServer) -> None:
    done = crawling.Crawl()
    codes = {outcome: code for code, outcome in OUTCOME_BY_ERROR.items()}
    for path, outcome in site.expected.items():
        body = site.answer(path).body
        if outcome in codes:
            done.record(FoundPage(site.url(path)), error(codes[outcome]))
        elif outcome == "page":
            done.record(FoundPage(site.url(path)), fetched(site.url(path), body))
        else:
            done.outcomes[site.url(path)] = "duplicate"
    assert crawling.is_complete(crawling.report(site, done))
    for change in (
        {site.url(site.paths("page")[3]): "timeout"},
        {site.url("/elsewhere"): "page"},
        {site.url(site.paths("duplicate")[0]): "page"},
    ):
        other = crawling.Crawl({**done.outcomes, **change}, 0.0, done.texts)
        assert not crawling.is_complete(crawling.report(site, other))
    fewer = {url: outcome for url, outcome in done.outcomes.items() if not url.endswith("/")}
    assert not crawling.is_complete(crawling.report(site, crawling.Crawl(fewer, 0.0, done.texts)))


def error(code: str) -> FetchError:
    return FetchError(code, url="", status=500, seconds=1, **because("server_fault", status=500))


def fetched(url: str, body: bytes) -> FetchResult:
    return FetchResult(url, 200, "text/html", None, body)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--pages", "20", "--delay", "0.01", "--at-once", "6", "--deadline", "1.0"]
    assert crawling.main(options) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["way"] for row in rows] == ["one at a time", "6 at a time", "defaults"]
    assert rows[0]["most open at once"] == 1
    assert rows[2]["most open at once"] <= 2
