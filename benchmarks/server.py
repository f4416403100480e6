"""Robustness of a library on a Qdrant server, and its cost compared with the embedded engine.

    python -m benchmarks.server [--url URL] [--only WORD …] [--json]

Without a URL it starts the tests' stand-in for a server (tests/support/qdrant_server.py), which has the semantics of a
real one but not its speed. On a server at URL it creates libraries whose names begin with "bench-", deletes them at the
end, and skips what requires killing the server. The embedded engine alternates on the same pages. Exits with 1 if a
goal is missed. Takes several minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from qdrant_client import QdrantClient

from benchmarks import machine, report
from benchmarks import server_races as races
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.searching import WARM_UP, searches_of, time_searches
from benchmarks.synthetic import CHUNKS_A_PAGE, DIMENSION, MODEL, World, fill
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.discovery import Walk
from rag.ingest.jobs.service import Jobs
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import record_sources
from rag.models.embedding import SparseEncoder, load_embedding_model
from rag.reading.parser import Parser
from rag.store.qdrant.client import Server
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import LIBRARIES, library_id
from rag.store.sql.database import Database
from rag.store.values import Filters
from rag.web.fetch import Fetcher
from rag.web.robots import Robots
from tests.support.hashed_model import HashedModel
from tests.support.import_process import ImportProcess, expected_outcomes, items, outcomes_by_path, stored, timed_run
from tests.support.qdrant_server import QdrantServer, count_sequential
from tests.support.site_server import SiteServer

OUTAGE = 20.0  # seconds
INDEXING = 20.0
IMPORTED, COMMITTED, GROUP, QUESTIONS = 300, 200, 20, 60
SIZES = (5_000, 10_000)
SITE_PAGES, KILLS = 150, 15
IMPORTED_SET, RUNS = "xquad-en", 5
HEAD = ("measured", "before", "goal", "now", "")


@dataclass(frozen=True, slots=True)
class Row:
    """A figure; `before` is the value before there was a goal; `met` is None without a goal."""

    what: str
    before: str
    goal: str
    now: str
    met: bool | None = None


@dataclass
class Setup:
    """The measured server, `stand_in` if this run may kill it, and a folder for other data."""

    url: str
    folder: Path
    stand_in: QdrantServer | None = None
    clients: list[QdrantClient] = field(default_factory=list)
    prefix: str = field(default_factory=lambda: f"bench-{uuid.uuid4().hex[:8]}")

    def connect(self) -> Server:
        """Return another client, as a separate process would have one; closed at the end."""
        client = Server(load_settings(qdrant_url=self.url))
        self.clients.append(client)
        return client

    def embedded(self, name: str) -> EdgeClient:
        client = EdgeClient(self.folder / name)
        self.clients.append(client)
        return client

    def library(self, name: str, client: QdrantClient | None = None, dimension: int = DIMENSION) -> Library:
        """Open a library of this run, by default on the server."""
        return open_library(client or self.connect(), f"{self.prefix}-{name}", MODEL, dimension)

    def clear(self) -> None:
        """Delete this run's libraries."""
        with closing(Server(load_settings(qdrant_url=self.url))) as client:
            names = {one.name for one in client.get_collections().collections}
            own_names = sorted(name for name in names if name.startswith(f"pagelight.{self.prefix}-"))
            for name in own_names:
                client.delete_collection(name)
            if LIBRARIES in names:
                libraries = {name.split(".")[1] for name in own_names}
                client.delete(LIBRARIES, [library_id(name) for name in libraries])


@contextmanager
def count_calls(client: QdrantClient) -> Iterator[list[tuple[str, float, float]]]:
    """Collect the client's calls during the block: method and path, start and end (seconds, time.monotonic)."""
    calls: list[tuple[str, float, float]] = []
    is_active = True

    def count(request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]) -> httpx.Response:
        began = time.monotonic()
        answer = send(request)
        if is_active:
            calls.append((f"{request.method} {request.url.path}", began, time.monotonic()))
        return answer

    remote: Any = client._client
    remote.openapi_client.client.add_middleware(count)
    yield calls
    is_active = False


