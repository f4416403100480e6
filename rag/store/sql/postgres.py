"""A Postgres database with the app's tables, shared by any number of processes; the only module that uses psycopg."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import psycopg
from psycopg.rows import RowMaker, dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from rag.errors import StoreError, StoreUnavailableError
from rag.store.sql.schema import TABLES, VERSION, table_statements
from rag.text import lazy_regex

MAX_CONNECTIONS: Final = 10
"""Connections per process for the tables."""
MAX_CHECKPOINT_CONNECTIONS: Final = 4
"""Connections per process for checkpoints."""
_FUNCTIONS: Final = TABLES.with_name("postgres.sql")
_WAIT: Final = 10.0  # seconds for a connection
_SETUP: Final = 60.0  # seconds for another process to create the tables
_LOCK: Final = 0x7061_6765_6C69_6768  # "pageligh"; must differ from other programs' locks in the database
_TIMEOUTS: Final = {
    "statement_timeout": "60s",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
}
# No prepared statements: pgbouncer may run each transaction on another connection.
_OPTIONS: Final[Mapping[str, Any]] = {"autocommit": True, "prepare_threshold": None}
_NUL_IN_JSON: Final = lazy_regex(r"(?<!\\)((?:\\\\)*)\\u0000")


class Postgres:
    """A connection pool, shared by threads. Methods raise StoreError, StoreUnavailableError if the server is down."""

    def __init__(self, url: str) -> None:
        """Connect, and create the tables in an empty database.

        Raises StoreError if another version of the program created them.
        """
        self.name = database_name(url)
        self._url = url
        self._local = threading.local()
        with self.translate_errors():
            with self.exclusive_connection() as connection:
                _ensure_tables(connection, self.name)
            self.pool = ConnectionPool(
                url,
                kwargs={**_OPTIONS, "row_factory": _row},
                min_size=1,
                max_size=MAX_CONNECTIONS,
                timeout=_WAIT,
                check=ConnectionPool.check_connection,
                configure=_set_timeouts,
                open=False,
            )
            self.pool.open()

    def close(self) -> None:
        self.pool.close()

    def rows(self, statement: str, *values: Any) -> Sequence[PostgresRow]:
        with self._session() as session:
            return session.execute(statement, values).fetchall()

    def write(self, statement: str, *values: Any) -> bool:
        """Run one statement that changes rows; return False if it changed none."""
        with self._session() as session:
            return session.execute(statement, values).rowcount > 0

    @contextmanager
    def transaction(self, lock_name: str = "") -> Iterator[PostgresSession]:
        """Run the block atomically; a nested transaction is part of the outer one.

        Transactions with the same name in `lock_name` run one after another, in any process.
        """
        with self.translate_errors():
            if outer := self._transaction():
                _lock(outer, lock_name)
                yield outer
                return
            with self.pool.connection() as connection, connection.transaction():
                self._local.session = session = PostgresSession(connection)
                try:
                    _lock(session, lock_name)
                    yield session
                finally:
                    self._local.session = None

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn errors of psycopg into StoreError; StoreUnavailableError if the server may answer later."""
        try:
            yield
        except psycopg.errors.DiskFull as error:
            raise StoreError("postgres_full", database=self.name) from error
        except (psycopg.OperationalError, PoolTimeout) as error:
            raise StoreUnavailableError("postgres_away", database=self.name, detail=_detail(error)) from error
        except psycopg.Error as error:
            raise StoreError("postgres_failed", database=self.name, detail=_detail(error)) from error

    @contextmanager
    def exclusive_connection(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        """Yield a connection for schema changes, which only one process at a time can get.

        The lock is polled, because a waiting statement would hold a snapshot, and CREATE INDEX CONCURRENTLY in the
        other process would wait for that: a deadlock.
        """
        with self.translate_errors(), psycopg.connect(self._url, **_OPTIONS, row_factory=dict_row) as connection:
            end = time.monotonic() + _SETUP
            while not connection.execute("SELECT pg_try_advisory_lock(%s) AS got", (_LOCK,)).fetchall()[0]["got"]:
                if time.monotonic() > end:
                    detail = "another process is changing the tables"
                    raise StoreUnavailableError("postgres_away", database=self.name, detail=detail)
                time.sleep(0.05)
            yield connection

    def async_pool(self) -> AsyncConnectionPool[Any]:
        """Return an unopened pool of connections for checkpoints; it belongs to the event loop that opens it."""
        return AsyncConnectionPool(
            self._url,
            kwargs={**_OPTIONS, "row_factory": dict_row},
            min_size=1,
            max_size=MAX_CHECKPOINT_CONNECTIONS,
            timeout=_WAIT,
            check=AsyncConnectionPool.check_connection,
            open=False,
        )

    @contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        """Yield this thread's transaction, or a connection for one statement."""
        with self.translate_errors():
            if outer := self._transaction():
                yield outer
                return
            with self.pool.connection() as connection:
                yield PostgresSession(connection)

    def _transaction(self) -> PostgresSession | None:
        session: PostgresSession | None = getattr(self._local, "session", None)
        return session


class PostgresSession:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        return self._connection.execute(_translate(statement), [*map(_value, values)])

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translate(statement), ([*map(_value, row)] for row in rows))


