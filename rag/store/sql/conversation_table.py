"""Conversations with their turns, spans of recent runs, changes during a run, and corrected routes."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from rag.store.sql.table import ALL, OWNED, Row, Table, dump
from rag.store.values import now
from rag.tracing import Span

TurnState = Literal["running", "done", "interrupted"]
_DAYS: Final = 30
_MAX_SPANS: Final = 100_000  # spans of up to 2 kB each: usually about 30 MB
_MAX_ATTRIBUTES: Final = 2_000  # characters of a span's attributes
_MAX_ROUTES: Final = 500  # per user; older ones are deleted


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its turns. `branch_of` is the id of the turn of another one from which it branches.

    Pinned ones are listed first. If it has a `link`, everyone with the link and access to the library can read it.
    """

    id: str
    library: str
    owner: str
    title: str
    created_at: str
    updated_at: str
    branch_of: str = ""
    pinned: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question in a conversation and its answer, which is empty until it is stored.

    `text` is the text written so far. `process` and `seen_at` (seconds since 1970) show whether the run of a running
    turn can still be alive. `suspension` is the state of a run that waits for the user; its process may have ended.
    `extra` is data that is not part of the answer.
    """

    id: str
    conversation_id: str
    created_at: str
    answer: Mapping[str, Any]
    question: str = ""
    text: str = ""
    state: TurnState = "done"
    run_id: str = ""
    process: str = ""
    seen_at: float = 0.0
    suspension: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    library: str = ""
    owner: str = ""


class ConversationTable(Table):
    """Conversations and turns. Methods with an `owner` only access that user's. Raises StoreError on failure."""

    def begin_turn(
        self,
        conversation_id: str,
        library: str,
        owner: str,
        question: str,
        *,
        title: str = "",
        process: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a running turn, and the conversation with this `title` if it is new; return the turn's id."""
        turn_id, moment = uuid.uuid4().hex, now()
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO conversations (id, library, owner, title, created_at, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at",
                (conversation_id, library, owner, (title or question)[:200], moment, moment),
            )
            db.execute(
                "INSERT INTO turns (id, conversation_id, library, owner, created_at, answer, question, state, process,"
                " seen_at, extra) VALUES (?, ?, ?, ?, ?, '{}', ?, 'running', ?, ?, ?)",
                (turn_id, conversation_id, library, owner, moment, question, process, time.time(), dump(extra or {})),
            )
        return turn_id

    def touch_turn(self, turn_id: str, text: str, *, run_id: str | None = None) -> None:
        """Record a heartbeat of the turn's run, and its text so far."""
        self._file.write(
            "UPDATE turns SET seen_at = ?, text = ?, run_id = coalesce(?, run_id) WHERE id = ? AND state = 'running'",
            *(time.time(), text, run_id, turn_id),
        )

    def suspend_turn(self, turn_id: str, suspension: Mapping[str, Any]) -> None:
        """Record that the turn's run waits for the user, with the data for resuming it (JSON values)."""
        self._file.write("UPDATE turns SET waits = ? WHERE id = ? AND state = 'running'", dump(suspension), turn_id)

    def resume_turn(self, turn_id: str, process: str, run_id: str = "") -> bool:
        """Let a process resume a waiting or interrupted turn; return False if it is not, or no longer."""
        return self._file.write(
            "UPDATE turns SET waits = '', run_id = ?, process = ?, seen_at = ?, state = 'running'"
            " WHERE id = ? AND (waits <> '' OR state = 'interrupted')",
            *(run_id, process, time.time(), turn_id),
        )

    def finish_turn(
        self, turn_id: str, answer: Mapping[str, Any], extra: Mapping[str, Any] | None = None, *, searches: bytes = b""
    ) -> bool:
        """Store the answer; return False if the turn has been deleted meanwhile.

        `extra` is merged into the turn's. `searches` is stored separately, see the method `searches`.
        """
        with self._file.transaction() as db:
            if searches:
                db.execute(
                    "INSERT INTO turn_searches (turn_id, library, owner, data)"
                    " SELECT id, library, owner, ? FROM turns WHERE id = ?"
                    " ON CONFLICT (turn_id) DO UPDATE SET data = excluded.data",
                    (searches, turn_id),
                )
            cursor = db.execute(
                "UPDATE turns SET state = 'done', answer = ?, text = ?, process = '', waits = '',"
                " extra = json_patch(extra, ?) WHERE id = ?",
                (dump(answer), str(answer.get("text", "")), dump(extra or {}), turn_id),
            )
        return cursor.rowcount > 0

    def add_extra(self, turn_id: str, extra: Mapping[str, Any]) -> None:
        self._file.write("UPDATE turns SET extra = json_patch(extra, ?) WHERE id = ?", dump(extra), turn_id)

    def unread(self, library: str, owner: str) -> list[str]:
        """Return the ids of the owner's conversations with an unread report."""
        rows = self._file.rows(
            "SELECT DISTINCT c.id FROM conversations c JOIN turns t ON t.conversation_id = c.id WHERE c.library = ?"
            " AND c.owner = ? AND instr(t.extra, '\"unread\"') > 0 AND json_extract(t.extra, '$.unread') IS NOT NULL",
            *(library, owner),
        )
        return [row["id"] for row in rows]

    def mark_read(self, conversation_id: str, owner: str) -> None:
        self._file.write(
            "UPDATE turns SET extra = json_patch(extra, '{\"unread\": null}') WHERE conversation_id = ? AND owner = ?"
            " AND instr(extra, '\"unread\"') > 0",
            *(conversation_id, owner),
        )

    def scored_answers(self, library: str, owner: str | None) -> list[tuple[str, dict[str, float]]]:
        """Return time and scores of the owner's scored answers (everyone's if None), oldest first."""
        rows = self._file.rows(
            "SELECT created_at, json_extract(extra, '$.scores') AS scores FROM turns"
            f" WHERE library = ? AND {OWNED} AND json_extract(extra, '$.scores') IS NOT NULL ORDER BY created_at",
            *(library, owner, owner),
        )
        return [(row["created_at"], json.loads(row["scores"])) for row in rows]

    def running(self) -> list[Turn]:
        """Return the unfinished turns of all libraries and owners, except those that wait for the user."""
        return self._turns("state = 'running' AND waits = '' ORDER BY rowid")

    def interrupt(self, turn_ids: Sequence[str]) -> None:
        """Mark running turns as interrupted, because their process has died."""
        with self._file.transaction() as db:
            db.executemany(
                "UPDATE turns SET state = 'interrupted', process = '' WHERE id = ? AND state = 'running'",
                [(turn_id,) for turn_id in turn_ids],
            )

    def turns(self, conversation_id: str, owner: str | None = None) -> list[Turn]:
        """Return the turns of a conversation, oldest first; with `owner`, none if it is another user's."""
        return self._turns(f"conversation_id = ? AND {OWNED} ORDER BY rowid", conversation_id, owner, owner)

    def turn(self, turn_id: str, owner: str) -> Turn | None:
        return next(iter(self._turns("id = ? AND owner = ?", turn_id, owner)), None)

    def last_turn(self, conversation_id: str, owner: str) -> Turn | None:
        where = "conversation_id = ? AND owner = ? ORDER BY rowid DESC LIMIT 1"
        return next(iter(self._turns(where, conversation_id, owner)), None)

    def _turns(self, where: str, *values: Any) -> list[Turn]:
        return [_turn(row) for row in self._file.rows(f"SELECT * FROM turns WHERE {where}", *values)]

    def searches(self, turn_id: str, owner: str) -> bytes:
        """Return the `searches` passed to `finish_turn`; empty if there are none or the turn is another user's."""
        rows = self._file.rows("SELECT data FROM turn_searches WHERE turn_id = ? AND owner = ?", turn_id, owner)
        return bytes(rows[0]["data"]) if rows else b""

    def conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        return next(iter(self._conversations("c.id = ? AND c.owner = ?", conversation_id, owner)), None)

    def conversations(self, library: str, owner: str, search: str = "", limit: int = 200) -> list[Conversation]:
        """Return the owner's conversations, pinned ones first, then the latest.

        With `search`, return those with this text in the title, a question or an answer.
        """
        if not search.strip():
            return self._conversations("c.library = ? AND c.owner = ?", library, owner, limit=limit)
        like = "%" + search.strip().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        where = (
            "c.library = ? AND c.owner = ? AND (c.title LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM turns t"
            " WHERE t.conversation_id = c.id AND (t.question LIKE ? ESCAPE '\\' OR t.text LIKE ? ESCAPE '\\')))"
        )
        return self._conversations(where, library, owner, like, like, like, limit=limit)

    def branches(self, conversation_id: str, owner: str) -> list[Conversation]:
        where = (
            "c.library = (SELECT library FROM conversations WHERE id = ?) AND c.owner = ?"
            " AND c.branch_of IN (SELECT id FROM turns WHERE conversation_id = ?)"
        )
        return self._conversations(where, conversation_id, owner, conversation_id, limit=ALL)

    def _conversations(self, where: str, *values: Any, limit: int = 1) -> list[Conversation]:
        rows = self._file.rows(
            f"SELECT * FROM conversations c WHERE {where} ORDER BY pinned DESC, updated_at DESC, rowid DESC LIMIT ?",
            *(*values, limit),
        )
        return [Conversation(**{**dict(row), "pinned": bool(row["pinned"])}) for row in rows]

    def ids_in_library(self, library: str) -> list[str]:
        """Return the ids of all conversations in the library, for every owner."""
        return [row["id"] for row in self._file.rows("SELECT id FROM conversations WHERE library = ?", library)]

    def find_citing_turns(self, library: str, owner: str, url_hash: str) -> list[Turn]:
        """Return the owner's latest 50 turns whose answers cite the page, latest first."""
        return self._turns(
            # instr skips most answers cheaply; it also matches uncited passages.
            "owner = ? AND instr(answer, ?) > 0 AND EXISTS"
            " (SELECT 1 FROM json_each(answer, '$.citations') c WHERE json_extract(c.value, '$.url_hash') = ?"
            " AND coalesce(nullif(json_extract(c.value, '$.library'), ''), library) = ?) ORDER BY rowid DESC LIMIT 50",
            *(owner, url_hash, url_hash, library),
        )

    def answers_with_citations(self, library: str, limit: int) -> list[Mapping[str, Any]]:
        """Return the library's latest answers with citations, for every owner."""
        rows = self._file.rows(
            "SELECT answer FROM turns WHERE library = ? AND state = 'done'"
            " AND json_extract(answer, '$.citations[0]') IS NOT NULL ORDER BY rowid DESC LIMIT ?",
            *(library, limit),
        )
        return [json.loads(row["answer"]) for row in rows]

    def most_cited(self, library: str, owner: str, latest: int = 200) -> list[str]:
        """Return hashes of the pages that the owner's latest turns cite, most cited first."""
        rows = self._file.rows(
            "SELECT json_extract(c.value, '$.url_hash') AS page FROM (SELECT answer, library FROM turns WHERE owner = ?"
            " AND library = ? ORDER BY rowid DESC LIMIT ?) t, json_each(t.answer, '$.citations') c"
            " WHERE coalesce(nullif(json_extract(c.value, '$.library'), ''), t.library) = ?"
            " GROUP BY page ORDER BY count(*) DESC, page LIMIT 20",
            *(owner, library, latest, library),
        )
        return [row["page"] for row in rows]

    def rename(self, conversation_id: str, owner: str, title: str, before: str = "") -> bool:
        """Rename the conversation; with `before`, only if that is still its title. Return False otherwise."""
        return self._file.write(
            "UPDATE conversations SET title = ? WHERE id = ? AND owner = ? AND (? = '' OR title = ?)",
            *(title[:200], conversation_id, owner, before, before[:200]),
        )

    def pin(self, conversation_id: str, owner: str, pinned: bool) -> bool:
        """Pin or unpin the conversation; return False if it does not exist or is another user's."""
        return self._file.write(
            "UPDATE conversations SET pinned = ? WHERE id = ? AND owner = ?", *(pinned, conversation_id, owner)
        )

    def set_link(self, conversation_id: str, owner: str, link: str) -> bool:
        """Share the conversation under a link, or stop sharing it if "". Return False like `pin`."""
        return self._file.write(
            "UPDATE conversations SET link = ? WHERE id = ? AND owner = ?", *(link, conversation_id, owner)
        )

    def find_by_link(self, link: str) -> Conversation | None:
        """Return the conversation with this link, whoever owns it."""
        return next(iter(self._conversations("c.link = ? AND c.link <> ''", link)), None)

    def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation, its turns and ratings. Return False like `pin`."""
        with self._file.transaction() as db:
            db.execute(
                "DELETE FROM feedback WHERE owner = ? AND turn_id IN (SELECT id FROM turns WHERE conversation_id = ?)",
                (owner, conversation_id),
            )
            cursor = db.execute("DELETE FROM conversations WHERE id = ? AND owner = ?", (conversation_id, owner))
        return cursor.rowcount > 0

    def branch(self, source: Conversation, turns: Sequence[Turn], title: str, branch_of: str) -> str:
        """Create a conversation with copies of these turns; return its id."""
        new_id, moment = uuid.uuid4().hex, now()
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO conversations (id, library, owner, title, created_at, updated_at, branch_of)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (new_id, source.library, source.owner, title[:200], moment, moment, branch_of),
            )
            copies = {turn.id: uuid.uuid4().hex for turn in turns}
            db.executemany(
                "INSERT INTO turns"
                " (id, conversation_id, library, owner, created_at, answer, question, text, state, extra)"
                " SELECT ?, ?, library, owner, created_at, answer, question, text, state, extra"
                " FROM turns WHERE id = ?",
                [(copy, new_id, source_id) for source_id, copy in copies.items()],
            )
            db.executemany(
                "INSERT INTO turn_searches (turn_id, library, owner, data)"
                " SELECT ?, library, owner, data FROM turn_searches WHERE turn_id = ?",
                [(copy, source_id) for source_id, copy in copies.items()],
            )
        return new_id


def _turn(row: Row) -> Turn:
    fields = dict(row)
    suspension = json.loads(fields.pop("waits") or "{}")
    return Turn(**{**fields, "suspension": suspension, **{key: json.loads(fields[key]) for key in ("answer", "extra")}})


class SpanTable(Table):
    """Spans of runs, up to _MAX_SPANS of the last _DAYS."""

    def save(self, turn_id: str, spans: Sequence[Span]) -> None:
        """Replace the spans of a turn, and delete those that are too old or too many."""
        rows = []
        for span in spans:
            attributes = json.dumps(span.attributes, ensure_ascii=False, default=str)
            if len(attributes) > _MAX_ATTRIBUTES:
                attributes = json.dumps({"too_long": len(attributes)})
            times = (span.start, span.end)
            rows.append((span.id, span.parent, span.name, span.kind, *times, attributes, span.status, turn_id))
        with self._file.transaction() as db:
            db.execute("DELETE FROM spans WHERE turn_id = ?", (turn_id,))
            db.executemany(
                "INSERT INTO spans"
                " (turn_id, library, owner, span_id, parent, name, kind, started_at, ended_at, attributes, status)"
                " SELECT id, library, owner, ?, ?, ?, ?, ?, ?, ?, ? FROM turns WHERE id = ?",
                rows,
            )
            db.execute(
                "DELETE FROM spans WHERE started_at < ? OR rowid <= (SELECT max(rowid) FROM spans) - ?",
                (time.time() - _DAYS * 86_400, _MAX_SPANS),
            )

    def for_turn(self, turn_id: str, owner: str) -> list[Span]:
        """Return the spans of a turn in order of their start; none if it is another user's."""
        rows = self._file.rows("SELECT * FROM spans WHERE turn_id = ? AND owner = ? ORDER BY rowid", turn_id, owner)
        return [
            Span(
                *(row["name"], row["kind"], row["parent"], row["span_id"], row["started_at"], row["ended_at"]),
                *(json.loads(row["attributes"]), row["status"]),
            )
            for row in rows
        ]


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a running run. Kind "budget" adds `data` (calls, tokens, seconds); modes define other kinds."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class ChangeTable(Table):
    def add(self, turn_id: str, owner: str, change: Change) -> bool:
        """Store a change (JSON values); return False if the turn has ended, does not exist or is another user's."""
        return self._file.write(
            "INSERT INTO turn_changes (turn_id, library, owner, created_at, kind, data)"
            " SELECT id, library, owner, ?, ?, ? FROM turns WHERE id = ? AND owner = ? AND state = 'running'",
            *(now(), change.kind, dump(change.data), turn_id, owner),
        )

    def for_turn(self, turn_id: str) -> list[Change]:
        """Return all changes of a turn, oldest first."""
        rows = self._file.rows("SELECT kind, data FROM turn_changes WHERE turn_id = ? ORDER BY rowid", turn_id)
        return [Change(row["kind"], json.loads(row["data"])) for row in rows]


class RouteTable(Table):
    """Corrections of misrouted messages, used to route later ones."""

    def add(self, library: str, owner: str, text: str, route: str) -> None:
        """Store this user's route for the text, replacing an earlier one.

        It is deleted with the `library` in which it was chosen.
        """
        with self._file.transaction() as db:
            db.execute("DELETE FROM route_choices WHERE owner = ? AND text = ?", (owner, text))
            db.execute(
                "INSERT INTO route_choices (library, owner, created_at, text, route) VALUES (?, ?, ?, ?, ?)",
                (library, owner, now(), text, route),
            )
            db.execute(
                "DELETE FROM route_choices WHERE owner = ? AND rowid NOT IN"
                " (SELECT rowid FROM route_choices WHERE owner = ? ORDER BY rowid DESC LIMIT ?)",
                (owner, owner, _MAX_ROUTES),
            )

    def for_owner(self, owner: str) -> list[tuple[str, str]]:
        """Return a user's corrections as (text, route), latest first."""
        rows = self._file.rows("SELECT text, route FROM route_choices WHERE owner = ? ORDER BY rowid DESC", owner)
        return [(row["text"], row["route"]) for row in rows]
