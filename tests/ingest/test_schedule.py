"""Scheduled re-checks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag.errors import StoreError
from rag.ingest.schedule import Schedules
from rag.store.sql.database import Database
from tests.ingest.jobs.conftest import database

__all__ = ["database"]


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 5, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_hours(self, hours: float) -> None:
        self.now += timedelta(hours=hours)


class Recorder:
    """A stand-in for the jobs that stores one and records the calls."""

    def __init__(self, database: Database) -> None:
        self.asked: list[tuple[str, Sequence[str] | None, str | None]] = []
        self.called = threading.Event()
        self._database = database

    def recheck(
        self, library: str, url_hashes: Sequence[str] | None = None, site: str | None = None, *, owner: str = ""
    ) -> str:
        self.asked.append((library, url_hashes, site))
        self.called.set()
        return self._database.jobs.create(library, owner, kind="recheck")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(database: Database) -> Recorder:
    return Recorder(database)


@pytest.fixture
def schedules(database: Database, recorder: Recorder, clock: Clock) -> Schedules:
    return Schedules(database, recorder, clock)


def test_what_is_due_starts_and_is_due_again_after_its_hours(
    schedules: Schedules, recorder: Recorder, clock: Clock, database: Database
) -> None:
    schedules.set("main", every_hours=24)
    clock.pass_hours(23.9)
    assert schedules.start_due() == []
    clock.pass_hours(0.1)
    (job_id,) = schedules.start_due()
    assert recorder.asked == [("main", None, None)]
    assert schedules.start_due() == []
    (view,) = schedules.schedules("main")
    assert (view.schedule.last_job, view.schedule.last_at[:16]) == (job_id, "2026-03-06T09:00")
    assert view.schedule.next_at[:16] == "2026-03-07T09:00"
    assert view.last is not None
    assert view.last.kind == "recheck"
    database.jobs.set_state(job_id, "done")
    clock.pass_hours(24)
    assert len(schedules.start_due()) == 1


def test_after_a_long_sleep_it_starts_once(schedules: Schedules, recorder: Recorder, clock: Clock) -> None:
    schedules.set("main", every_hours=2)
    clock.pass_hours(101)
    assert len(schedules.start_due()) == 1
    assert schedules.start_due() == []
    (view,) = schedules.schedules("main")
    assert view.schedule.next_at[:16] == "2026-03-09T15:00"  # stays on the two-hour grid


def test_one_that_has_not_ended_is_not_started_again(
    schedules: Schedules, recorder: Recorder, clock: Clock, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    schedules.set("main", every_hours=1)
    clock.pass_hours(1)
    (first,) = schedules.start_due()
    clock.pass_hours(1)
    assert schedules.start_due() == []
    assert "skipped, as its last re-check has not finished" in caplog.text
    database.jobs.set_state(first, "paused")
    clock.pass_hours(1)
    assert schedules.start_due() == []
    database.jobs.set_state(first, "done")
    clock.pass_hours(1)
    assert len(schedules.start_due()) == 1


def test_a_site_chosen_pages_and_all_are_schedules_of_their_own(
    schedules: Schedules, recorder: Recorder, clock: Clock
) -> None:
    ids = [
        schedules.set("main", every_hours=1),
        schedules.set("main", every_hours=1, site="a.example"),
        schedules.set("main", every_hours=1, url_hashes=["h2", "h1"]),
        schedules.set("other", every_hours=1),
    ]
    assert len(set(ids)) == 4
    assert [view.schedule.id for view in schedules.schedules("main")] == ids[:3]
    clock.pass_hours(1)
    assert len(schedules.start_due()) == 4
    assert recorder.asked == [
        ("main", None, None),
        ("main", None, "a.example"),
        ("main", ("h1", "h2"), None),
        ("other", None, None),
    ]


def test_setting_it_again_changes_it(schedules: Schedules, clock: Clock) -> None:
    first = schedules.set("main", every_hours=24, url_hashes=["h1", "h2"])
    clock.pass_hours(5)
    assert schedules.set("main", every_hours=48, url_hashes=["h2", "h1"]) == first
    (view,) = schedules.schedules("main")
    assert (view.schedule.every_hours, view.schedule.next_at[:16]) == (48, "2026-03-07T14:00")


def test_a_removed_one_starts_nothing(schedules: Schedules, recorder: Recorder, clock: Clock) -> None:
    one = schedules.set("main", every_hours=1)
    schedules.remove(one)
    clock.pass_hours(9)
    assert schedules.start_due() == []
    with pytest.raises(StoreError, match="no longer exists"):
        schedules.remove(one)


@pytest.mark.parametrize("hours", [0, -1, 24 * 400])
def test_hours_have_bounds(schedules: Schedules, hours: int) -> None:
    with pytest.raises(StoreError, match="hours"):
        schedules.set("main", every_hours=hours)


def test_five_replicas_start_it_once(database_location: Path | str, clock: Clock) -> None:
    with ExitStack() as stack:
        databases = [stack.enter_context(closing(Database(database_location))) for _ in range(5)]
        replicas = [Schedules(one, Recorder(one), clock) for one in databases]
        replicas[0].set("main", every_hours=24)
        clock.pass_hours(25)
        together = threading.Barrier(len(replicas))

        def start(replica: Schedules) -> list[str]:
            together.wait()
            return replica.start_due()

        with ThreadPoolExecutor(len(replicas)) as pool:
            started = [job for jobs in pool.map(start, replicas) for job in jobs]
        assert [job.id for job in databases[0].jobs.jobs("main")] == started and len(started) == 1


def test_the_thread_starts_overdue_schedules_and_notices_new_ones(
    schedules: Schedules, recorder: Recorder, clock: Clock
) -> None:
    schedules.set("main", every_hours=1)
    clock.pass_hours(50)
    schedules.start()
    assert recorder.called.wait(60)
    recorder.called.clear()
    schedules.set("other", every_hours=1)
    clock.pass_hours(2)
    schedules.set("third", every_hours=24)  # wakes the scheduler
    assert recorder.called.wait(60)
    schedules.close()
    assert [library for library, _, _ in recorder.asked][:2] == ["main", "other"]
