"""An import in a separate process that can be killed, and the data to compare afterwards.

    with SiteServer(40) as site:
        with ImportProcess(folder, site) as process:
            process.kill_after(0.3)
        with ImportProcess(folder, site) as process:
            process.wait()
        assert stored(folder) == stored(other_folder)

The process crawls the site once, or resumes the crawl that it finds in the folder. It sends "begun", "working" once it
has processed a page, and "done".
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from qdrant_client import models

from rag.config import load_settings
from rag.store.qdrant.client import connect
from rag.store.qdrant.library import open_library
from rag.store.qdrant.records import walk
from rag.store.sql.database import Database
from rag.store.sql.job_table import JobItem
from tests.support.forked_process import start_process
from tests.support.hashed_model import HashedModel
from tests.support.site_server import OUTCOME_BY_ERROR, SiteServer, merge_duplicates

_DEADLINE = 1.0


class ImportProcess:
    """An import process that lives until the end of the `with` block."""

    def __init__(
        self, folder: Path, site: SiteServer, url: str = "", database: Path | str = "", lease: float = 30.0
    ) -> None:
        """Start it; `url` is a server for the library, `place` a database for the jobs, by default both in `folder`.

        `lease` is the number of seconds after which others may take its jobs.
        """
        database = database or folder / "app.sqlite3"
        self._process, self._receiver = start_process(
            _run, folder, *site.pair, 10 * len(site.expected), url, database, lease
        )
        self._expect("begun")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def kill_after(self, seconds: float, *, starting: bool = False) -> bool:
        """Kill it (SIGKILL) so long after its first page, or after it began to open the store; False if it was done."""
        if not starting:
            self._expect("working", "done")
        self._process.join(seconds)
        if self._process.exitcode is not None:
            return False
        self._process.kill()
        return True

    def suspend(self) -> None:
        """Suspend it (SIGSTOP) until `resume`."""
        if self._process.pid is not None and self._process.exitcode is None:
            os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self._process.pid is not None and self._process.exitcode is None:
            os.kill(self._process.pid, signal.SIGCONT)

    def wait(self) -> float:
        """Wait until it is done; return the seconds since its first page."""
        self.wait_for_first_page()
        began = time.perf_counter()
        self.wait_until_done()
        return time.perf_counter() - began

    def wait_for_first_page(self) -> None:
        """Wait until it has processed its first page."""
        self._expect("working", "done")

    def wait_until_done(self) -> None:
        """Wait until it is done, after `wait_for_first_page`."""
        self._expect("done", "")
        self._process.join(60)
        assert self._process.exitcode == 0

    def _expect(self, *words: str) -> None:
        word = ""
        with suppress(EOFError):
            word = self._receiver.recv()
        assert word in words, word


@dataclass(frozen=True)
class Stored:
    """The result of an import, except which of a page's addresses came first, which is random.

    `pages` has title, text and version by the text's hash, `chunks` the text, span and section of each in order.
    `orphaned_chunks` counts chunks that no page owns, that are inactive, or that are stored twice.
    """

    pages: dict[str, tuple[str, str, int]]
    chunks: dict[str, list[tuple[str, int, int, tuple[str, ...]]]]
    page_records: int
    chunk_records: int
    orphaned_chunks: int


def stored(folder: Path, url: str = "") -> Stored:
    """Open the library in `folder`, or at `url`, as the app does after a restart, and read all of it."""
    model = HashedModel()
    with closing(connect(load_settings(None, rag_data_dir=folder, qdrant_url=url))) as client:
        library = open_library(client, "main", model.name, model.dimension)
        pages = [page for one in library.pages() if (page := library.page(one.url_hash)) is not None]
        chunks = {page.text_hash: library.chunks(page.url_hash) for page in pages}
        records = [
            (point.payload or {})["metadata"] for point in walk(client, library.chunks_collection, models.Filter())
        ]
        owners = {page.url_hash: page.generation for page in pages}
        places = Counter((one["url_hash"], one["index"]) for one in records)
        return Stored(
            {page.text_hash: (page.title, page.text, page.version) for page in pages},
            {key: [(one.text, one.start, one.end, one.section) for one in found] for key, found in chunks.items()},
            len(pages),
            len(records),
            sum(owners.get(one["url_hash"]) != one["generation"] or not one["active"] for one in records)
            + sum(count - 1 for count in places.values()),
        )


def items(folder: Path, location: Path | str = "") -> list[JobItem]:
    """Return the items of the only job in `folder`, or at `place`."""
    with closing(Database(location or folder / "app.sqlite3")) as database:
        jobs = database.jobs.jobs("main")
        return database.items.items(jobs[0].id) if jobs else []


def outcomes_by_path(found: list[JobItem], site: SiteServer) -> dict[str, str]:
    """Return the outcome of each path as in `expected_outcomes`: "read" for pages and their duplicates."""
    root = site.url("/").removesuffix("/")
    return {item.url.removeprefix(root): _outcome(item) for item in found}


def expected_outcomes(site: SiteServer) -> dict[str, str]:
    return merge_duplicates(site.expected)


def _outcome(item: JobItem) -> str:
    if item.result is None:
        return "open"
    is_read = item.result.status in ("added", "duplicate")
    return "read" if is_read else OUTCOME_BY_ERROR.get(item.result.notice.code, item.result.notice.code)


def kill_named(name: str) -> list[int]:
    """Kill (SIGKILL) one process with `name` in its command line; return its id, or an empty list."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if name in words and int(place.name) != os.getpid():
            os.kill(int(place.name), signal.SIGKILL)
            return [int(place.name)]
    return []


