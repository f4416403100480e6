"""Small tables: ratings of answers, roles and an audit log, re-check schedules, page summaries, request slots.

Request slots limit the requests to a web server across all processes that share the database.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from rag.errors import FetchError
from rag.store.sql.table import CLOCK, OWNED, Row, Table, dump
from rag.store.values import now
from rag.web.connections import MAX_PAUSE, Host, RateLimiter


class FeedbackTable(Table):
    def save(
        self,
        turn_id: str,
        library: str,
        owner: str,
        *,
        rating: Literal[-1, 1],
        data: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a user's rating of an answer, replacing their earlier one; return its id.

        `data` may contain a reason, a correction and the settings.
        """
        feedback_id = uuid.uuid4().hex
        with self._file.transaction(lock_name=turn_id) as db:
            db.execute("DELETE FROM feedback WHERE turn_id = ? AND owner = ?", (turn_id, owner))
            db.execute(
                "INSERT INTO feedback (id, turn_id, library, owner, created_at, rating, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (feedback_id, turn_id, library, owner, now(), rating, dump(data or {})),
            )
        return feedback_id

    def delete(self, turn_id: str, owner: str) -> None:
        self._file.write("DELETE FROM feedback WHERE turn_id = ? AND owner = ?", turn_id, owner)

    def for_turn(self, turn_id: str, owner: str) -> dict[str, Any] | None:
        """Return this user's rating of the answer."""
        rows = self._file.rows("SELECT * FROM feedback WHERE turn_id = ? AND owner = ?", turn_id, owner)
        return {**dict(rows[-1]), "data": json.loads(rows[-1]["data"])} if rows else None

    def rating(self, turn_id: str, owner: str) -> int:
        """Return 1 or -1, or 0 if this user gave no rating."""
        feedback = self.for_turn(turn_id, owner)
        return int(feedback["rating"]) if feedback else 0

    def for_library(self, library: str, owner: str | None = None) -> list[dict[str, Any]]:
        """Return the feedback on the library's answers, oldest first; with `owner`, only that user's."""
        rows = self._file.rows(
            f"SELECT * FROM feedback WHERE library = ? AND {OWNED} ORDER BY rowid",
            *(library, owner, owner),
        )
        return [{**dict(row), "data": json.loads(row["data"])} for row in rows]


Role = Literal["none", "reader", "editor", "owner"]
Action = Literal["grant", "remove_library", "restore_library", "remove_pages", "export"]

_MAX_LOG_ENTRIES: Final = 500


@dataclass(frozen=True, slots=True)
class Grant:
    """The role of `subject` in a library; "*" means everyone who is signed in."""

    library: str
    subject: str
    role: Role


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action on a library by `person`, a display name. `at` is ISO 8601 in UTC."""

    at: str
    person: str
    action: Action
    detail: str


class GrantTable(Table):
    def grants(self, library: str) -> list[Grant]:
        rows = self._file.rows("SELECT library, subject, role FROM grants WHERE library = ? ORDER BY subject", library)
        return [Grant(**dict(row)) for row in rows]

    def put(self, library: str, subject: str, role: Role, owner: str) -> None:
        """Grant a role, replacing the subject's current one."""
        self._file.write(
            "INSERT INTO grants (library, subject, role, owner, granted_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (library, subject) DO UPDATE SET role = excluded.role, owner = excluded.owner,"
            " granted_at = excluded.granted_at",
            *(library, subject, role, owner, now()),
        )

    def revoke(self, library: str, subject: str) -> None:
        self._file.write("DELETE FROM grants WHERE library = ? AND subject = ?", library, subject)

    def log(self, library: str, owner: str, person: str, action: Action, detail: str) -> None:
        self._file.write(
            "INSERT INTO audit_log (library, owner, person, at, action, detail) VALUES (?, ?, ?, ?, ?, ?)",
            *(library, owner, person, now(), action, detail),
        )

    def entries(self, library: str) -> list[AuditEntry]:
        """Return the library's audit log, newest first."""
        rows = self._file.rows(
            "SELECT at, person, action, detail FROM audit_log WHERE library = ? ORDER BY at DESC, rowid DESC LIMIT ?",
            *(library, _MAX_LOG_ENTRIES),
        )
        return [AuditEntry(**dict(row)) for row in rows]


