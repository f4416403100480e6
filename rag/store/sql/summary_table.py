"""Summaries of pages, each for one text of a page, in one language, by one author."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag.dates import now
from rag.store.sql.table import Table, dump

MAX_SUMMARIES = 20_000
"""Maximum number of summaries in the database; the oldest are deleted."""


class SummaryTable(Table):
    def save(self, library: str, url_hash: str, text_hash: str, language: str, by: str, data: Mapping[str, Any]) -> str:
        """Store a summary, delete those of the page's other texts, and return its creation time (ISO 8601)."""
        created_at = now()
        with self._file.transaction() as db:
            where = "library = ? AND url_hash = ? AND text_hash != ?"
            db.execute(f"DELETE FROM summaries WHERE {where}", (library, url_hash, text_hash))
            db.execute(
                "INSERT INTO summaries (library, url_hash, text_hash, language, author, created_at, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (library, url_hash, text_hash, language, author)"
                " DO UPDATE SET created_at = excluded.created_at, data = excluded.data",
                (library, url_hash, text_hash, language, by, created_at, dump(data)),
            )
            newest = "SELECT rowid FROM summaries ORDER BY created_at DESC, rowid DESC LIMIT ?"
            db.execute(f"DELETE FROM summaries WHERE rowid NOT IN ({newest})", (MAX_SUMMARIES,))
        return created_at

    def find(self, library: str, url_hash: str, text_hash: str, language: str, by: str = "") -> dict[str, Any] | None:
        """Return the newest summary of a text and language, by this author or any: `data`, `author`, `created_at`."""
        rows = self._file.rows(
            "SELECT * FROM summaries WHERE library = ? AND url_hash = ? AND text_hash = ? AND language = ?"
            " AND (? = '' OR author = ?) ORDER BY created_at DESC, rowid DESC LIMIT 1",
            *(library, url_hash, text_hash, language, by, by),
        )
        return {**dict(rows[0]), "data": json.loads(rows[0]["data"])} if rows else None

    def forget(self, library: str, url_hashes: Sequence[str]) -> None:
        with self._file.transaction() as db:
            db.executemany(
                "DELETE FROM summaries WHERE library = ? AND url_hash = ?", [(library, key) for key in url_hashes]
            )
