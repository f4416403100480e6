"""Sets of questions, runs over them with a row for each question and setting, and labels that people gave."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rag.dates import now
from rag.errors import RagError
from rag.store.sql.sqlite_file import Table, dump

RunState = Literal["running", "paused", "done", "cancelled"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeptSet:
    id: str
    library: str
    owner: str
    name: str
    created_at: str
    updated_at: str


class CaseTable(Table):
    """Sets, and their cases as JSON values in order."""

    def add_set(self, library: str, owner: str, name: str) -> str:
        """Make an empty set, or find the one of that name; returns its id."""
        values = (uuid.uuid4().hex, library, owner, name, now(), now())
        self._file.write("INSERT OR IGNORE INTO evaluation_sets VALUES (?, ?, ?, ?, ?, ?)", *values)
        found = self._file.rows("SELECT id FROM evaluation_sets WHERE library = ? AND name = ?", library, name)
        return str(found[0]["id"])

    def sets(self, library: str) -> list[KeptSet]:
        """Those of the library, by name."""
        rows = self._file.rows("SELECT * FROM evaluation_sets WHERE library = ? ORDER BY name", library)
        return [KeptSet(**dict(row)) for row in rows]

    def set_of(self, set_id: str) -> KeptSet | None:
        rows = self._file.rows("SELECT * FROM evaluation_sets WHERE id = ?", set_id)
        return KeptSet(**dict(rows[0])) if rows else None

    def delete(self, set_id: str) -> None:
        """Remove the set; runs over it keep their questions."""
        self._file.write("DELETE FROM evaluation_sets WHERE id = ?", set_id)

    def put(self, set_id: str, cases: Iterable[tuple[str, Row]]) -> None:
        """Keep cases by their ids, new ones behind the others."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO evaluation_cases (set_id, case_id, library, owner, position, data)"
                " SELECT id, ?, library, owner,"
                " (SELECT coalesce(max(position), 0) + 1 FROM evaluation_cases WHERE set_id = evaluation_sets.id), ?"
                " FROM evaluation_sets WHERE id = ?"
                " ON CONFLICT (set_id, case_id) DO UPDATE SET data = excluded.data",
                [(case_id, dump(data), set_id) for case_id, data in cases],
            )
            db.execute("UPDATE evaluation_sets SET updated_at = ? WHERE id = ?", (now(), set_id))

    def remove(self, set_id: str, case_ids: Sequence[str]) -> None:
        with self._file.transaction() as db:
            given = [(set_id, one) for one in case_ids]
            db.executemany("DELETE FROM evaluation_cases WHERE set_id = ? AND case_id = ?", given)
            db.execute("UPDATE evaluation_sets SET updated_at = ? WHERE id = ?", (now(), set_id))

    def cases(self, set_id: str) -> list[Row]:
        rows = self._file.rows("SELECT data FROM evaluation_cases WHERE set_id = ? ORDER BY position", set_id)
        return [json.loads(row["data"]) for row in rows]


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run over `total` questions and settings, `done` of which have their row. `data` is JSON values."""

    id: str
    library: str
    owner: str
    name: str
    set_id: str
    created_at: str
    finished_at: str
    state: RunState
    process: str
    seen_at: float
    total: int
    data: Row = field(default_factory=dict)
    done: int = 0


@dataclass(frozen=True, slots=True)
class KeptRow:
    """What one question came to under one setting: its scores, and what else is kept of it, JSON values."""

    setting: str
    case_id: str
    scores: Mapping[str, float | None]
    data: Row


_RUN = (
    "SELECT id, library, owner, name, set_id, created_at, finished_at, state, process, seen_at, total, data,"
    " (SELECT count(*) FROM evaluation_rows WHERE run_id = evaluation_runs.id) AS done FROM evaluation_runs"
)


class RunTable(Table):
    def create(
        self, library: str, owner: str, name: str, set_id: str, cases: Sequence[Row], total: int, data: Row
    ) -> str:
        """Store a running run with its questions; returns its id."""
        run_id = uuid.uuid4().hex
        self._file.write(
            "INSERT INTO evaluation_runs (id, library, owner, name, set_id, created_at, state, total, cases, data)"
            " VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?)",
            *(run_id, library, owner, name, set_id, now(), total, _packed(list(cases)), dump(data)),
        )
        return run_id

    def run(self, run_id: str) -> KeptRun | None:
        rows = self._file.rows(f"{_RUN} WHERE id = ?", run_id)
        return _run(rows[0]) if rows else None

    def runs(self, library: str) -> list[KeptRun]:
        """Those of the library, newest first."""
        return [
            _run(row)
            for row in self._file.rows(f"{_RUN} WHERE library = ? ORDER BY created_at DESC, rowid DESC", library)
        ]

    def running(self) -> list[KeptRun]:
        """Those that are to be worked on, of every library, oldest first."""
        return [_run(row) for row in self._file.rows(f"{_RUN} WHERE state = 'running' ORDER BY created_at, rowid")]

    def cases(self, run_id: str) -> list[Row]:
        """Its questions, as they were when it began."""
        rows = self._file.rows("SELECT cases FROM evaluation_runs WHERE id = ?", run_id)
        return _unpacked(rows[0]["cases"]) if rows else []

    def claim(self, run_id: str, process: str, before: str) -> bool:
        """Take up a run that `before` had; False where another process was first."""
        return self._file.write(
            "UPDATE evaluation_runs SET process = ?, seen_at = ? WHERE id = ? AND process = ? AND state = 'running'",
            *(process, time.time(), run_id, before),
        )

    def seen(self, run_id: str) -> RunState | None:
        """Note that its process is alive; returns what it should do."""
        self._file.write("UPDATE evaluation_runs SET seen_at = ? WHERE id = ?", time.time(), run_id)
        rows = self._file.rows("SELECT state FROM evaluation_runs WHERE id = ?", run_id)
        return rows[0]["state"] if rows else None

    def set_state(self, run_id: str, state: RunState, of: Sequence[RunState], data: Row | None = None) -> bool:
        """Change the state where it is one `of` these; `data` is added to what is kept."""
        ended = now() if state in ("done", "cancelled") else ""
        return self._file.write(
            "UPDATE evaluation_runs SET state = ?, finished_at = ?, process = '', data = json_patch(data, ?)"
            f" WHERE id = ? AND state IN ({', '.join('?' * len(of))})",
            *(state, ended, dump(data or {}), run_id, *of),
        )

    def delete(self, run_id: str) -> None:
        self._file.write("DELETE FROM evaluation_runs WHERE id = ?", run_id)

    def add_row(self, run_id: str, row: KeptRow) -> bool:
        """Keep a row; False where there is one, or the run is gone."""
        return self._file.write(
            "INSERT OR IGNORE INTO evaluation_rows SELECT id, ?, ?, library, owner, ?, ?, ?"
            " FROM evaluation_runs WHERE id = ?",
            *(row.setting, row.case_id, now(), dump(row.scores), _packed(row.data), run_id),
        )

    def scores(self, run_id: str) -> dict[str, dict[str, Mapping[str, float | None]]]:
        """All scores by setting and question."""
        found: dict[str, dict[str, Mapping[str, float | None]]] = {}
        for row in self._file.rows("SELECT setting, case_id, scores FROM evaluation_rows WHERE run_id = ?", run_id):
            found.setdefault(row["setting"], {})[row["case_id"]] = json.loads(row["scores"])
        return found

    def row(self, run_id: str, setting: str, case_id: str) -> KeptRow | None:
        statement = "SELECT * FROM evaluation_rows WHERE run_id = ? AND setting = ? AND case_id = ?"
        rows = self._file.rows(statement, run_id, setting, case_id)
        return _row(rows[0]) if rows else None

    def rows(self, run_id: str, setting: str) -> list[KeptRow]:
        statement = "SELECT * FROM evaluation_rows WHERE run_id = ? AND setting = ? ORDER BY rowid"
        return [_row(row) for row in self._file.rows(statement, run_id, setting)]


def _run(row: sqlite3.Row) -> KeptRun:
    return KeptRun(**{**dict(row), "data": json.loads(row["data"])})


def _row(row: sqlite3.Row) -> KeptRow:
    return KeptRow(row["setting"], row["case_id"], json.loads(row["scores"]), _unpacked(row["data"]))


def _packed(data: Any) -> bytes:
    return zlib.compress(json.dumps(data, ensure_ascii=False).encode())


def _unpacked(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


class LabelTable(Table):
    """What a judge said of something, and what a person says of it."""

    def add(self, library: str, owner: str, items: Iterable[tuple[str, str, Row]]) -> None:
        """Queue items (id, what the judge said, the thing itself) that are not known yet."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT OR IGNORE INTO evaluation_labels (id, library, owner, created_at, judged, data)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(one, library, owner, now(), judged, dump(data)) for one, judged, data in items],
            )

    def label(self, item_id: str, label: str) -> None:
        """Note what a person says; "" takes it back. Raises RagError("label_unknown")."""
        with self._file.transaction() as db:
            changed = db.execute("UPDATE evaluation_labels SET label = ? WHERE id = ?", (label, item_id))
            if not changed.rowcount:
                raise RagError("label_unknown")

    def items(self, library: str, *, labelled: bool) -> list[Row]:
        """{"id", "judged", "label", …}, oldest first."""
        sign = "<>" if labelled else "="
        rows = self._file.rows(
            f"SELECT * FROM evaluation_labels WHERE library = ? AND label {sign} '' ORDER BY rowid", library
        )
        return [{**json.loads(row["data"]), **{key: row[key] for key in ("id", "judged", "label")}} for row in rows]