Scope = Literal["all", "site", "pages"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule for re-checking pages every `every_hours`: all of a library, those of a site, or selected ones.

    Times are ISO 8601 in UTC. `last_job` is the id of the job started last, at `last_at`; both empty before the first.
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
        """Return the schedules of one library or of all, oldest first."""
        only, values = ("WHERE library = ?", (library,)) if library is not None else ("", ())
        return [_schedule(row) for row in self._file.rows(f"SELECT * FROM schedules {only} ORDER BY rowid", *values)]

    def due_schedules(self, moment: str) -> list[Schedule]:
        """Return the due schedules, longest overdue first."""
        rows = self._file.rows("SELECT * FROM schedules WHERE next_at <= ? ORDER BY next_at, rowid", moment)
        return [_schedule(row) for row in rows]

    def next_time(self) -> str:
        """Return when the next schedule is due; empty if there is none."""
        return str(self._file.rows("SELECT coalesce(min(next_at), '') AS first FROM schedules")[0]["first"])

    def claim(self, schedule: Schedule, next_at: str) -> bool:
        """Set the next time; return False if another process was faster."""
        return self._file.write(
            "UPDATE schedules SET next_at = ? WHERE id = ? AND next_at = ?", *(next_at, schedule.id, schedule.next_at)
        )

    def record_start(self, schedule_id: str, job_id: str, moment: str) -> None:
        self._file.write("UPDATE schedules SET last_at = ?, last_job = ? WHERE id = ?", moment, job_id, schedule_id)

    def change(self, schedule_id: str, every: int, next_at: str) -> None:
        self._file.write("UPDATE schedules SET every_hours = ?, next_at = ? WHERE id = ?", every, next_at, schedule_id)

    def remove(self, schedule_id: str) -> None:
        self._file.write("DELETE FROM schedules WHERE id = ?", schedule_id)


def _schedule(row: Row) -> Schedule:
    fields = dict(row)
    return Schedule(**{**fields, "url_hashes": tuple(json.loads(fields["url_hashes"]))})


MAX_SUMMARIES = 20_000
"""Maximum number of summaries in the database; the oldest are deleted."""


class SummaryTable(Table):
    def save(self, library: str, url_hash: str, text_hash: str, language: str, by: str, data: Mapping[str, Any]) -> str:
        """Store a summary and delete those of the page's earlier texts; return its creation time (ISO 8601)."""
        created_at = now()
        with self._file.transaction() as db:
            where = "library = ? AND url_hash = ? AND text_hash != ?"
            db.execute(f"DELETE FROM summaries WHERE {where}", (library, url_hash, text_hash))
            db.execute(
                "INSERT INTO summaries (library, url_hash, text_hash, language, author, created_at, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (library, url_hash, text_hash, language, author)"
                " DO UPDATE SET created_at = excluded.created_at, data = excluded.data",
                (library, url_hash, text_hash, language, by, created_at, dump(data)),
            )
            newest = "SELECT rowid FROM summaries ORDER BY created_at DESC, rowid DESC LIMIT ?"
            db.execute(f"DELETE FROM summaries WHERE rowid NOT IN ({newest})", (MAX_SUMMARIES,))
        return created_at

    def find(self, library: str, url_hash: str, text_hash: str, language: str, by: str = "") -> dict[str, Any] | None:
        """Return the newest summary of a text in a language, by one author or any, as its row with parsed `data`."""
        rows = self._file.rows(
            "SELECT * FROM summaries WHERE library = ? AND url_hash = ? AND text_hash = ? AND language = ?"
            " AND (? = '' OR author = ?) ORDER BY created_at DESC, rowid DESC LIMIT 1",
            *(library, url_hash, text_hash, language, by, by),
        )
        return {**dict(rows[0]), "data": json.loads(rows[0]["data"])} if rows else None

    def forget(self, library: str, url_hashes: Sequence[str]) -> None:
        with self._file.transaction() as db:
            db.executemany(
                "DELETE FROM summaries WHERE library = ? AND url_hash = ?", [(library, key) for key in url_hashes]
            )


_MAX_REQUEST_SECONDS: Final = 120.0
"""Seconds after which a request counts as finished, because its process may be dead."""
_START_SLOT: Final = 0
"""The number of the slot that stores when the next request may start."""
_KEEP_SLOT_SECONDS: Final = 3600.0


class HostTable(Table):
    """Slots of each host, numbered from 1: a request takes one until it ends. The clock is the database's."""

    def acquire(self, host: str, limit: int, delay: float, *, ignore_delay: bool = False) -> int | None:
        """Take one of `limit` slots; return None if all are taken or the last start was less than `delay` seconds ago.

        `ignore_delay` skips the check of the last start.
        """
        with self._file.transaction(lock_name=f"host {host}") as db:
            statement = f"SELECT slot, free_at > {CLOCK} AS taken FROM host_slots WHERE host = ?"
            occupied = {row["slot"] for row in db.execute(statement, (host,)).fetchall() if row["taken"]}
            slot = next((number for number in range(1, limit + 1) if number not in occupied), None)
            if slot is None or (_START_SLOT in occupied and not ignore_delay):
                return None
            self._set(host, slot, _MAX_REQUEST_SECONDS)
            self._set(host, _START_SLOT, delay)
            return slot

    def release(self, host: str, slot: int) -> None:
        with self._file.transaction() as db:
            db.execute("DELETE FROM host_slots WHERE host = ? AND slot = ?", (host, slot))
            db.execute(f"DELETE FROM host_slots WHERE free_at < {CLOCK} - ?", (_KEEP_SLOT_SECONDS,))

    def pause(self, host: str, seconds: float) -> None:
        """Block new requests to `host` for this many seconds."""
        self._set(host, _START_SLOT, seconds)

    def _set(self, host: str, slot: int, seconds: float) -> None:
        self._file.write(
            f"INSERT INTO host_slots (host, slot, free_at) VALUES (?, ?, {CLOCK} + ?) ON CONFLICT (host, slot)"
            " DO UPDATE SET free_at = excluded.free_at WHERE excluded.free_at > host_slots.free_at",
            *(host, slot, seconds),
        )


_POLL_SECONDS: Final = 0.05


class SharedRateLimiter(RateLimiter):
    """A rate limiter whose limits and delays all processes share; requests queue in their own process first.

    Raises StoreError if the database fails.
    """

    def __init__(self, hosts: HostTable, limit: int, delay: float) -> None:
        super().__init__(limit, delay)
        self._hosts = hosts

    @contextmanager
    def slot(
        self, host: Host, url: str, is_cancelled: Callable[[], bool] = lambda: False, *, is_redirect: bool = False
    ) -> Iterator[float]:
        with super().slot(host, url, is_cancelled, is_redirect=is_redirect) as waited:
            began, name, delay = time.monotonic(), _host_name(host), self.delay_of(host)
            while (number := self._hosts.acquire(name, self.limit, delay, ignore_delay=is_redirect)) is None:
                if self.is_closed or is_cancelled():
                    raise FetchError("cancelled", url=url)
                time.sleep(_POLL_SECONDS)
            try:
                yield waited + time.monotonic() - began
            finally:
                self._hosts.release(name, number)

    def pause(self, host: Host, seconds: float) -> None:
        super().pause(host, seconds)
        self._hosts.pause(_host_name(host), min(seconds, MAX_PAUSE))


def _host_name(host: Host) -> str:
    return f"{host[0]}:{host[1]}"
