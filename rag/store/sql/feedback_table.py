"""Ratings of answers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from rag.dates import now
from rag.store.sql.table import OWNED, Table, dump


class FeedbackTable(Table):
    def save(
        self,
        turn_id: str,
        library: str,
        owner: str,
        *,
        rating: Literal[-1, 1],
        data: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a person's rating of an answer, replacing their earlier one; return its id.

        `data` may have a reason, a correction and the settings.
        """
        feedback_id = uuid.uuid4().hex
        with self._file.transaction(alone=turn_id) as db:
            db.execute("DELETE FROM feedback WHERE turn_id = ? AND owner = ?", (turn_id, owner))
            db.execute(
                "INSERT INTO feedback (id, turn_id, library, owner, created_at, rating, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (feedback_id, turn_id, library, owner, now(), rating, dump(data or {})),
            )
        return feedback_id

    def withdraw(self, turn_id: str, owner: str) -> None:
        self._file.write("DELETE FROM feedback WHERE turn_id = ? AND owner = ?", turn_id, owner)

    def of_turn(self, turn_id: str, owner: str) -> dict[str, Any] | None:
        """Return this person's rating of the answer."""
        rows = self._file.rows("SELECT * FROM feedback WHERE turn_id = ? AND owner = ?", turn_id, owner)
        return {**dict(rows[-1]), "data": json.loads(rows[-1]["data"])} if rows else None

    def rating_of(self, turn_id: str, owner: str) -> int:
        """Return 1 or -1, or 0 if this person gave no rating."""
        feedback = self.of_turn(turn_id, owner)
        return int(feedback["rating"]) if feedback else 0

    def of_library(self, library: str, owner: str | None = None) -> list[dict[str, Any]]:
        """Return the feedback on answers of the library, oldest first; with `owner` only that person's."""
        rows = self._file.rows(
            f"SELECT * FROM feedback WHERE library = ? AND {OWNED} ORDER BY rowid",
            *(library, owner, owner),
        )
        return [{**dict(row), "data": json.loads(row["data"])} for row in rows]
