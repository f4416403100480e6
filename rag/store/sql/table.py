"""Code shared by all tables: the schema version, migrations, SQL fragments and the base class."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag.patterns import lazy_regex
from rag.text import replace_surrogates

if TYPE_CHECKING:
    import sqlite3

    from rag.store.sql.database import SqliteFile
    from rag.store.sql.postgres import Postgres, PostgresRow, PostgresSession

VERSION: Final = 14
"""Schema version: increase it with every change to tables.sql, and add changes of existing tables to MIGRATIONS."""
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
"""Statements to reach each version from the previous one. Databases that are too old for the first are rejected."""

TABLES: Final = Path(__file__).with_name("tables.sql")
_COMMENT: Final = lazy_regex(r"(?m)^--.*\n")
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


def migration(version: int) -> str | None:
    """Return the statements that migrate `version` (0: an empty database) to VERSION; None if it is too old."""
    steps = range(version + 1, VERSION + 1) if version else ()
    if any(step not in MIGRATIONS for step in steps):
        return None
    return "".join(MIGRATIONS[step] for step in steps) + _COMMENT.sub("", TABLES.read_text("utf-8"))


class Table:
    """A base class of tables. Every method raises StoreError if the database fails."""

    def __init__(self, file: File) -> None:
        self._file = file


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """Return the data as JSON, without lone surrogates, which cannot be encoded."""
    return replace_surrogates(json.dumps(data, ensure_ascii=False))
