"""Jobs over a separate database, closed at the end, and a site for them to crawl."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.errors import RagError
from rag.ingest.chunking import get_chunker
from rag.ingest.discovery import Walk
from rag.ingest.jobs.service import Jobs, JobView
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source, record_sources
from rag.models.embedding import SparseEncoder
from rag.reading.parser import Parser
from rag.store.qdrant.library import Library
from rag.store.sql.database import Database
from rag.web.connections import RateLimiter
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from tests.support.hashed_model import HashedModel
from tests.support.page_server import PageServer
from tests.support.site_server import SiteServer

MakeJobs = Callable[..., Jobs]


class Stuck:
    """An ingestor factory that blocks until it is released."""

    def __init__(self, ingestor: Ingestor) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._ingestor = ingestor

    def __call__(self, library: str) -> Ingestor:
        self.asked.set()
        self.go.wait(60)
        return self._ingestor


def failing_once(ingestor: Ingestor, error: RagError) -> Callable[[str], Ingestor]:
    """Return an ingestor factory that raises the error the first time."""
    errors = iter([error])

    def open_ingestor(library: str) -> Ingestor:
        for failure in errors:
            raise failure
        return ingestor

    return open_ingestor


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "app.sqlite3")
    yield database
    database.close()


@pytest.fixture
def fetcher(site: SiteServer, page_server: PageServer) -> Iterator[Fetcher]:
    with Fetcher([site.pair, page_server.pair], deadline=1.0, rate_limiter=RateLimiter(8, 0.0)) as one:
        yield one


@pytest.fixture
def ingestor(small_library: Library, model: HashedModel, parser: Parser, fetcher: Fetcher) -> Ingestor:
    return Ingestor(small_library, model, SparseEncoder(), fetcher, parser, get_chunker())


@pytest.fixture
def make_jobs(database: Database, ingestor: Ingestor, fetcher: Fetcher, parser: Parser) -> Iterator[MakeJobs]:
    """Yield a function that creates Jobs over the same database; each call simulates a restart of the app."""
    made: list[Jobs] = []
    robots = Robots(fetcher)

    def make(open_ingestor: Callable[[str], Ingestor] = lambda library: ingestor, **options: Any) -> Jobs:
        jobs = Jobs(database, open_ingestor, lambda plan, known: Walk(plan, fetcher, parser, robots, known), **options)
        made.append(jobs)
        return jobs

    yield make
    for jobs in made:
        jobs.close()


@pytest.fixture
def jobs(make_jobs: MakeJobs) -> Jobs:
    return make_jobs()


@pytest.fixture(autouse=True)
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry transient failures almost immediately."""
    monkeypatch.setattr("rag.ingest.sources._DELAYS", (0.01, 0.02))
    monkeypatch.setattr("rag.ingest.sources.MAX_DELAY", 0.05)


def records(count: int, text: str = "Text of page {n}, which no other page has: {n} {n} {n}.") -> list[Source]:
    rows = [{"url": f"https://a.example/{n}", "title": f"P{n}", "text": text.format(n=n)} for n in range(count)]
    return list(record_sources(map(json.dumps, rows), "pages.jsonl"))


def wait_for_job(
    jobs: Jobs, job_id: str, until: Callable[[JobView], bool] = lambda job: job.state != "running"
) -> JobView:
    """Wait until the job has ended, or `until` is true of it; return it."""
    end = time.monotonic() + 60
    while not until(job := jobs.job(job_id)):
        assert time.monotonic() < end, (job, job.items)
        time.sleep(0.01)
    return job


def statuses(job: JobView) -> list[str]:
    return [item.result.status if item.result else "" for item in job.items]


def reasons(job: JobView) -> list[str]:
    return [item.result.notice.code if item.result else "" for item in job.items]
