"""Scheduled re-checks of pages, at intervals of hours, started by a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rag.errors import RagError, StoreError
from rag.store.sql.database import Database
from rag.store.sql.job_table import Job
from rag.store.sql.small_tables import Schedule, Scope

if TYPE_CHECKING:
    from rag.ingest.jobs.service import Jobs

log = logging.getLogger(__name__)

MIN_HOURS = 1
MAX_HOURS = 24 * 366
_MAX_SLEEP = 300.0  # to catch up after the machine slept or its clock was set
_MIN_SLEEP = 1.0


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule with the last job that it started; None before the first, or if the job was deleted."""

    schedule: Schedule
    last: Job | None


class Schedules:
    """A scheduler of re-checks. Safe to share between threads; methods raise StoreError."""

    def __init__(
        self,
        database: Database,
        jobs: Jobs,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        has_library: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """If `has_library` is false for a library, its schedules advance without starting a job."""
        self._database = database
        self._table = database.schedules
        self._jobs = jobs
        self._clock = clock
        self._has_library = has_library
        self._changed = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="schedules", daemon=True)

    def start(self) -> None:
        """Start the thread; each overdue re-check starts once."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; no further re-checks start."""
        self._closed = True
        self._changed.set()

    def set(
        self,
        library: str,
        *,
        every_hours: int,
        site: str = "",
        url_hashes: Sequence[str] = (),
        owner: str = "",
    ) -> str:
        """Schedule re-checks of the pages `url_hashes`, of `site` or of the library; return the schedule's id.

        The same selection has only one schedule: setting it again changes its hours and restarts the interval. Raises
        StoreError("schedule_too_often").
        """
        if not MIN_HOURS <= every_hours <= MAX_HOURS:
            raise StoreError("schedule_too_often", fewest=MIN_HOURS, most=MAX_HOURS)
        scope: Scope = "pages" if url_hashes else "site" if site else "all"
        hashes = tuple(sorted(set(url_hashes)))
        next_at = _text(self._clock() + timedelta(hours=every_hours))
        with self._database.transaction(lock_name=f"schedules of {library}"):
            matches = [
                schedule.id
                for schedule in self._table.schedules(library)
                if (schedule.scope, schedule.site, schedule.url_hashes) == (scope, site, hashes)
            ]
            if matches:
                self._table.change(matches[0], every_hours, next_at)
                schedule_id = matches[0]
            else:
                schedule_id = self._table.add(
                    library, owner, scope, site=site, url_hashes=hashes, every=every_hours, next_at=next_at
                )
        self._changed.set()
        return schedule_id

    def remove(self, schedule_id: str) -> None:
        """Delete a schedule. Raises StoreError("schedule_unknown")."""
        self.library_of(schedule_id)
        self._table.remove(schedule_id)
        self._changed.set()

    def library_of(self, schedule_id: str) -> str:
        """Return the library whose pages are re-checked. Raises StoreError("schedule_unknown")."""
        if (schedule := self._table.schedule(schedule_id)) is None:
            raise StoreError("schedule_unknown")
        return schedule.library

    def schedules(self, library: str) -> list[ScheduleView]:
        """Return the library's schedules, oldest first, each with its last job."""
        rows = self._table.schedules(library)
        return [ScheduleView(row, self._database.jobs.job(row.last_job) if row.last_job else None) for row in rows]

    def start_due(self) -> list[str]:
        """Start each due re-check once, however many intervals have passed; return the ids of the jobs."""
        moment = self._clock()
        return [
            job for one in self._table.due_schedules(_text(moment)) if (job := self._start(one, moment)) is not None
        ]

    def _start(self, schedule: Schedule, moment: datetime) -> str | None:
        """Return the job id; None if the last job still runs, another process was first, or the library is missing."""
        exists = self._has_library(schedule.library)
        last = self._database.jobs.state(schedule.last_job) if schedule.last_job else None
        with self._database.transaction():
            due, period = datetime.fromisoformat(schedule.next_at), timedelta(hours=schedule.every_hours)
            next_time = due + ((moment - due) // period + 1) * period  # the first one after `moment`
            if not self._table.claim(schedule, _text(next_time)) or not exists:
                return None
            if last in ("running", "paused"):
                log.info("schedule %s: skipped, as its last re-check has not finished", schedule.id)
                return None
            hashes = schedule.url_hashes if schedule.scope == "pages" else None
            site = schedule.site if schedule.scope == "site" else None
            job_id = self._jobs.recheck(schedule.library, hashes, site, owner=schedule.owner)
            self._table.record_start(schedule.id, job_id, _text(moment))
        return job_id

    def _watch(self) -> None:
        while not self._closed:
            try:
                self.start_due()
                first = self._table.next_time()
                seconds = (datetime.fromisoformat(first) - self._clock()).total_seconds() if first else _MAX_SLEEP
                wait = min(max(seconds, _MIN_SLEEP), _MAX_SLEEP)
            except RagError as error:  # a full or busy disk: the re-check is late, not lost
                log.warning("schedules: %s", error)
                wait = _MAX_SLEEP
            self._changed.wait(wait)
            self._changed.clear()


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