def race(setup: Setup) -> Iterator[Row]:
    """Measure processes that commit, create, open and restore at the same time."""
    for processes, before in ((2, "125 to 147 broken, 228 to 274 failed"), (3, "–")):
        library = open_library(setup.connect(), f"{setup.prefix}-races-{processes}", races.MODEL, races.DIMENSION)
        broken, failed = races.race_commits(setup.url, library, processes)
        what = f"{processes} processes commit different texts of a page, {races.PAGES} pages"
        yield Row(what, before, "0 broken, 0 failed", f"{broken} broken, {failed} failed", not broken + failed)
    total = races.OPENERS * races.LIBRARIES
    started = total - len(races.race_openings(setup.url, f"{setup.prefix}-opened"))
    what = f"{races.OPENERS} processes open a new library × {races.LIBRARIES}"
    yield Row(what, "8 to 12 of 24 start", "all", f"{started} of {total}", started == total)

    def reopen(name: str) -> Library:
        return open_library(setup.connect(), name, races.MODEL, races.DIMENSION)

    faults = list(races.race_restores(setup.url, reopen(f"{setup.prefix}-kept"), reopen, setup.folder))
    now = "; ".join(faults) or f"{races.LIBRARIES} of {races.LIBRARIES}"
    yield Row("restored in one process, opened in another", "5 of 10 pages", "whole, or an error", now, not faults)


