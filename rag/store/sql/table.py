"""Common code of the tables, whichever database they are in: a file of SQLite or Postgres, with the same methods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag.text import without_surrogates

if TYPE_CHECKING:
    import sqlite3

    from rag.store.sql.postgres import Postgres, PostgresRow, PostgresSession
    from rag.store.sql.sqlite_file import SqliteFile

VERSION: Final = 13
"""Raise it with every change of tables.sql, and add the change to MIGRATIONS."""
MIGRATIONS: Final[Mapping[int, str]] = {
    13: """
ALTER TABLE jobs ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN lease_until DOUBLE PRECISION NOT NULL DEFAULT 0;
CREATE TABLE host_slots (
    host TEXT NOT NULL,
    slot INTEGER NOT NULL,
    free_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (host, slot)
);
CREATE TABLE grants (
    library TEXT NOT NULL,
    subject TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('none', 'reader', 'editor', 'owner')),
    owner TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    PRIMARY KEY (library, subject)
);
CREATE TABLE audit_log (
    library TEXT NOT NULL,
    owner TEXT NOT NULL,
    person TEXT NOT NULL,
    at TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('grant', 'remove_library', 'restore_library', 'remove_pages', 'export')),
    detail TEXT NOT NULL
);
CREATE INDEX audit_log_by_library ON audit_log (library, at);
""",
}
"""The statements that lead to each version from the one before. Databases of a version before the first are refused."""

TABLES: Final = Path(__file__).with_name("tables.sql")
ALL: Final = 2**62
"""A limit that no number of rows reaches."""
CLOCK: Final = "((julianday('now') - 2440587.5) * 86400.0)"
"""The database's own time, in seconds since 1970."""
OWNED: Final = "(CAST(? AS TEXT) IS NULL OR owner = ?)"
"""Rows of a person, passed twice; None asks for everybody's."""
OWNED_OR_SHARED: Final = "(CAST(? AS TEXT) IS NULL OR owner IN (?, ''))"
"""The same with rows that belong to nobody."""

File: TypeAlias = "SqliteFile | Postgres"
Row: TypeAlias = "sqlite3.Row | PostgresRow"
Session: TypeAlias = "sqlite3.Connection | PostgresSession"
"""A transaction under way. Values take the place of question marks."""


def migration(version: int) -> str | None:
    """Return the statements that lead from `version` to VERSION; None if there is no way."""
    steps = range(version + 1, VERSION + 1)
    return "".join(MIGRATIONS[step] for step in steps) if all(step in MIGRATIONS for step in steps) else None


class Table:
    """Rows of one kind in a database. Every method raises StoreError when the database fails."""

    def __init__(self, file: File) -> None:
        self._file = file


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """As JSON that a database can keep: halves of characters, which have no encoding, are replaced."""
    return without_surrogates(json.dumps(data, ensure_ascii=False))