def _lock(session: PostgresSession, lock_name: str) -> None:
    if lock_name:
        session.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (lock_name,))


class PostgresRow:
    """A row with the interface of sqlite3.Row."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def keys(self) -> Iterable[str]:
        return self._places.keys()

    def __getitem__(self, column: int | str) -> Any:
        return self._values[self._places[column] if isinstance(column, str) else column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


def _row(cursor: psycopg.Cursor[Any]) -> RowMaker[PostgresRow]:
    """Return a row factory that drops the rowid column, as SELECT * does in SQLite."""
    names = [column.name for column in cursor.description or ()]
    indexes = [index for index, name in enumerate(names) if name != "rowid"]
    places = {names[index]: position for position, index in enumerate(indexes)}
    return lambda values: PostgresRow(places, [values[index] for index in indexes])


@lru_cache(maxsize=500)
def _translate(statement: str) -> str:
    """Return the statement in Postgres's dialect: LIKE is case-sensitive there, and placeholders are %s."""
    return statement.replace("%", "%%").replace("?", "%s").replace(" LIKE ", " ILIKE ")


def _value(value: Any) -> Any:
    """Convert a value for Postgres: booleans to integers, as in SQLite, and NUL, which it rejects, to U+FFFD."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and ("\0" in value or "\\u0000" in value):
        return _NUL_IN_JSON.sub("\\1\ufffd", value.replace("\0", "\ufffd"))
    return value


def _set_timeouts(connection: psycopg.Connection[Any]) -> None:
    """Limit how long a connection can block others."""
    for name, value in _TIMEOUTS.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _ensure_tables(connection: psycopg.Connection[dict[str, Any]], name: str) -> None:
    """Create the tables in an empty database. Raises StoreError for tables of another version."""
    connection.execute("CREATE TABLE IF NOT EXISTS pagelight_version (version INTEGER NOT NULL)")
    row = connection.execute("SELECT version FROM pagelight_version").fetchone()
    version = row["version"] if row else 0
    if version == VERSION:
        return
    if version:
        raise StoreError("postgres_newer" if version > VERSION else "postgres_older", database=name)
    # Text sorts bytewise, as in SQLite, and each table gets a rowid.
    statements = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', table_statements())
    rowid = r"\1 rowid BIGINT GENERATED ALWAYS AS IDENTITY,"
    statements = re.sub(r"(?m)^(CREATE TABLE [^(\n]*\()", rowid, statements)
    with connection.transaction():
        connection.execute(_FUNCTIONS.read_text("utf-8"))
        connection.execute(statements)
        connection.execute("INSERT INTO pagelight_version VALUES (%s)", (VERSION,))


def database_name(url: str) -> str:
    """Return the host and name of a database, without the credentials."""
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "DATABASE_URL"
    return f"{parameters.get('host') or 'localhost'}/{parameters.get('dbname') or ''}"


def _detail(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".:")