def outage(setup: Setup) -> Iterator[Row]:
    """Measure an import of plain pages during which the server is down for OUTAGE seconds."""
    client, model = setup.connect(), HashedModel()
    library = setup.library("import", client, model.dimension)
    with ExitStack() as stack:
        database = stack.enter_context(closing(Database(setup.folder / "app.sqlite3")))
        fetcher, parser = stack.enter_context(Fetcher()), stack.enter_context(Parser())
        ingestor = Ingestor(library, model, SparseEncoder(), fetcher, parser, get_chunker())
        robots = Robots(fetcher)
        jobs = Jobs(database, lambda _: ingestor, lambda plan, known: Walk(plan, fetcher, parser, robots, known))
        stack.callback(jobs.close)
        with count_calls(client) as calls:
            job_id = jobs.submit(_pages(0), library=library.name)
            _wait(lambda: jobs.job(job_id).state != "running")
        page = len(calls) / IMPORTED
        yield Row("calls per page in an import", "8", "≤ 1.5", f"{page:.2f}", page <= 1.5)
        if setup.stand_in is None:
            return
        job_id = jobs.submit(_pages(IMPORTED), library=library.name)
        _wait(lambda: jobs.job(job_id).done >= IMPORTED // 10)
        setup.stand_in.kill()
        time.sleep(OUTAGE)
        setup.stand_in.start()
        _wait(lambda: jobs.job(job_id).state != "running")
        counts = jobs.job(job_id).counts
    missing = IMPORTED - counts.get("added", 0)
    what = f"server down for {OUTAGE:.0f} s in an import of {IMPORTED}"
    yield Row(what, "244 failed", "0 failed", f"{missing} failed", missing == 0)


def _pages(first: int) -> list[Any]:
    rows = range(first, first + IMPORTED)
    records = ({"url": f"https://a.example/{n}", "title": f"P{n}", "text": _text(n)} for n in rows)
    return list(record_sources(map(json.dumps, records), "pages.jsonl"))


def _text(number: int) -> str:
    return " ".join(f"Sentence {part} of page {number}, which says {number * part}." for part in range(40))


def _wait(done: Callable[[], bool], seconds: float = 600.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise TimeoutError("the import did not end")
        time.sleep(0.05)


def kills(setup: Setup) -> Iterator[Row]:
    """Import a site by processes that are killed one after another; the server of the last one is killed repeatedly."""
    if setup.stand_in is None:
        return
    chance = random.Random(1)
    with SiteServer(SITE_PAGES, delay=0.15) as site:
        usual = timed_run(setup.folder / "whole", site)
        moments = [chance.uniform(0.0, 1.6 * usual / KILLS) for _ in range(KILLS)]
        for number, moment in enumerate(moments):
            with ImportProcess(setup.folder / "killed", site, setup.url) as process:
                process.kill_after(moment, starting=number % 5 == 4)
        with ImportProcess(setup.folder / "killed", site, setup.url) as process:
            process.wait_for_first_page()
            for moment in moments:
                time.sleep(moment)
                setup.stand_in.kill()
                setup.stand_in.start()
            process.wait_until_done()
        with patch(
            "rag.store.qdrant.library.is_shared", lambda _: False
        ):  # otherwise interrupted writes stay for ten minutes
            open_library(setup.connect(), "main", HashedModel.name, HashedModel.dimension).sweep()
        whole, killed = stored(setup.folder / "whole"), stored(setup.folder / "killed", setup.url)
        rows = items(setup.folder / "killed")
        outcomes = outcomes_by_path(rows, site)
    errors = (
        sum(outcomes.get(path) != outcome for path, outcome in expected_outcomes(site).items())
        + len(rows)
        - len(outcomes)
    )
    orphans = killed.orphaned_chunks
    now = f"{killed.page_records} of {whole.page_records} pages, {orphans} orphaned passages, {errors} wrong rows"
    is_met = killed == whole and not orphans and not errors
    yield Row(f"{KILLS} kills of the app and {KILLS} of the server in an import", "–", "as without", now, is_met)


def searching(setup: Setup) -> Iterator[Row]:
    """Measure the app's search with a filter and MMR, on the embedded engine and the server, with the same chunks."""
    for size, before in zip(SIZES, ("136 ms", "9.9 ms"), strict=True):
        pages, world = size // CHUNKS_A_PAGE, World()
        questions = [world.question(number, pages) for number in range(WARM_UP + QUESTIONS)]
        libraries = {
            "embedded": setup.library("search", setup.embedded(f"search-{size}")),
            "server": setup.library(f"search-{size}"),
        }
        ways = {}
        for name, library in libraries.items():
            fill(library, world, 0, pages)
            _await_index(library, size)
            ways[name] = searches_of(library, questions)["mmr"]
        timings = time_searches(ways, questions)
        server_ms, embedded_ms = timings["server_found"]["p50"], timings["embedded_found"]["p50"]
        now = f"{server_ms:.1f} ms ({embedded_ms:.1f} embedded)"
        yield Row(f"one search of {size:,} chunks, p50", before, "≤ 2 × embedded", now, server_ms <= 2 * embedded_ms)
        if size == SIZES[0]:
            yield from _calls(libraries["server"], ways["server"], questions[0][0])


def _await_index(library: Library, size: int) -> None:
    """Wait until the engine has indexed `size` chunks, if it builds an index at all."""
    until = time.monotonic() + INDEXING
    while time.monotonic() < until:
        if (library.client.get_collection(library.chunks_collection).indexed_vectors_count or 0) >= size:
            return
        time.sleep(0.2)


def _calls(library: Library, search: Callable[..., object], question: str) -> Iterator[Row]:
    with count_calls(library.client) as calls:
        search(question, Filters(sites=("site1.example",)))
    yield Row("calls per search", "5", "≤ 3", str(len(calls)), len(calls) <= 3)
    row = count_sequential(calls)
    yield Row("sequential calls", "5", "≤ 2", str(row), row <= 2)


def committing(setup: Setup) -> Iterator[Row]:
    """Measure commits of new pages of ten chunks in groups, as an import stores them, on both engines."""
    world = World()
    pages = [world.page(number) for number in range(COMMITTED)]
    rates = {}
    for name, client in (("embedded", setup.embedded("commit")), ("server", setup.connect())):
        library = setup.library("commit", client)
        began = time.perf_counter()
        for at in range(0, COMMITTED, GROUP):
            group = pages[at : at + GROUP]
            library.commit_all([library.draft(one.page, one.new) for one in group])
        rates[name] = COMMITTED / (time.perf_counter() - began)
    now = f"{rates['server']:.0f} ({rates['embedded']:.0f} embedded)"
    yield Row("commits, pages per second", "57 to 62", "≥ 150", now, rates["server"] >= 150)
    embedded_rate = f"{rates['embedded']:.0f}"
    yield Row("embedded commits, pages per second", "193 to 225", "≥ 193", embedded_rate, rates["embedded"] >= 193)


def importing(setup: Setup) -> Iterator[Row]:
    """Measure imports of real pages with the built-in model; medians of alternating runs on both engines."""
    pages = DEFAULT_FOLDER / IMPORTED_SET / "pages.jsonl"
    if not pages.is_file():
        return
    sources = list(record_sources(pages.read_text(encoding="utf-8").splitlines(), pages.name))
    model = load_embedding_model("builtin")
    seconds: dict[str, list[float]] = {"embedded": [], "server": []}
    with Fetcher() as fetcher, Parser() as parser:
        for run, (name, timings) in product(range(RUNS), seconds.items()):
            client = setup.connect() if name == "server" else setup.embedded(f"set-{run}")
            library = open_library(client, f"{setup.prefix}-set-{run}", model.name, model.dimension)
            ingestor = Ingestor(library, model, SparseEncoder(), fetcher, parser, get_chunker())
            began = time.perf_counter()
            added = sum(row.status == "added" for _, row in ingest_all(ingestor, sources))
            timings.append(time.perf_counter() - began)
            assert added == len(sources)
    server_s, embedded_s = (statistics.median(seconds[name]) for name in ("server", "embedded"))
    now = f"{server_s:.2f} s ({embedded_s:.2f} embedded)"
    yield Row(f"{IMPORTED_SET} imported", "–", "≤ 1.2 × embedded", now, server_s <= 1.2 * embedded_s)


MEASURED: Mapping[str, Callable[[Setup], Iterator[Row]]] = {
    "races": race,
    "outage": outage,
    "kills": kills,
    "searching": searching,
    "committing": committing,
    "importing": importing,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="server-") as folder, ExitStack() as stack:
        server = None
        if not options.url:
            server = stack.enter_context(QdrantServer(Path(folder) / "server"))
        setup = Setup(options.url or server.url if server else options.url, Path(folder), server)
        try:
            for name, measure in MEASURED.items():
                if not options.only or name in options.only:
                    rows += _run_measure(measure, setup, quiet=options.json)
        finally:
            for client in setup.clients:
                client.close()
            setup.clear()
    facts = {**machine.describe(), "limits": options.url or "the tests' stand-in"}
    cells = [[row.what, row.before, row.goal, row.now, _verdict(row)] for row in rows]
    report.save("server", facts, list(map(asdict, rows)), report.table(HEAD, cells))
    print(json.dumps(list(map(asdict, rows))) if options.json else report.table(HEAD, cells))
    return 1 if any(row.met is False for row in rows) else 0


def _run_measure(measure: Callable[[Setup], Iterator[Row]], setup: Setup, *, quiet: bool) -> list[Row]:
    rows = []
    for row in measure(setup):
        rows.append(row)
        if not quiet:
            print(f"{row.what}: {row.now} (goal {row.goal}) {_verdict(row)}", file=sys.stderr, flush=True)
    return rows


def _verdict(row: Row) -> str:
    return {True: "met", False: "MISSED", None: ""}[row.met]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="a real server; its key is in QDRANT_API_KEY")
    parser.add_argument("--only", nargs="*", default=[], choices=sorted(MEASURED), metavar="WORD")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
