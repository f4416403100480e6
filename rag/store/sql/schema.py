"""The schema of the app's tables, for SQLite and Postgres."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rag.text import lazy_regex

VERSION: Final = 15
"""Schema version: increase it with every change to tables.sql. Databases of other versions are rejected."""
TABLES: Final = Path(__file__).with_name("tables.sql")
_COMMENT: Final = lazy_regex(r"(?m)^--.*\n")


def table_statements() -> str:
    """Return the statements that create the tables, without comments."""
    return _COMMENT.sub("", TABLES.read_text("utf-8"))
