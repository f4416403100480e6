"""What a person changed while a question was being answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.store.records import now
from rag.store.sqlite_file import SqliteFile, dump


@dataclass(frozen=True, slots=True)
class Change:
    """`budget` raises that of the run by its `data` (calls, tokens, seconds); other kinds are for the mode to name."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class ChangeTable:
    """Every method raises StoreError when the file fails."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def add(self, turn_id: str, owner: str, change: Change) -> bool:
        """Keep it (JSON values); False if the turn has ended, is not there or somebody else's."""
        with self._file.transaction() as db:
            done = db.execute(
                "INSERT INTO turn_changes (turn_id, library, owner, created_at, kind, data)"
                " SELECT id, library, owner, ?, ?, ? FROM turns WHERE id = ? AND owner = ? AND state = 'running'",
                (now(), change.kind, dump(change.data), turn_id, owner),
            )
        return done.rowcount > 0

    def of_turn(self, turn_id: str) -> list[Change]:
        """All of them, oldest first."""
        rows = self._file.rows("SELECT kind, data FROM turn_changes WHERE turn_id = ? ORDER BY id", turn_id)
        return [Change(row["kind"], json.loads(row["data"])) for row in rows]
