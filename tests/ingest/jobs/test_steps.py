"""Uploaded files become items in the worker, even if it is killed meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import get_ident

import pytest

from rag.errors import StoreError
from rag.ingest.jobs import steps as unpacking
from rag.ingest.jobs.service import Jobs
from rag.ingest.jobs.steps import Steps, from_payload, new_item, to_payload, unpack_files
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import BOUNDS, RecordBounds, Source, file_sources, record_sources, web_source
from rag.store import values
from rag.store.sql.database import Database
from tests.ingest.jobs.conftest import MakeJobs, Stuck, failing_once, records, wait_for_job
from tests.support.hostile import make_zip

LINE = '{"url": "https://a.example/", "title": "T", "text": "雨"}'
SOURCES = [
    web_source("https://a.example/"),
    *file_sources("note.md", b"# Note\n\x00"),
    *file_sources("picture.tiff", b"II*"),
    *record_sources([LINE, "broken"], "pages.jsonl"),
]


def lines(*pages: int) -> bytes:
    rows = [{"url": f"https://a.example/{n}", "title": f"P{n}", "text": f"Text of page {n}: {n}."} for n in pages]
    return "\n".join(map(json.dumps, rows)).encode()


def outcomes(jobs: Jobs, job_id: str) -> dict[str, str]:
    items = wait_for_job(jobs, job_id).items
    return {item.source: f"{item.result.status} {item.result.notice.code}" for item in items if item.result}


def test_every_file_and_row_ends_with_one_result(jobs: Jobs) -> None:
    archive = make_zip({"c.txt": b"A note in a file of its own.", "d.png": b"x"})
    files = [("a.jsonl", lines(0, 1, 0)), ("b.zip", archive), ("e.exe", b"MZ")]
    job_id = jobs.submit_files(files, library="main")
    assert outcomes(jobs, job_id) == {
        "https://a.example/0": "duplicate same_address",
        "https://a.example/1": "added page_added",
        "b.zip/c.txt": "added page_added",
        "b.zip/d.png": "skipped other_kind",
        "e.exe": "failed file_type",
    }
    job = jobs.job(job_id)
    assert (job.total, job.counts["added"], job.counts["failed"], job.title) == (6, 3, 1, "a.jsonl")


def test_submitting_reads_nothing(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    real = unpacking.file_sources
    monkeypatch.setattr(unpacking, "file_sources", lambda *a, **k: threads.append(get_ident()) or real(*a, **k))
    wait_for_job(jobs, jobs.submit_files([("a.jsonl", lines(0))], library="main"))
    assert len(threads) == 1 and get_ident() not in threads


def test_the_bounds_are_those_of_the_jobs(make_jobs: MakeJobs) -> None:
    jobs = make_jobs(bounds=RecordBounds(records=2))
    found = outcomes(jobs, jobs.submit_files([("a.jsonl", lines(0, 1, 2, 3))], library="main"))
    assert found["a.jsonl:3"] == "failed records_left_out"
    assert len(found) == 3


@pytest.mark.parametrize("cut_at", range(1, 6))
def test_an_unpacking_that_was_cut_off_goes_on_where_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch, cut_at: int
) -> None:
    monkeypatch.setattr(unpacking, "_BATCH_SIZE", 1)
    job_id = database.jobs.create("main", "", discovery="waiting")
    database.files.add(job_id, [("a.jsonl", lines(0, 1, 0)), ("a.md", b"one"), ("a.md", b"two")])
    looks = iter(range(100))
    unpack_files(job_id, database, BOUNDS, lambda: next(looks) >= cut_at)
    assert database.items.count(job_id) == cut_at
    unpack_files(job_id, database, BOUNDS, lambda: False)
    items = database.items.items(job_id)
    assert [item.url for item in items] == [
        *(f"https://a.example/{n}" for n in (0, 1, 0)), "file:///a.md", "file:///a.md?2"
    ]  # fmt: skip
    assert [item.position for item in items if item.result] == [2]
    assert database.files.names(job_id) == []


def test_two_attempts_at_an_item_that_overlap_say_the_same(database: Database, ingestor: Ingestor) -> None:
    """The first worker, presumed dead, stores its page nevertheless, and may not report it."""
    job_id = database.jobs.create("main", "", [new_item(records(1)[0])])
    job = database.jobs.job(job_id)
    assert job is not None
    workers = [Steps(job, ingestor, database) for _ in range(2)]
    reads = []
    for worker in workers:
        (item,) = database.items.items(job_id)
        database.items.start_attempt(job_id, 0)
        reads.append(worker.read(item if worker is workers[0] else replace(item, started_at="")))
    (item,) = database.items.items(job_id)
    outcomes = [worker.store_all([(item, read, 0.0)]) for worker, read in zip(workers, reads, strict=True)]
    assert [(one.status, one.notice.code) for (one,) in outcomes] == [("added", "page_added")] * 2
    late = replace(item, started_at=values.now())
    (row,) = workers[0].store_all([(late, reads[0], 0.0)])
    assert row.status == "unchanged"


def test_what_a_stopped_import_had_not_looked_into_is_said(make_jobs: MakeJobs, ingestor: Ingestor) -> None:
    stuck = Stuck(ingestor)
    jobs = make_jobs(stuck)
    job_id = jobs.submit_files([("a.jsonl", lines(0)), ("b.md", b"# B")], library="main")
    assert stuck.asked.wait(30)
    jobs.cancel(job_id)
    stuck.go.set()
    assert outcomes(jobs, job_id) == {"a.jsonl": "skipped cancelled", "b.md": "skipped cancelled"}


def test_files_are_kept_for_a_retry_if_the_library_cannot_be_opened(
    make_jobs: MakeJobs, database: Database, ingestor: Ingestor
) -> None:
    jobs = make_jobs(failing_once(ingestor, StoreError("store_failed", call="open", detail="no")))
    job_id = jobs.submit_files([("b.md", b"# B\n\nA note.")], library="main")
    assert wait_for_job(jobs, job_id).discovery == "failed"
    assert database.files.names(job_id) == ["b.md"]
    jobs.retry_failed(job_id)
    assert outcomes(jobs, job_id) == {"b.md": "added page_added"}


def test_names_reach_the_list_without_what_would_turn_them(jobs: Jobs) -> None:
    name = "notes\u202egpj\nadded.\x1b[2Jmd"
    job_id = jobs.submit_files([(name, b"# A\n\nA note.")], library="main")
    (item,) = wait_for_job(jobs, job_id).items
    assert item.source == jobs.job(job_id).title == "notesgpj added.[2Jmd"
    assert item.result is not None and item.result.source == item.source


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_source_comes_back_whole(source: Source) -> None:
    item = new_item(source)
    assert item.payload is not None
    again = from_payload(json.loads(json.dumps(item.payload)), item.data)
    assert to_payload(again) == to_payload(source)
    assert again.data == source.data
    assert str(again.broken) == str(source.broken)
