"""Jobs: imports and re-checks, their progress, and their uploaded files.

Each item of a job is one source and ends with exactly one result.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, cast

from rag.store.sql.table import ALL, CLOCK, OWNED_OR_SHARED, File, Row, Session, Table, dump
from rag.store.values import now
from rag.types import Decision, IngestResult, Notice, Stage

_COLUMNS = "position, source, url, url_hash, depth, parent, stage, decision, attempts, started_at, finished_at, result"
# Items that can be retried keep their source data; others drop it.
_RETRIABLE = frozenset(["failed"])
_LEASE_COLUMNS = frozenset(["worker", "token", "lease_until"])
_BATCH_COUNTS = ("added", "unchanged", "held", "failed")
LEASE: Final = 30.0
"""Seconds without renewal after which another process may take over a job."""
JobState = Literal["running", "paused", "done", "cancelled"]
JobKind = Literal["pages", "sitemap", "crawl", "feed", "recheck"]
Discovery = Literal["", "waiting", "done", "failed"]


@dataclass(frozen=True, slots=True)
class JobItem:
    """One source of a job. `result` is None until it is done.

    `depth` counts the links from the start of a crawl, `parent` is the position of the item with the link. `attempts`
    counts how often it was started; times are ISO 8601 in UTC, or empty. Only `ItemTable.open_items` loads the `kind`.
    """

    position: int
    source: str
    stage: Stage
    result: IngestResult | None
    url: str = ""
    url_hash: str = ""
    depth: int = 0
    parent: int | None = None
    decision: Decision = ""
    attempts: int = 0
    started_at: str = ""
    finished_at: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to add. `payload` (JSON values) and `data` are the worker's input.

    A job has one item per `url_hash`: further ones are ignored, unless it is "".
    """

    source: str
    url: str = ""
    url_hash: str = ""
    payload: Mapping[str, Any] | None = None
    data: bytes | None = None
    depth: int = 0
    parent: int | None = None
    result: IngestResult | None = None


