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

VERSION: Final = 12
"""Raise it with every change of tables.sql: a database with another version is refused."""

TABLES: Final = Path(__file__).with_name("tables.sql")
ALL: Final = 2**62
"""A limit that no number of rows reaches."""
OWNED: Final = "(CAST(? AS TEXT) IS NULL OR owner = ?)"
"""Rows of a person, passed twice; None asks for everybody's."""
OWNED_OR_SHARED: Final = "(CAST(? AS TEXT) IS NULL OR owner IN (?, ''))"
"""The same with rows that belong to nobody."""

File: TypeAlias = "SqliteFile | Postgres"
Row: TypeAlias = "sqlite3.Row | PostgresRow"
Session: TypeAlias = "sqlite3.Connection | PostgresSession"
"""A transaction under way. Values take the place of question marks."""


class Table:
    """Rows of one kind in a database. Every method raises StoreError when the database fails."""

    def __init__(self, file: File) -> None:
        self._file = file


def dump(data: Mapping[str, Any] | list[Any]) -> str:
    """As JSON that a database can keep: halves of characters, which have no encoding, are replaced."""
    return without_surrogates(json.dumps(data, ensure_ascii=False))
