"""A SQLite file with the app's tables and their schema version, and the base class of tables."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag.errors import StoreError
from rag.store.sql.schema import VERSION, table_statements
from rag.text import replace_surrogates

if TYPE_CHECKING:
    from rag.store.sql.postgres import Postgres, PostgresRow, PostgresSession

_BUSY_MS: Final = 10_000
ALL: Final = 2**62
"""A limit larger than any number of rows."""
CLOCK: Final = "((julianday('now') - 2440587.5) * 86400.0)"
"""SQL for the database's current time, in seconds since 1970."""
OWNED: Final = "(CAST(? AS TEXT) IS NULL OR owner = ?)"
"""Condition for the rows of an owner (bind it twice), or all rows if it is None."""
OWNED_OR_SHARED: Final = "(CAST(? AS TEXT) IS NULL OR owner IN (?, ''))"
"""The same, including rows without an owner."""

File: TypeAlias = "SqliteFile | Postgres"
Row: TypeAlias = "sqlite3.Row | PostgresRow"
Session: TypeAlias = "sqlite3.Connection | PostgresSession"
"""An open transaction. Statements use question marks as placeholders."""


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
    """Create the tables in an empty file. Raises StoreError for a file of another version."""
    if _version(db) == VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")  # of two processes, the second finds the tables
        version = _version(db)
        if version not in (0, VERSION):
            raise StoreError("database_newer" if version > VERSION else "database_older", path=str(path))
        if not version:
            for statement in table_statements().split(";"):  # executescript would commit first
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


class Table:
    """A base class of tables. Every method raises StoreError if the database fails."""

    def __init__(self, file: File) -> None:
        self._file = file


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """Return the data as JSON, without lone surrogates, which cannot be encoded."""
    return replace_surrogates(json.dumps(data, ensure_ascii=False))
