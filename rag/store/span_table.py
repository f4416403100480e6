"""The spans of answers, for a while."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from rag.store.sqlite_file import SqliteFile
from rag.tracing import Span

DAYS: Final = 30
MOST: Final = 100_000  # spans, each of at most 2 kB: some 30 MB as a rule
_LONGEST: Final = 2_000  # characters of a span's attributes


class SpanTable:
    """Every method raises StoreError when the file fails."""

    def __init__(self, file: SqliteFile, *, days: float = DAYS, most: int = MOST) -> None:
        self._file = file
        self._days = days
        self._most = most

    def save(self, turn_id: str, spans: Sequence[Span]) -> None:
        """Keep the spans of a turn, in the place of those it had, and let go of what is too old or too much."""
        with self._file.transaction() as db:
            db.execute("DELETE FROM spans WHERE turn_id = ?", (turn_id,))
            db.executemany(
                "INSERT INTO spans"
                " (turn_id, library, owner, span_id, parent, name, kind, started_at, ended_at, attributes, status)"
                " SELECT id, library, owner, ?, ?, ?, ?, ?, ?, ?, ? FROM turns WHERE id = ?",
                [(*_values(span), turn_id) for span in spans],
            )
            db.execute(
                "DELETE FROM spans WHERE started_at < ? OR id <= (SELECT max(id) FROM spans) - ?",
                (time.time() - self._days * 86_400, self._most),
            )

    def of_turn(self, turn_id: str, owner: str) -> list[Span]:
        """The spans of a turn in the order in which they began; none where it is somebody else's."""
        rows = self._file.rows("SELECT * FROM spans WHERE turn_id = ? AND owner = ? ORDER BY id", turn_id, owner)
        return [
            Span(
                *(row["name"], row["kind"], row["parent"], row["span_id"], row["started_at"], row["ended_at"]),
                *(json.loads(row["attributes"]), row["status"]),
            )
            for row in rows
        ]


def _values(span: Span) -> tuple[Any, ...]:
    told = json.dumps(span.attributes, ensure_ascii=False, default=str)
    told = told if len(told) <= _LONGEST else json.dumps({"too_long": len(told)})
    return (span.id, span.parent, span.name, span.kind, span.start, span.end, told, span.status)