def digest(one: Stored) -> str:
    """Return a short digest of the stored data, equal for equal libraries."""
    return hashlib.sha256(repr((sorted(one.pages.items()), sorted(one.chunks.items()))).encode()).hexdigest()[:16]


def _run(
    folder: Path, host: str, port: int, pages: int, url: str, location: Path | str, lease: float, sender: Connection
) -> None:
    from rag.ingest import sources
    from rag.ingest.chunking import get_chunker
    from rag.ingest.discovery import Walk
    from rag.ingest.jobs import worker
    from rag.ingest.jobs.service import Jobs
    from rag.ingest.pipeline import Ingestor
    from rag.models.embedding import SparseEncoder
    from rag.reading.parser import Parser
    from rag.store.sql import job_table
    from rag.web.connections import RateLimiter
    from rag.web.fetch import Fetcher
    from rag.web.robots import Robots

    sources._DELAYS = (0.05, 0.1)
    job_table.LEASE, worker.RENEW_SECONDS = lease, lease / 6  # type: ignore[misc]
    sender.send("begun")
    model, database = HashedModel(), Database(location)
    client = connect(load_settings(None, rag_data_dir=folder, qdrant_url=url))
    fetcher, parser = Fetcher([(host, port)], deadline=_DEADLINE, rate_limiter=RateLimiter(4, 0.0)), Parser()
    robots = Robots(fetcher)

    def open_ingestor(library: str) -> Ingestor:
        opened = open_library(client, library, model.name, model.dimension)
        return Ingestor(opened, model, SparseEncoder(), fetcher, parser, get_chunker())

    jobs = Jobs(database, open_ingestor, lambda plan, known: Walk(plan, fetcher, parser, robots, known))
    if not database.jobs.jobs("main"):
        options: dict[str, Any] = {"max_depth": 100, "max_pages": pages}
        jobs.submit_site(f"http://{host}:{port}/", "crawl", library="main", **options)
    before = sum(job.done for job in database.jobs.jobs("main"))
    jobs.start()
    is_working = False
    while any(job.state == "running" for job in database.jobs.jobs("main")):
        if not is_working and sum(job.done for job in database.jobs.jobs("main")) > before:
            is_working = True
            sender.send("working")
        threading.Event().wait(0.01)
    jobs.close()
    parser.close()
    client.close()
    database.close()
    sender.send("done")


def timed_run(folder: Path, site: SiteServer) -> float:
    """Import without a kill; return the seconds from the first page to the last."""
    with ImportProcess(folder, site) as process:
        return process.wait()
