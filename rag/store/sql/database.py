"""Database of jobs, schedules, conversations, feedback, evaluations and summaries, in SQLite or Postgres."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from rag.errors import ConfigError, StoreError
from rag.store.sql.conversation_table import (
    ChangeTable,
    ConversationTable,
    RouteTable,
    SpanTable,
)
from rag.store.sql.evaluation_table import CaseTable, LabelTable, RunTable
from rag.store.sql.job_table import FileTable, ItemTable, JobTable
from rag.store.sql.small_tables import FeedbackTable, GrantTable, HostTable, ScheduleTable, SummaryTable
from rag.store.sql.table import VERSION, migration

if TYPE_CHECKING:
    from rag.store.sql.postgres import Postgres

_BUSY_MS = 10_000


class SqliteFile:
    """A SQLite database, safe to share between threads and processes. Methods raise StoreError if the file fails."""

    def __init__(self, path: Path) -> None:
        """Open or create the file at `path`. Raises StoreError if another version of the program wrote it."""
        self.path = path
        self._lock = RLock()
        self._depth = 0
        with translate_errors(self.path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_BUSY_MS / 1000, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            _enable_wal(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA foreign_keys=ON")
            _ensure_tables(self._db, path)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def rows(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock, translate_errors(self.path):
            return self._db.execute(statement, values).fetchall()

    def write(self, statement: str, *values: Any) -> bool:
        """Run one statement that changes rows; return False if it changed none."""
        with self.transaction() as db:
            return db.execute(statement, values).rowcount > 0

    @contextmanager
    def transaction(self, lock_name: str = "") -> Iterator[sqlite3.Connection]:
        """Run the block atomically; a nested transaction is part of the outer one.

        Threads always take turns; `lock_name` also locks out other processes, before the first read.
        """
        with self._lock, translate_errors(self.path):
            if self._depth:
                yield self._db
                return
            self._depth += 1
            try:
                with self._db:
                    if lock_name:
                        self._db.execute("BEGIN IMMEDIATE")
                    yield self._db
            finally:
                self._depth -= 1


def _enable_wal(db: sqlite3.Connection) -> None:
    """Enable the write-ahead log, so that writes do not block reads; retry, as SQLite ignores the timeout here."""
    end = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _ensure_tables(db: sqlite3.Connection, path: Path) -> None:
    """Create the tables in an empty file, or migrate older ones; raise StoreError if that fails."""
    if _version(db) == VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")  # of two processes, the second finds the tables
        version = _version(db)
        statements = migration(version)
        if version > VERSION or statements is None:
            raise StoreError("database_newer" if version > VERSION else "database_older", path=str(path))
        if version < VERSION:
            for statement in statements.split(";"):  # executescript would commit first
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file at `path` into StoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if "full" in str(error) or "No space left" in str(error):
            raise StoreError("store_disk_full", path=str(path)) from error
        raise StoreError("database_failed", path=str(path), detail=str(error)) from error


def connect_shared(path: Path) -> sqlite3.Connection:
    """Open a file for a library that manages its own tables and transactions and synchronises its threads."""
    return sqlite3.connect(path, timeout=_BUSY_MS / 1000, check_same_thread=False, isolation_level=None)


class Database:
    """All tables. Safe to share between threads and processes."""

    def __init__(self, location: Path | str) -> None:
        """Open or create the SQLite file at a path, or the tables in Postgres at a URL.

        Raises StoreError if another version of the program created them, ConfigError if Postgres packages are missing.
        """
        self.postgres = _postgres(location) if isinstance(location, str) else None
        db_file = self.postgres or SqliteFile(Path(location))
        self.rows, self.transaction, self.close = db_file.rows, db_file.transaction, db_file.close
        self.items = ItemTable(db_file)
        self.jobs = JobTable(db_file, self.items)
        self.files = FileTable(db_file)
        self.grants = GrantTable(db_file)
        self.hosts = HostTable(db_file)
        self.schedules = ScheduleTable(db_file)
        self.conversations = ConversationTable(db_file)
        self.changes = ChangeTable(db_file)
        self.spans = SpanTable(db_file)
        self.feedback = FeedbackTable(db_file)
        self.routes = RouteTable(db_file)
        self.cases = CaseTable(db_file)
        self.evaluations = RunTable(db_file)
        self.labels = LabelTable(db_file)
        self.summaries = SummaryTable(db_file)

    def forget_library(self, library: str) -> None:
        """Delete all data of a library, for every owner."""
        tables = ("route_choices", "feedback", "conversations", "schedules", "jobs", "summaries", "grants")
        evaluations = ("evaluation_labels", "evaluation_runs", "evaluation_sets")
        with self.transaction() as db:
            for table in (*tables, *evaluations):
                db.execute(f"DELETE FROM {table} WHERE library = ?", (library,))


def _postgres(url: str) -> Postgres:
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise ConfigError("postgres_package")
    from rag.store.sql.postgres import Postgres  # an optional package

    return Postgres(url)
