"""Question sets, runs with one row per question and setting, and human labels."""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal

from rag.background import throttle
from rag.errors import RagError
from rag.store.sql.table import ALL, OWNED, Table, dump
from rag.store.sql.table import Row as SqlRow
from rag.store.values import now

BATCH_SIZE: Final = 500
"""Rows written per transaction."""
RunState = Literal["running", "paused", "done", "cancelled"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set with its numbers of cases, drafts, and cases whose evidence was reworded (`moved`) or `lost`."""

    id: str
    library: str
    owner: str
    name: str
    cases: int
    drafts: int
    moved: int
    lost: int


_PUT: Final = (
    "INSERT INTO evaluation_cases (position, case_id, data, draft, moved, lost, set_id, library, owner)"
    " SELECT CAST(json_extract(value, '$[0]') AS INTEGER), json_extract(value, '$[1]'), json_extract(value, '$[2]'),"
    " CAST(json_extract(value, '$[3]') AS INTEGER), CAST(json_extract(value, '$[4]') AS INTEGER),"
    " CAST(json_extract(value, '$[5]') AS INTEGER), s.id, s.library, s.owner"
    " FROM evaluation_sets s, json_each(?, '$') WHERE s.id = ?"
    " ON CONFLICT (set_id, case_id) DO UPDATE SET"
    " data = excluded.data, draft = excluded.draft, moved = excluded.moved, lost = excluded.lost"
)


class CaseTable(Table):
    """Question sets, and their cases as JSON values in order."""

    def add_set(self, library: str, owner: str, name: str) -> str:
        """Return the id of the owner's set of that name, created empty if needed."""
        self._file.write(
            "INSERT INTO evaluation_sets (id, library, owner, name, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            *(uuid.uuid4().hex, library, owner, name, now(), now()),
        )
        rows = self._file.rows(
            "SELECT id FROM evaluation_sets WHERE library = ? AND owner = ? AND name = ?", library, owner, name
        )
        return str(rows[0]["id"])

    def sets(self, library: str, owner: str | None = None) -> list[QuestionSet]:
        """Return the sets of the library, by name."""
        return self._select(f"library = ? AND {OWNED} ORDER BY name, rowid", library, owner, owner)

    def get_set(self, set_id: str, owner: str | None = None) -> QuestionSet | None:
        return next(iter(self._select(f"id = ? AND {OWNED}", set_id, owner, owner)), None)

    def has_set(self, set_id: str, owner: str | None = None) -> bool:
        return bool(self._file.rows(f"SELECT 1 FROM evaluation_sets WHERE id = ? AND {OWNED}", set_id, owner, owner))

    def _select(self, where: str, *values: object) -> list[QuestionSet]:
        """Return sets with their counts, by an index on them."""
        counts = (
            "SELECT count(*), coalesce(sum(draft), 0), coalesce(sum(moved), 0), coalesce(sum(lost), 0)"
            " FROM evaluation_cases WHERE set_id = ?"
        )
        rows = self._file.rows(f"SELECT id, library, owner, name FROM evaluation_sets WHERE {where}", *values)
        return [QuestionSet(*row, *self._file.rows(counts, row["id"])[0]) for row in rows]

    def delete(self, set_id: str) -> None:
        """Delete the set; runs over it keep their questions."""
        self._file.write("DELETE FROM evaluation_sets WHERE id = ?", set_id)

    def put(self, set_id: str, cases: Iterable[tuple[str, Row]]) -> None:
        """Store cases by id, new ones at the end, in batches, so that other writers wait for one batch at most.

        Each batch is one statement, which runs without the GIL.
        """
        last = self._file.rows("SELECT coalesce(max(position), 0) FROM evaluation_cases WHERE set_id = ?", set_id)[0][0]
        rows = throttle(
            ([at, case_id, dump(data), *_case_flags(data)] for at, (case_id, data) in enumerate(cases, last + 1)),
            BATCH_SIZE,
        )
        while batch := list(islice(rows, BATCH_SIZE)):
            batch_json = dump(batch)
            with self._file.transaction() as db:
                db.execute(_PUT, (batch_json, set_id))
                db.execute("UPDATE evaluation_sets SET updated_at = ? WHERE id = ?", (now(), set_id))

    def remove(self, set_id: str, case_ids: Sequence[str]) -> None:
        keys = throttle(((set_id, case_id) for case_id in case_ids), BATCH_SIZE)
        while batch := list(islice(keys, BATCH_SIZE)):
            with self._file.transaction() as db:
                db.executemany("DELETE FROM evaluation_cases WHERE set_id = ? AND case_id = ?", batch)
                db.execute("UPDATE evaluation_sets SET updated_at = ? WHERE id = ?", (now(), set_id))

    def cases(self, set_id: str, *, approved: bool = False, offset: int = 0, limit: int = ALL) -> list[Row]:
        """Return `limit` cases in order, from `offset`; with `approved`, no drafts."""
        rows = self._file.rows(  # `+` makes SQLite use the index on position
            "SELECT data FROM evaluation_cases WHERE set_id = ? AND +draft <= ? ORDER BY position LIMIT ? OFFSET ?",
            *(set_id, not approved, limit, offset),
        )
        return [json.loads(row["data"]) for row in rows]

    def ids(self, set_id: str) -> set[str]:
        rows = self._file.rows("SELECT case_id FROM evaluation_cases WHERE set_id = ?", set_id)
        return {row["case_id"] for row in rows}


def _case_flags(case: Row) -> tuple[int, int, int]:
    """Return the flags draft, moved and lost, each 1 or 0."""
    states = {evidence.get("state") for evidence in case.get("evidence", ())}
    return int(case.get("status") == "draft"), int("moved" in states), int("lost" in states)


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run over `total` pairs of question and setting, `done` of which have a row. `data` is JSON values."""

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
class StoredRow:
    """The result of one question under one setting: its scores and further JSON values."""

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
        """Store a run in state "running" with its questions; return its id."""
        run_id = uuid.uuid4().hex
        self._file.write(
            "INSERT INTO evaluation_runs (id, library, owner, name, set_id, created_at, state, total, cases, data)"
            " VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?)",
            *(run_id, library, owner, name, set_id, now(), total, _pack(list(cases)), dump(data)),
        )
        return run_id

    def run(self, run_id: str, owner: str | None = None) -> StoredRun | None:
        rows = self._file.rows(f"{_RUN} WHERE id = ? AND {OWNED}", run_id, owner, owner)
        return _run(rows[0]) if rows else None

    def runs(self, library: str, owner: str | None = None) -> list[StoredRun]:
        """Return the runs of the library, newest first."""
        statement = f"{_RUN} WHERE library = ? AND {OWNED} ORDER BY created_at DESC, rowid DESC"
        return [_run(row) for row in self._file.rows(statement, library, owner, owner)]

    def running(self) -> list[StoredRun]:
        """Return the runs in state "running" of all libraries, oldest first."""
        return [_run(row) for row in self._file.rows(f"{_RUN} WHERE state = 'running' ORDER BY created_at, rowid")]

    def cases(self, run_id: str) -> list[Row]:
        """Return the questions as they were when the run was created."""
        rows = self._file.rows("SELECT cases FROM evaluation_runs WHERE id = ?", run_id)
        return _unpack(rows[0]["cases"]) if rows else []

    def claim(self, run_id: str, process: str, before: str) -> bool:
        """Take over a run from process `before`; return False if another process was faster."""
        return self._file.write(
            "UPDATE evaluation_runs SET process = ?, seen_at = ? WHERE id = ? AND process = ? AND state = 'running'",
            *(process, time.time(), run_id, before),
        )

    def send_heartbeat(self, run_id: str) -> RunState | None:
        """Record that the run's process is alive; return the run's state, None if it was deleted."""
        self._file.write("UPDATE evaluation_runs SET seen_at = ? WHERE id = ?", time.time(), run_id)
        rows = self._file.rows("SELECT state FROM evaluation_runs WHERE id = ?", run_id)
        return rows[0]["state"] if rows else None

    def set_state(self, run_id: str, state: RunState, from_states: Sequence[RunState], data: Row | None = None) -> bool:
        """Set the state if the current one is in `from_states`; `data` is merged into the stored data."""
        finished_at = now() if state in ("done", "cancelled") else ""
        return self._file.write(
            "UPDATE evaluation_runs SET state = ?, finished_at = ?, process = '', data = json_patch(data, ?)"
            f" WHERE id = ? AND state IN ({', '.join('?' * len(from_states))})",
            *(state, finished_at, dump(data or {}), run_id, *from_states),
        )

    def delete(self, run_id: str) -> None:
        self._file.write("DELETE FROM evaluation_runs WHERE id = ?", run_id)

    def spend(self, library: str, owner: str, answers: int, limit: int) -> bool:
        """Add to this user's answers of today (UTC); return False, without adding, if that would exceed `limit`."""
        day = now()[:10]
        with self._file.transaction(lock_name=f"answers of {owner}") as db:
            statement = "SELECT coalesce(sum(answers), 0) FROM evaluation_usage WHERE owner = ? AND day = ?"
            if db.execute(statement, (owner, day)).fetchall()[0][0] + answers > limit:
                return False
            db.execute(
                "INSERT INTO evaluation_usage (library, owner, day, answers) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (owner, day, library) DO UPDATE"
                " SET answers = evaluation_usage.answers + excluded.answers",
                (library, owner, day, answers),
            )
        return True

    def add_row(self, run_id: str, row: StoredRow) -> bool:
        """Store a row; return False if it exists or the run was deleted."""
        return self._file.write(
            "INSERT INTO evaluation_rows (run_id, setting, case_id, library, owner, created_at, scores, data)"
            " SELECT id, ?, ?, library, owner, ?, ?, ? FROM evaluation_runs WHERE id = ? ON CONFLICT DO NOTHING",
            *(row.setting, row.case_id, now(), dump(row.scores), _pack(row.data), run_id),
        )

    def scores(self, run_id: str) -> dict[str, dict[str, Mapping[str, float | None]]]:
        """Return all scores by setting and question."""
        scores: dict[str, dict[str, Mapping[str, float | None]]] = {}
        for row in self._file.rows("SELECT setting, case_id, scores FROM evaluation_rows WHERE run_id = ?", run_id):
            scores.setdefault(row["setting"], {})[row["case_id"]] = json.loads(row["scores"])
        return scores

    def row(self, run_id: str, setting: str, case_id: str) -> StoredRow | None:
        statement = "SELECT * FROM evaluation_rows WHERE run_id = ? AND setting = ? AND case_id = ?"
        rows = self._file.rows(statement, run_id, setting, case_id)
        return _row(rows[0]) if rows else None

    def means(self, run_id: str, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the means of these scores by setting, over the questions that have them."""
        columns = ", ".join("avg(CAST(json_extract(scores, ?) AS DOUBLE PRECISION))" for _ in names)
        statement = f"SELECT setting, {columns} FROM evaluation_rows WHERE run_id = ? GROUP BY setting"
        rows = self._file.rows(statement, *(f'$."{name}"' for name in names), run_id)
        return {row[0]: {name: row[at] for at, name in enumerate(names, 1) if row[at] is not None} for row in rows}

    def rows(self, run_id: str, setting: str) -> list[StoredRow]:
        statement = "SELECT * FROM evaluation_rows WHERE run_id = ? AND setting = ? ORDER BY rowid"
        return [_row(row) for row in self._file.rows(statement, run_id, setting)]


def _run(row: SqlRow) -> StoredRun:
    return StoredRun(**{**dict(row), "data": json.loads(row["data"])})


def _row(row: SqlRow) -> StoredRow:
    return StoredRow(row["setting"], row["case_id"], json.loads(row["scores"]), _unpack(row["data"]))


def _pack(data: Any) -> bytes:
    return zlib.compress(json.dumps(data, ensure_ascii=False).encode())


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))


class LabelTable(Table):
    """Verdicts on statements: the judge's, and a human label."""

    def add(self, library: str, owner: str, items: Iterable[tuple[str, str, Row]]) -> None:
        """Queue new items (id, the judge's verdict, data)."""
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO evaluation_labels (id, library, owner, created_at, judged, data)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [(key, library, owner, now(), judged, dump(data)) for key, judged, data in items],
            )

    def label(self, item_id: str, label: str, owner: str | None = None) -> None:
        """Store a human label; "" removes it. Raises RagError("label_unknown")."""
        statement = f"UPDATE evaluation_labels SET label = ? WHERE id = ? AND {OWNED}"
        if not self._file.write(statement, label, item_id, owner, owner):
            raise RagError("label_unknown")

    def items(self, library: str, *, labelled: bool, owner: str | None = None) -> list[Row]:
        """Return items as {"id", "judged", "label", …}, oldest first."""
        sign = "<>" if labelled else "="
        statement = f"SELECT * FROM evaluation_labels WHERE library = ? AND label {sign} '' AND {OWNED} ORDER BY rowid"
        rows = self._file.rows(statement, library, owner, owner)
        return [{**json.loads(row["data"]), **{key: row[key] for key in ("id", "judged", "label")}} for row in rows]
