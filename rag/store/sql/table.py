"""Common code of the tables, whichever database they are in: a file of SQLite or Postgres, with the same methods."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag.text import without_surrogates

if TYPE_CHECKING:
    import sqlite3

    from rag.store.sql.postgres import Postgres, PostgresRow, PostgresSession
    from rag.store.sql.sqlite_file import SqliteFile

VERSION: Final = 14
"""Raise it with every change of tables.sql, and add what that changes in tables that exist to MIGRATIONS."""
MIGRATIONS: Final[Mapping[int, str]] = {
    13: """
ALTER TABLE jobs ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN lease_until DOUBLE PRECISION NOT NULL DEFAULT 0;
""",
    14: """
ALTER TABLE jobs ADD COLUMN bulk INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN link TEXT NOT NULL DEFAULT '';
""",
}
"""The changes that lead to each version from the one before. Databases of a version before the first are refused."""

TABLES: Final = Path(__file__).with_name("tables.sql")
_COMMENT: Final = re.compile(r"(?m)^--.*\n")
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
    """Return the statements that lead from `version`, 0 for an empty database, to VERSION; None if there is no way."""
    steps = range(version + 1, VERSION + 1) if version else ()
    if any(step not in MIGRATIONS for step in steps):
        return None
    return "".join(MIGRATIONS[step] for step in steps) + _COMMENT.sub("", TABLES.read_text("utf-8"))


class Table:
    """Rows of one kind in a database. Every method raises StoreError when the database fails."""

    def __init__(self, file: File) -> None:
        self._file = file


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """As JSON that a database can keep: halves of characters, which have no encoding, are replaced."""
    return without_surrogates(json.dumps(data, ensure_ascii=False))
