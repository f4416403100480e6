"""Jobs in SQLite: their states, their counts, and the list of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.errors import StoreError
from rag.store.sql.database import Database
from rag.store.sql.item_table import NewItem
from rag.store.sql.job_table import JobState
from rag.types import IngestResult, Notice

ADDED = IngestResult("s", "https://a.example/1", "h1", "added", "page_added", "Added.")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "app.db")
    yield database
    database.close()


def test_a_job_is_what_was_asked_for(database: Database) -> None:
    given = [NewItem("s0"), NewItem("s1")]
    job_id = database.jobs.create("main", "li", given, kind="feed", title="News", options={"force": True})
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.library, job.owner, job.state, job.kind, job.title) == ("main", "li", "running", "feed", "News")
    assert (job.options, job.counts, job.total, job.done) == ({"force": True}, {"": 2}, 2, 0)
    database.items.finish(job_id, 1, ADDED)
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.counts, job.total, job.done) == ({"": 1, "added": 1}, 2, 1)
    assert database.jobs.job("unknown") is None


def test_jobs_are_listed_by_library_and_running_ones_found(database: Database) -> None:
    ids = [database.jobs.create("main", "", [NewItem(str(n))]) for n in range(5)]
    other = database.jobs.create("other", "")
    for job_id, state in zip(ids, ("cancelled", "running", "done", "running", "paused"), strict=True):
        database.jobs.set_state(job_id, state)
    assert [job.id for job in database.jobs.jobs("main", limit=3)] == ids[:1:-1]
    assert [job.id for job in database.jobs.jobs("main", limit=3, offset=3)] == ids[1::-1]
    assert [job.id for job in database.jobs.jobs("other")] == [other]
    assert database.jobs.running() == [ids[1], ids[3], other]


def test_a_state_that_does_not_exist_is_refused(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    with pytest.raises(StoreError, match="CHECK constraint"):
        database.jobs.set_state(job_id, "lost")  # type: ignore[arg-type]
    assert database.jobs.state(job_id) == "running"


@pytest.mark.parametrize(
    ("of", "changed"), [((), True), (["running"], True), (["paused", "running"], True), (["paused", "done"], False)]
)
def test_a_state_is_changed_only_from_those_that_are_named(
    database: Database, of: list[JobState], changed: bool
) -> None:
    job_id = database.jobs.create("main", "")
    assert database.jobs.set_state(job_id, "cancelled", of=of) == changed
    assert database.jobs.state(job_id) == ("cancelled" if changed else "running")
    assert not database.jobs.set_state("unknown", "done")


def test_a_job_is_done_once_nothing_is_left(database: Database) -> None:
    job_id = database.jobs.create("main", "", [NewItem("a")], discovery="waiting")
    assert not database.jobs.end_if_done(job_id)
    database.items.finish(job_id, 0, ADDED)
    assert not database.jobs.end_if_done(job_id)
    database.jobs.set_discovery(job_id, "failed", Notice("feed_missing", {"url": "x"}))
    assert database.jobs.end_if_done(job_id)
    job = database.jobs.job(job_id)
    assert job is not None
    assert (job.state, job.discovery, job.notice) == ("done", "failed", Notice("feed_missing", {"url": "x"}))
    assert job.finished_at > job.created_at
    assert not database.jobs.end_if_done(job_id)


def test_a_paused_job_is_not_done(database: Database) -> None:
    job_id = database.jobs.create("main", "")
    database.jobs.set_state(job_id, "paused", Notice("nothing_to_recheck"))
    assert not database.jobs.end_if_done(job_id)
    assert database.jobs.state(job_id) == "paused"


def test_cancelled_jobs_with_open_items_are_found(database: Database) -> None:
    ids = [database.jobs.create("main", "", [NewItem("a")]) for _ in range(3)]
    database.items.finish(ids[0], 0, ADDED)
    for job_id in ids[:2]:
        database.jobs.set_state(job_id, "cancelled")
    assert database.jobs.cut_off() == [ids[1]]