class ItemTable(Table):
    def append(self, job_id: str, items: Iterable[NewItem]) -> int:
        """Add items to a running or paused job; return how many were new."""
        added = 0
        with self._file.transaction(lock_name=job_id) as db:
            row = db.execute(
                "SELECT library, owner, (SELECT coalesce(max(position) + 1, 0) FROM job_items WHERE job_id = jobs.id)"
                " AS next FROM jobs WHERE id = ? AND state IN ('running', 'paused')",
                (job_id,),
            ).fetchone()
            if row is None:
                return 0
            for item in items:
                added += _insert(db, (job_id, row["library"], row["owner"], row["next"] + added), item)
        return added

    def start_attempt(self, job_id: str, position: int) -> None:
        """Count an attempt; the first one since the item was queued sets the start time."""
        self._file.write(
            "UPDATE job_items SET attempts = attempts + 1,"
            " started_at = CASE started_at WHEN '' THEN ? ELSE started_at END"
            " WHERE job_id = ? AND position = ? AND result IS NULL",
            *(now(), job_id, position),
        )

    def set_stage(self, job_id: str, position: int, stage: Stage) -> None:
        self._file.write(
            "UPDATE job_items SET stage = ? WHERE job_id = ? AND position = ? AND result IS NULL",
            *(stage, job_id, position),
        )

    def finish(self, job_id: str, position: int, result: IngestResult) -> bool:
        """Store the item's result; return False, without a change, if it already has one."""
        with self._file.transaction() as db:
            return _finish(db, job_id, position, result)

    def finish_open(
        self, job_id: str, result: Callable[[JobItem], IngestResult], except_positions: Collection[int] = ()
    ) -> int:
        """Finish all items without a result, except at these positions, with `result(item)`; return how many."""
        with self._file.transaction(lock_name=job_id) as db:
            items = [item for item in self.open_items(job_id) if item.position not in except_positions]
            return sum(_finish(db, job_id, item.position, result(item)) for item in items)

    def replace(self, job_id: str, position: int, result: IngestResult) -> None:
        """Store the item's result even if it already has one."""
        with self._file.transaction() as db:
            db.execute("UPDATE job_items SET result = NULL WHERE job_id = ? AND position = ?", (job_id, position))
            _finish(db, job_id, position, result)

    def requeue(self, job_id: str, position: int, decision: Decision) -> None:
        """Requeue an item with the user's decision."""
        self._file.write(f"{_REQUEUE} decision = ? WHERE job_id = ? AND position = ?", decision, job_id, position)

    def requeue_failed(self, job_id: str) -> int:
        """Requeue all failed items; return how many."""
        with self._file.transaction() as db:
            statement = f"{_REQUEUE} decision = decision WHERE job_id = ? AND status = 'failed'"
            batches = " AND (payload IS NOT NULL OR job_id IN (SELECT id FROM jobs WHERE bulk = 0))"  # not batch pages
            return db.execute(statement + batches, (job_id,)).rowcount

    def count_stored_files(self, library: str, owner: str | None, reading: int) -> int:
        """Count the library's stored files that were last parsed by a version before `reading`.

        With `owner`, count only that user's and those without an owner.
        """
        values = (library, owner, owner, reading)
        rows = self._file.rows(f"SELECT count(*) AS number FROM job_items WHERE {_STORED_FILES}", *values)
        return int(rows[0]["number"])

    def requeue_files(self, library: str, owner: str | None, reading: int) -> list[str]:
        """Requeue the items that `count_stored_files` counts; return the ids of their jobs."""
        with self._file.transaction() as db:
            values = (library, owner, owner, reading)
            rows = db.execute(f"SELECT DISTINCT job_id FROM job_items WHERE {_STORED_FILES}", values).fetchall()
            statement = f"{_REQUEUE} decision = '', payload = json_patch(payload, ?) WHERE {_STORED_FILES}"
            db.execute(statement, (dump({"reading": reading}), *values))
            return [row["job_id"] for row in rows]

    def requeue_running(self, job_id: str) -> None:
        """Requeue items that were in progress when the process ended."""
        self._file.write(
            "UPDATE job_items SET stage = 'waiting' WHERE job_id = ? AND result IS NULL AND stage <> 'waiting'", job_id
        )

    def _select(self, condition: str, *values: Any, columns: str = _COLUMNS) -> list[JobItem]:
        """Return the items of a job, the first of `values`, that fulfil the condition, in order."""
        statement = f"SELECT {columns} FROM job_items WHERE job_id = ?{condition} ORDER BY position LIMIT ? OFFSET ?"
        return [_item(row) for row in self._file.rows(statement, *values)]

    def item(self, job_id: str, position: int) -> JobItem | None:
        return next(iter(self._select(" AND position = ?", job_id, position, 1, 0)), None)

    def find_open(self, job_id: str, position: int) -> JobItem | None:
        """Return the item if it has no result and its job is running or paused."""
        is_open = " AND result IS NULL AND (SELECT state FROM jobs WHERE id = job_id) IN ('running', 'paused')"
        return next(iter(self._select(f" AND position = ?{is_open}", job_id, position, 1, 0)), None)

    def items(self, job_id: str, offset: int = 0, limit: int = ALL, statuses: Sequence[str] = ()) -> list[JobItem]:
        """Return `limit` items in order, from `offset`, optionally only with `statuses` ("": no result yet)."""
        condition = f" AND status IN ({', '.join('?' * len(statuses))})" if statuses else ""
        return self._select(condition, job_id, *statuses, limit, offset)

    def open_items(self, job_id: str, limit: int = ALL) -> list[JobItem]:
        """Return the first `limit` items without a result, with their `kind`."""
        kind = "coalesce(json_extract(payload, '$.kind'), '') AS kind"
        return self._select(" AND result IS NULL", job_id, limit, 0, columns=f"{_COLUMNS}, {kind}")

    def current_items(self, job_id: str) -> list[JobItem]:
        return self._select(" AND result IS NULL AND stage <> 'waiting'", job_id, ALL, 0)

    def counts(self, job_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the number of items by status for each job; "" counts those without a result."""
        counts: dict[str, dict[str, int]] = {job_id: {} for job_id in job_ids}
        if not counts:
            return counts
        rows = self._file.rows(
            "SELECT job_id, status, count(*) AS number FROM job_items"
            f" WHERE job_id IN ({', '.join('?' * len(job_ids))}) GROUP BY job_id, status",
            *job_ids,
        )
        for row in rows:
            counts[row["job_id"]][row["status"]] = row["number"]
        return counts

    def count(self, job_id: str) -> int:
        return int(self._file.rows("SELECT count(*) AS number FROM job_items WHERE job_id = ?", job_id)[0]["number"])

    def sums(self, job_id: str, names: Sequence[str]) -> dict[str, int]:
        """Sum these params of the results of the job's items."""
        sums = ", ".join(
            f"sum(CAST(json_extract(result, '$.notice.params.{name}') AS INTEGER)) AS {name}" for name in names
        )
        row = self._file.rows(f"SELECT {sums} FROM job_items WHERE job_id = ?", job_id)[0]
        return {name: int(row[name] or 0) for name in names}

    def payload(self, job_id: str, position: int) -> tuple[dict[str, Any], bytes | None] | None:
        """Return the worker's input (payload, data) of an item; None if it was deleted, as no retry is possible."""
        rows = self._file.rows(
            "SELECT payload, data FROM job_items WHERE job_id = ? AND position = ? AND payload IS NOT NULL",
            job_id,
            position,
        )
        return (cast(dict[str, Any], json.loads(rows[0]["payload"])), rows[0]["data"]) if rows else None


_STORED_FILES = (
    f"library = ? AND {OWNED_OR_SHARED} AND data IS NOT NULL AND result IS NOT NULL"
    " AND coalesce(CAST(json_extract(payload, '$.reading') AS INTEGER), 0) < ?"
)
_REQUEUE = "UPDATE job_items SET result = NULL, status = '', stage = 'waiting', started_at = '', finished_at = '',"


def _insert(db: Session, key: tuple[str, str, str, int], item: NewItem) -> int:
    is_done = item.result is not None
    row = {
        "url": item.url,
        "url_hash": item.url_hash,
        "depth": item.depth,
        "parent": item.parent,
        "payload": None if item.payload is None else dump(item.payload),
        "data": item.data,
        "stage": "done" if is_done else "waiting",
        "status": item.result.status if item.result else "",
        "result": dump(asdict(item.result)) if item.result else None,
        "finished_at": now() if is_done else "",
    }
    names = ", ".join(("job_id", "library", "owner", "position", "source", *row))
    marks = ", ".join("?" * (5 + len(row)))
    # Ignore only conflicts of the hash: a conflict of the position would be a bug.
    statement = f"INSERT INTO job_items ({names}) VALUES ({marks}) ON CONFLICT (job_id, url_hash)"
    return db.execute(f"{statement} WHERE url_hash <> '' DO NOTHING", (*key, item.source, *row.values())).rowcount


def _finish(db: Session, job_id: str, position: int, result: IngestResult) -> bool:
    is_retriable = result.status in _RETRIABLE or bool(result.choices)
    cleared = "" if is_retriable else ", payload = NULL, data = NULL"
    cursor = db.execute(
        f"UPDATE job_items SET stage = 'done', status = ?, result = ?, finished_at = ?{cleared}"
        " WHERE job_id = ? AND position = ? AND result IS NULL",
        (result.status, dump(asdict(result)), now(), job_id, position),
    )
    return bool(cursor.rowcount)


def _item(row: Row) -> JobItem:
    fields = dict(row)
    data = json.loads(fields.pop("result") or "null")
    return JobItem(**fields, result=_result(data) if data else None)


def _result(data: dict[str, Any]) -> IngestResult:
    return IngestResult(**{**data, "notice": Notice(**data["notice"]), "choices": tuple(data["choices"])})


@dataclass(frozen=True, slots=True)
class Job:
    """A job without its items. `options` are the caller's (JSON values).

    `counts` is the number of items by status ("": no result yet). `discovery` is the state of the search for addresses,
    "" if they were given; `notice` says why the job is paused or found nothing. Times are ISO 8601 in UTC;
    `finished_at` is empty until it ends. The command that started a `bulk` job (1, else 0) also runs it, no app does;
    its items are batches, and `pages` counts their pages by result.
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
    bulk: int = 0
    notice: Notice | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    pages: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return self.total - self.counts.get("", 0)


class JobTable:
    """Jobs and their leases. Methods raise StoreError if the database fails."""

    def __init__(self, file: File, items: ItemTable) -> None:
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
        bulk: bool = False,
    ) -> str:
        """Store a running job with its items; return its id."""
        job_id = uuid.uuid4().hex
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO jobs (id, library, owner, created_at, state, kind, title, discovery, options, bulk)"
                " VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
                (job_id, library, owner, now(), kind, title[:300], discovery, dump(options or {}), int(bulk)),
            )
            self._items.append(job_id, items)
        return job_id

    def job(self, job_id: str) -> Job | None:
        rows = self._file.rows("SELECT * FROM jobs WHERE id = ?", job_id)
        return self._add_counts(rows)[0] if rows else None

    def jobs(self, library: str, owner: str | None = None, limit: int = 20, offset: int = 0) -> list[Job]:
        """Return the library's jobs, newest first; with `owner`, only that user's and those without an owner."""
        rows = self._file.rows(
            f"SELECT * FROM jobs WHERE library = ? AND {OWNED_OR_SHARED}"
            " ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?",
            *(library, owner, owner, limit, offset),
        )
        return self._add_counts(rows)

    def count_open(self, owner: str) -> int:
        """Count the unfinished jobs of this user."""
        rows = self._file.rows("SELECT count(*) FROM jobs WHERE state IN ('running', 'paused') AND owner = ?", owner)
        return int(rows[0][0])

    def has_running(self) -> bool:
        """Return whether a job that an app can work on is running."""
        return bool(self._file.rows("SELECT 1 FROM jobs WHERE state = 'running' AND bulk = 0 LIMIT 1"))

    def unfinished_bulk_jobs(self, library: str) -> list[Job]:
        """Return the library's running and paused bulk jobs, without counts, oldest first."""
        rows = self._file.rows(
            "SELECT * FROM jobs WHERE library = ? AND bulk = 1 AND state IN ('running', 'paused')"
            " ORDER BY created_at, rowid",
            library,
        )
        return [_job(row, {}) for row in rows]

    def acquire_leases(self, worker: str, may_be_alive: Callable[[str], bool], bulk_job: str = "") -> dict[str, int]:
        """Lease running jobs that have no live worker; return all jobs of `worker`, oldest first, with their tokens.

        The token increases with each change of worker, so that a worker wrongly considered dead notices. The clock is
        the database's. A worker whose process is known to be dead loses its jobs at once. With `bulk_job`, only that
        job is leased, otherwise no bulk jobs.
        """
        jobs = self._file.rows(
            f"SELECT id, token, worker, lease_until < {CLOCK} AS ended FROM jobs WHERE state = 'running'"
            " AND CASE bulk WHEN 1 THEN id ELSE '' END = ? ORDER BY created_at, rowid",
            bulk_job,
        )
        tokens = {}
        for job in jobs:
            token, is_ours = job["token"], job["worker"] == worker
            if not is_ours and (job["ended"] or not may_be_alive(job["worker"])):
                # Compare-and-set: only one process finds the token unchanged.
                is_ours = self._file.write(
                    f"UPDATE jobs SET worker = ?, token = token + 1, lease_until = {CLOCK} + ?"
                    " WHERE id = ? AND token = ? AND state = 'running'",
                    *(worker, LEASE, job["id"], token),
                )
                token += 1
            if is_ours:
                tokens[job["id"]] = token
        return tokens

    def renew_leases(self, worker: str) -> None:
        """Extend all leases of `worker`."""
        self._file.write(f"UPDATE jobs SET lease_until = {CLOCK} + ? WHERE worker = ?", LEASE, worker)

    def renew_lease(self, job_id: str, token: int) -> bool:
        """Renew one lease; return False if another process has taken over the job.

        Inside a transaction, no process can take it over before the end.
        """
        statement = f"UPDATE jobs SET lease_until = {CLOCK} + ? WHERE id = ? AND token = ?"
        return self._file.write(statement, LEASE, job_id, token)

    def release(self, worker: str, job_id: str = "") -> None:
        """End the worker's lease on a job, or all its leases."""
        only, values = (" AND id = ?", (worker, job_id)) if job_id else ("", (worker,))
        self._file.write(f"UPDATE jobs SET worker = '', lease_until = 0 WHERE worker = ?{only}", *values)

    def cancelled_with_open_items(self) -> list[str]:
        """Return the ids of cancelled jobs that have unfinished items but no worker."""
        rows = self._file.rows(
            f"SELECT id FROM jobs WHERE state = 'cancelled' AND lease_until < {CLOCK} AND EXISTS"
            " (SELECT 1 FROM job_items WHERE job_id = jobs.id AND result IS NULL)"
        )
        return [row["id"] for row in rows]

    def state(self, job_id: str) -> JobState | None:
        rows = self._file.rows("SELECT state FROM jobs WHERE id = ?", job_id)
        return cast(JobState, rows[0]["state"]) if rows else None

    def set_state(
        self, job_id: str, state: JobState, notice: Notice | None = None, *, from_states: Collection[JobState] = ()
    ) -> bool:
        """Set the state if the current one is in `from_states` or that is empty; return False otherwise.

        Check and write are one statement, so that concurrent changes are not lost. None clears the notice.
        """
        notice_json = None if notice is None else dump({"code": notice.code, "params": dict(notice.params)})
        finished_at = now() if state in ("done", "cancelled") else ""
        condition = f" AND state IN ({', '.join('?' * len(from_states))})" if from_states else ""
        return self._file.write(
            f"UPDATE jobs SET state = ?, notice = ?, finished_at = ? WHERE id = ?{condition}",
            *(state, notice_json, finished_at, job_id, *from_states),
        )

    def end_if_done(self, job_id: str) -> bool:
        """Mark a running job as done if all its addresses are known and all items have a result."""
        with self._file.transaction(lock_name=job_id) as db:  # blocks new items
            cursor = db.execute(
                "UPDATE jobs SET state = 'done', finished_at = ? WHERE id = ? AND state = 'running'"
                " AND discovery <> 'waiting'"
                " AND NOT EXISTS (SELECT 1 FROM job_items WHERE job_id = jobs.id AND result IS NULL)",
                (now(), job_id),
            )
            return cursor.rowcount > 0

    def set_discovery(self, job_id: str, discovery: Discovery, notice: Notice | None = None) -> None:
        """Set the state of the search for addresses, and the notice, which None clears."""
        notice_json = None if notice is None else dump({"code": notice.code, "params": dict(notice.params)})
        self._file.write("UPDATE jobs SET discovery = ?, notice = ? WHERE id = ?", discovery, notice_json, job_id)

    def delete(self, job_id: str) -> None:
        """Delete the job and its items; pages that it added stay in the library."""
        self._file.write("DELETE FROM jobs WHERE id = ?", job_id)

    def _add_counts(self, rows: Sequence[Row]) -> list[Job]:
        counts = self._items.counts([row["id"] for row in rows])
        jobs = [_job(row, counts[row["id"]]) for row in rows]
        return [replace(job, pages=self._items.sums(job.id, _BATCH_COUNTS)) if job.bulk else job for job in jobs]


def _job(row: Row, counts: Mapping[str, int]) -> Job:
    fields = {name: row[name] for name in row.keys() if name not in _LEASE_COLUMNS}  # noqa: SIM118 - a Row is no dict
    options, notice_json = json.loads(fields.pop("options")), fields.pop("notice")
    notice = Notice(**json.loads(notice_json)) if notice_json else None
    return Job(**fields, options=options, notice=notice, counts=counts)


class FileTable(Table):
    def add(self, job_id: str, files: Sequence[tuple[str, bytes]]) -> None:
        """Store the files (name, content) of a job."""
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
        """Yield the files in order, one in memory at a time."""
        for position in range(len(self.names(job_id))):
            statement = "SELECT name, data FROM job_files WHERE job_id = ? AND position = ?"
            for row in self._file.rows(statement, job_id, position):
                yield row["name"], row["data"]

    def clear(self, job_id: str) -> None:
        self._file.write("DELETE FROM job_files WHERE job_id = ?", job_id)
