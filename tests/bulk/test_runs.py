"""Bulk imports: rows, resuming, and exclusive access; on both databases."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.app import App
from rag.bulk.runs import Batches, Outcome, Runner, RunnerName, choose_runner, run_bulk
from rag.config import load_settings
from rag.errors import ConfigError, StoreError
from rag.store.sql.database import Database
from rag.types import IngestResult


@pytest.fixture
def app(tmp_path: Path, database_location: Path | str) -> Iterator[App]:
    url = database_location if isinstance(database_location, str) else ""
    given = {"qdrant_url": "", "llm_model": "", "llm_base_url": "", "database_url": url}
    app = App(load_settings(None, rag_data_dir=tmp_path, **given))
    yield app
    app.close()


@pytest.fixture
def dump(tmp_path: Path) -> str:
    rows = [
        {"url": f"https://a.example/{n}", "title": f"P{n}", "text": f"Page {n} tells of {n} boats."} for n in range(9)
    ]
    lines = [*map(json.dumps, rows), "broken"]
    (tmp_path / "dump.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "dump.jsonl")


def broken_only(dump: str) -> str:
    path = Path(dump).with_name("broken.jsonl")
    path.write_text("broken")
    return str(path)


def here(app: App) -> Runner:
    return choose_runner(app, "main", "", "here", 1, 0.0)


def begin(app: App, dump: str) -> tuple[Iterator[IngestResult], str]:
    """Import the first batch; return the iterator over the other rows, and the id of the job."""
    rows = run_bulk(app, "main", [dump], 4, here(app))
    next(rows)
    (job,) = app.imports.jobs.jobs("main")
    return rows, job.id


def import_all(app: App, dump: str, run: Runner | None = None) -> list[IngestResult]:
    return list(run_bulk(app, "main", [dump], 4, run or here(app)))


def test_every_page_is_stored_and_what_failed_has_a_row(app: App, dump: str) -> None:
    rows = import_all(app, dump)
    assert [(row.status, row.notice.code) for row in rows] == [
        ("added", "bulk_batch"),
        ("added", "bulk_batch"),
        ("failed", "record_broken"),
        ("added", "bulk_batch"),
    ]
    assert [row.status for row in run_bulk(app, "main", [broken_only(dump)], 4, here(app))] == ["failed", "failed"]
    assert len(app.library("main").pages()) == 9
    job = app.imports.jobs.jobs("main")[-1]
    assert (job.state, job.bulk, job.pages) == ("done", 1, {"added": 9, "unchanged": 0, "held": 0, "failed": 1})
    assert sorted(item.source for item in job.items)[-1] == "dump.jsonl:10"


def test_what_was_cut_off_is_finished_by_the_same_command(app: App, dump: str) -> None:
    given: list[list[int]] = []

    def run(batches: Batches) -> Iterator[tuple[int, Outcome]]:
        given.append([*batches])
        return here(app)(batches)

    first = run_bulk(app, "main", [dump], 4, run)
    next(first)
    first.close()  # like a driver that is killed, except for its lease, which would expire
    (job,) = app.imports.jobs.jobs("main")
    assert (job.state, job.done, job.total) == ("running", 1, 3)
    import_all(app, dump, run)
    (job,) = app.imports.jobs.jobs("main")
    assert (job.state, job.pages["added"], given) == ("done", 9, [[0, 1, 2], [1, 2]])
    import_all(app, dump)
    assert [job.pages["unchanged"] for job in app.imports.jobs.jobs("main")] == [9, 0]


def test_one_process_has_it_and_no_app_takes_it(
    app: App, dump: str, database_location: Path | str, tmp_path: Path
) -> None:
    rows, job_id = begin(app, dump)
    app.imports.start()
    database = Database(database_location if isinstance(database_location, str) else tmp_path / "app.sqlite3")
    other = f"{socket.gethostname()}:{os.getppid()}:other"
    assert database.jobs.acquire_leases(other, lambda worker: True, job_id) == {}
    assert not database.jobs.has_running()
    database.jobs.release(database.rows("SELECT worker FROM jobs")[0]["worker"])
    assert database.jobs.acquire_leases(other, lambda worker: False) == {}
    assert job_id in database.jobs.acquire_leases(other, lambda worker: False, job_id)
    with pytest.raises(StoreError, match="already working"):
        list(rows)
    with pytest.raises(StoreError, match="already working"):
        import_all(app, dump)
    database.jobs.release(other)
    assert len(import_all(app, dump)) == 3
    assert app.imports.jobs.jobs("main")[0].state == "done"
    database.close()


@pytest.mark.parametrize("act", ["cancel", "pause"])
def test_what_a_person_does_with_it_holds(app: App, dump: str, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = app.imports.jobs
    rows, job_id = begin(app, dump)
    getattr(jobs, act)(job_id)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        jobs.resume(job_id)

    monkeypatch.setattr("rag.ingest.jobs.service.time.sleep", wait)
    left = list(rows)
    counts = jobs.job(job_id).counts
    assert (len(left), counts) == (
        (0, {"added": 1, "skipped": 2}) if act == "cancel" else (3, {"added": 3, "failed": 1})
    )
    assert bool(waits) == (act == "pause")


def test_an_import_that_is_deleted_ends_after_its_batch(app: App, dump: str) -> None:
    rows, job_id = begin(app, dump)
    app.imports.jobs.delete(job_id)
    assert list(rows) == [] and app.imports.jobs.jobs("main") == []


def test_a_batch_that_cannot_be_read_is_a_row(app: App, dump: str) -> None:
    def run(batches: Batches) -> Iterator[tuple[int, Outcome]]:
        Path(dump).unlink()
        return here(app)(batches)

    rows = import_all(app, dump, run)
    assert [(row.status, row.notice.code) for row in rows] == [("failed", "file_unreadable")] * 3
    (job,) = app.imports.jobs.jobs("main")
    app.imports.jobs.retry_failed(job.id)
    assert app.imports.jobs.job(job.id).counts == {"": 3}


def test_several_processes_need_a_server(app: App) -> None:
    names: tuple[RunnerName, ...] = ("processes", "ray")
    for name in names:
        with pytest.raises(ConfigError, match="QDRANT_URL"):
            choose_runner(app, "main", "", name, 2, 0.0)
