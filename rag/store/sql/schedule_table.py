"""Schedules of re-checks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag.dates import now
from rag.store.sql.table import Row, Table, dump

Scope = Literal["all", "site", "pages"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Pages that are re-checked every `every_hours`: all of a library, those of a site, or selected ones.

    Times are ISO 8601 in UTC; `last_job` is the id of the last job it started, at `last_at`, or empty.
    """

    id: str
    library: str
    owner: str
    created_at: str
    scope: Scope
    site: str
    url_hashes: tuple[str, ...]
    every_hours: int
    next_at: str
    last_at: str = ""
    last_job: str = ""


class ScheduleTable(Table):
    def add(
        self, library: str, owner: str, scope: Scope, *, site: str, url_hashes: Sequence[str], every: int, next_at: str
    ) -> str:
        """Store a schedule, first due at `next_at`; `every` in hours. Return its id."""
        schedule_id = uuid.uuid4().hex
        self._file.write(
            "INSERT INTO schedules (id, library, owner, created_at, scope, site, url_hashes, every_hours, next_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(schedule_id, library, owner, now(), scope, site, dump(list(url_hashes)), every, next_at),
        )
        return schedule_id

    def schedule(self, schedule_id: str) -> Schedule | None:
        rows = self._file.rows("SELECT * FROM schedules WHERE id = ?", schedule_id)
        return _schedule(rows[0]) if rows else None

    def schedules(self, library: str | None = None) -> list[Schedule]:
        """Return the schedules of a library, or all; oldest first."""
        only, values = ("WHERE library = ?", (library,)) if library is not None else ("", ())
        return [_schedule(row) for row in self._file.rows(f"SELECT * FROM schedules {only} ORDER BY rowid", *values)]

    def due_schedules(self, moment: str) -> list[Schedule]:
        """Return the schedules that are due, the longest overdue first."""
        rows = self._file.rows("SELECT * FROM schedules WHERE next_at <= ? ORDER BY next_at, rowid", moment)
        return [_schedule(row) for row in rows]

    def next_time(self) -> str:
        """Return when the next schedule is due; empty if there is none."""
        return str(self._file.rows("SELECT coalesce(min(next_at), '') AS first FROM schedules")[0]["first"])

    def claim(self, schedule: Schedule, next_at: str) -> bool:
        """Set the next time; return False if another process did so first."""
        return self._file.write(
            "UPDATE schedules SET next_at = ? WHERE id = ? AND next_at = ?", *(next_at, schedule.id, schedule.next_at)
        )

    def note_start(self, schedule_id: str, job_id: str, moment: str) -> None:
        """Note the job that the schedule started."""
        self._file.write("UPDATE schedules SET last_at = ?, last_job = ? WHERE id = ?", moment, job_id, schedule_id)

    def change(self, schedule_id: str, every: int, next_at: str) -> None:
        self._file.write("UPDATE schedules SET every_hours = ?, next_at = ? WHERE id = ?", every, next_at, schedule_id)

    def remove(self, schedule_id: str) -> None:
        self._file.write("DELETE FROM schedules WHERE id = ?", schedule_id)


def _schedule(row: Row) -> Schedule:
    fields = dict(row)
    return Schedule(**{**fields, "url_hashes": tuple(json.loads(fields["url_hashes"]))})
