"""Jobs: what a person asked to be taken in or looked at again, how far it is, and the files handed in with it."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from rag.dates import now
from rag.store.sql.item_table import ItemTable, NewItem
from rag.store.sql.sqlite_file import SqliteFile, dump
from rag.types import Notice

JobState = Literal["running", "paused", "done", "cancelled"]
JobKind = Literal["pages", "sitemap", "crawl", "feed", "recheck"]
Discovery = Literal["", "waiting", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job without its items. `options` is what the caller stored with it, JSON values only.

    `counts` tells how many items have which status, "" for those without a result. `discovery` says
    whether its addresses are yet to be found, "" when it was given them; `notice` why it stands still
    or found nothing. Times are ISO 8601 in UTC, `finished_at` empty until it ends.
    """

    id: str
    library: str
    owner: str
    created_at: str
    state: JobState
    options: Mapping[str, Any]
    kind: JobKind = "pages"
    title: str = ""
    finished_at: str = ""
    discovery: Discovery = ""
    notice: Notice | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return self.total - self.counts.get("", 0)


class JobTable:
    """Every method raises StoreError when the file fails."""

    def __init__(self, file: SqliteFile, items: ItemTable) -> None:
        self._file = file
        self._items = items

    def create(
        self,
        library: str,
        owner: str,
        items: Iterable[NewItem] = (),
        *,
        kind: JobKind = "pages",
        title: str = "",
        options: Mapping[str, Any] | None = None,
        discovery: Discovery = "",
    ) -> str:
        """Store a running job with its items; returns its id."""
        job_id = uuid.uuid4().hex
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO jobs (id, library, owner, created_at, state, kind, title, discovery, options)"
                " VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?)",
                (job_id, library, owner, now(), kind, title[:300], discovery, dump(options or {})),
            )
            self._items.append(job_id, items)
        return job_id

    def job(self, job_id: str) -> Job | None:
        rows = self._file.rows("SELECT * FROM jobs WHERE id = ?", job_id)
        return self._counted(rows)[0] if rows else None

    def jobs(self, library: str, limit: int = 20, offset: int = 0) -> list[Job]:
        """The library's latest jobs, newest first."""
        rows = self._file.rows(
            "SELECT * FROM jobs WHERE library = ? ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?",
            library,
            limit,
            offset,
        )
        return self._counted(rows)

    def open_of(self, owner: str) -> int:
        """How many jobs of this person have not ended."""
        rows = self._file.rows("SELECT count(*) FROM jobs WHERE state IN ('running', 'paused') AND owner = ?", owner)
        return int(rows[0][0])

    def running(self) -> list[str]:
        """The ids of the jobs that are to be worked on, of every library, oldest first."""
        rows = self._file.rows("SELECT id FROM jobs WHERE state = 'running' ORDER BY created_at, rowid")
        return [row["id"] for row in rows]

    def cut_off(self) -> list[str]:
        """The ids of the cancelled jobs that still have items without a result, after a crash."""
        rows = self._file.rows(
            "SELECT id FROM jobs WHERE state = 'cancelled' AND EXISTS"
            " (SELECT 1 FROM job_items WHERE job_id = jobs.id AND result IS NULL)"
        )
        return [row["id"] for row in rows]

    def state(self, job_id: str) -> JobState | None:
        rows = self._file.rows("SELECT state FROM jobs WHERE id = ?", job_id)
        return cast(JobState, rows[0]["state"]) if rows else None

    def set_state(
        self, job_id: str, state: JobState, notice: Notice | None = None, *, of: Collection[JobState] = ()
    ) -> bool:
        """Change the state, where it is one `of` these if any are given; False when it is another.

        The look and the write are one step, so that what others did with the job meanwhile stays. The
        notice is replaced, by none if none is given.
        """
        told = None if notice is None else dump({"code": notice.code, "params": dict(notice.params)})
        ended = now() if state in ("done", "cancelled") else ""
        among = f" AND state IN ({', '.join('?' * len(of))})" if of else ""
        with self._file.transaction() as db:
            changed = db.execute(
                f"UPDATE jobs SET state = ?, notice = ?, finished_at = ? WHERE id = ?{among}",
                (state, told, ended, job_id, *of),
            )
            return bool(changed.rowcount)

    def end_if_done(self, job_id: str) -> bool:
        """Call a running job done if nothing of it is left to do."""
        with self._file.transaction() as db:
            ended = db.execute(
                "UPDATE jobs SET state = 'done', finished_at = ? WHERE id = ? AND state = 'running'"
                " AND discovery <> 'waiting'"
                " AND NOT EXISTS (SELECT 1 FROM job_items WHERE job_id = jobs.id AND result IS NULL)",
                (now(), job_id),
            )
            return bool(ended.rowcount)

    def set_discovery(self, job_id: str, discovery: Discovery, notice: Notice | None = None) -> None:
        """Note how far the search for addresses is; the notice is replaced, by none if none is given."""
        told = None if notice is None else dump({"code": notice.code, "params": dict(notice.params)})
        with self._file.transaction() as db:
            db.execute("UPDATE jobs SET discovery = ?, notice = ? WHERE id = ?", (discovery, told, job_id))

    def delete(self, job_id: str) -> None:
        """Remove the job with its items; what it took in stays in the library."""
        with self._file.transaction() as db:
            db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def _counted(self, rows: list[sqlite3.Row]) -> list[Job]:
        counts = self._items.counts([row["id"] for row in rows])
        return [_job(row, counts[row["id"]]) for row in rows]


def _job(row: sqlite3.Row, counts: Mapping[str, int]) -> Job:
    fields = dict(row)
    options, notice = json.loads(fields.pop("options")), fields.pop("notice")
    told = Notice(**json.loads(notice)) if notice else None
    return Job(**fields, options=options, notice=told, counts=counts)


class FileTable:
    """Every method raises StoreError when the database's file fails."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, job_id: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Keep the files (name, content) of a job."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO job_files (job_id, library, owner, position, name, data)"
                " SELECT id, library, owner, ?, ?, ? FROM jobs WHERE id = ?",
                [(position, name, data, job_id) for position, (name, data) in enumerate(files)],
            )

    def names(self, job_id: str) -> list[str]:
        rows = self._file.rows("SELECT name FROM job_files WHERE job_id = ? ORDER BY position", job_id)
        return [row["name"] for row in rows]

    def files(self, job_id: str) -> Iterator[tuple[str, bytes]]:
        """The files in their order, one in memory at a time."""
        for position in range(len(self.names(job_id))):
            statement = "SELECT name, data FROM job_files WHERE job_id = ? AND position = ?"
            for row in self._file.rows(statement, job_id, position):
                yield row["name"], row["data"]

    def clear(self, job_id: str) -> None:
        with self._file.transaction() as db:
            db.execute("DELETE FROM job_files WHERE job_id = ?", (job_id,))
