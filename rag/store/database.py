"""Jobs, conversations and feedback in one SQLite file under the data folder."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Literal, cast

from rag.errors import StoreError
from rag.store.records import now
from rag.store.schema import migrate
from rag.types import IngestResult, Stage

JobState = Literal["running", "done", "cancelled"]
_BUSY_MS = 10_000


@dataclass(frozen=True, slots=True)
class JobItem:
    """One source of a job. `result` is there once it is done."""

    position: int
    source: str
    stage: Stage
    result: IngestResult | None


@dataclass(frozen=True, slots=True)
class Job:
    """A job with its items in order. `options` is what the caller stored with it, JSON values only."""

    id: str
    library: str
    owner: str
    created_at: str
    state: JobState
    options: Mapping[str, Any]
    items: tuple[JobItem, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a conversation, as it was stored."""

    id: str
    conversation_id: str
    created_at: str
    answer: Mapping[str, Any]


class Database:
    """Safe to share between threads and processes; every method raises StoreError when the file fails."""

    def __init__(self, path: Path) -> None:
        """Open or create the file at `path`. StoreError when a newer program wrote it."""
        self.path = path
        self._lock = RLock()
        with self._failures():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_BUSY_MS / 1000, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA foreign_keys=ON")
            migrate(self._db, path)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # Jobs

    def create_job(
        self,
        library: str,
        owner: str,
        sources: Sequence[str],
        options: Mapping[str, Any] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """Store a running job whose sources all wait; returns its id.

        `payloads`, one for each source, are what the worker needs to take them in; each is kept until
        its source has a result, and read by `payload` alone.
        """
        job_id = uuid.uuid4().hex
        kept = [None] * len(sources) if payloads is None else [_dump(payload) for payload in payloads]
        rows = [
            (job_id, library, owner, at, source, "waiting", payload)
            for at, (source, payload) in enumerate(zip(sources, kept, strict=True))
        ]
        with self._transaction() as db:
            db.execute(
                "INSERT INTO jobs (id, library, owner, created_at, state, options) VALUES (?, ?, ?, ?, 'running', ?)",
                (job_id, library, owner, now(), _dump(options or {})),
            )
            db.executemany(
                "INSERT INTO job_items (job_id, library, owner, position, source, stage, payload)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
        return job_id

    def update_item(
        self,
        job_id: str,
        position: int,
        *,
        stage: Stage,
        result: IngestResult | Mapping[str, Any] | None = None,
    ) -> None:
        """Move one source to `stage`, with its result once there is one."""
        data = asdict(result) if isinstance(result, IngestResult) else result
        packed = None if data is None else _dump(data)
        with self._transaction() as db:
            db.execute(
                "UPDATE job_items SET stage = ?, result = ?, payload = iif(? IS NULL, payload, NULL)"
                " WHERE job_id = ? AND position = ?",
                (stage, packed, packed, job_id, position),
            )

    def payload(self, job_id: str, position: int) -> dict[str, Any] | None:
        """What was stored with a source for its worker; None once the source has a result."""
        rows = self._rows(
            "SELECT payload FROM job_items WHERE job_id = ? AND position = ? AND payload IS NOT NULL",
            job_id,
            position,
        )
        return cast(dict[str, Any], json.loads(rows[0]["payload"])) if rows else None

    def set_job_state(self, job_id: str, state: JobState) -> None:
        with self._transaction() as db:
            db.execute("UPDATE jobs SET state = ? WHERE id = ?", (state, job_id))

    def job(self, job_id: str) -> Job | None:
        rows = self._rows("SELECT * FROM jobs WHERE id = ?", job_id)
        return self._with_items(rows[0]) if rows else None

    def jobs(self, library: str, limit: int = 20) -> list[Job]:
        """The library's latest jobs, newest first."""
        rows = self._rows(
            "SELECT * FROM jobs WHERE library = ? ORDER BY created_at DESC, rowid DESC LIMIT ?",
            library,
            limit,
        )
        return [self._with_items(row) for row in rows]

    def unfinished_jobs(self) -> list[Job]:
        """Jobs that were running when the process ended, of every library, oldest first."""
        rows = self._rows("SELECT * FROM jobs WHERE state = 'running' ORDER BY created_at, rowid")
        return [self._with_items(row) for row in rows]

    def _with_items(self, row: sqlite3.Row) -> Job:
        items = self._rows(
            "SELECT position, source, stage, result FROM job_items WHERE job_id = ? ORDER BY position", row["id"]
        )
        return Job(
            id=row["id"],
            library=row["library"],
            owner=row["owner"],
            created_at=row["created_at"],
            state=cast(JobState, row["state"]),
            options=json.loads(row["options"]),
            items=tuple(_item(item) for item in items),
        )

    # Conversations

    def save_turn(self, conversation_id: str, library: str, owner: str, answer: Mapping[str, Any]) -> str:
        """Add an answer (JSON values only) to a conversation, which its first one begins.

        Returns the turn's id.
        """
        turn_id, moment = uuid.uuid4().hex, now()
        title = str(answer.get("question", ""))[:200]
        with self._transaction() as db:
            db.execute(
                "INSERT INTO conversations (id, library, owner, title, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at",
                (conversation_id, library, owner, title, moment, moment),
            )
            db.execute(
                "INSERT INTO turns (id, conversation_id, library, owner, created_at, answer) VALUES (?, ?, ?, ?, ?, ?)",
                (turn_id, conversation_id, library, owner, moment, _dump(answer)),
            )
        return turn_id

    def turns(self, conversation_id: str) -> list[Turn]:
        """The answers of a conversation, oldest first."""
        rows = self._rows("SELECT * FROM turns WHERE conversation_id = ? ORDER BY rowid", conversation_id)
        return [Turn(row["id"], row["conversation_id"], row["created_at"], json.loads(row["answer"])) for row in rows]

    # Feedback

    def save_feedback(
        self,
        turn_id: str,
        library: str,
        owner: str,
        *,
        rating: Literal[-1, 1],
        data: Mapping[str, Any] | None = None,
    ) -> str:
        """Store what a person thought of an answer; `data` may hold a reason, a correction, the settings."""
        feedback_id = uuid.uuid4().hex
        with self._transaction() as db:
            db.execute(
                "INSERT INTO feedback (id, turn_id, library, owner, created_at, rating, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (feedback_id, turn_id, library, owner, now(), rating, _dump(data or {})),
            )
        return feedback_id

    def feedback(self, library: str) -> list[dict[str, Any]]:
        """Everything said about answers of the library, oldest first."""
        rows = self._rows("SELECT * FROM feedback WHERE library = ? ORDER BY rowid", library)
        return [{**dict(row), "data": json.loads(row["data"])} for row in rows]

    # The file

    def _rows(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock, self._failures():
            return self._db.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._failures(), self._db:
            yield self._db

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if "full" in str(error) or "No space left" in str(error):
                raise StoreError("store_disk_full", path=str(self.path)) from error
            raise StoreError("database_failed", path=str(self.path), detail=str(error)) from error


def _dump(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)


def _item(row: sqlite3.Row) -> JobItem:
    result = _result(json.loads(row["result"])) if row["result"] else None
    return JobItem(row["position"], row["source"], cast(Stage, row["stage"]), result)


def _result(kept: dict[str, Any]) -> IngestResult:
    return IngestResult(**{**kept, "choices": tuple(kept.get("choices", ()))})
