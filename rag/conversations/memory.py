"""Notes that users ask to remember in all conversations, stored per user in LangGraph's store.

Without sign-in, a user is identified by the browser session. Such notes expire after TTL_MINUTES without being read,
since the browser's next session has another id.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rag.errors import RagError
from rag.store.sql.table import connect_shared, translate_errors
from rag.store.values import now
from rag.text import lazy_regex, split_sentences

if TYPE_CHECKING:
    from langgraph.store.base import TTLConfig
    from langgraph.store.postgres import PostgresStore
    from langgraph.store.sqlite import SqliteStore

    from rag.store.sql.postgres import Postgres

MAX_NOTE_LENGTH: Final = 300  # characters of a note
MAX_NOTES: Final = 50  # notes per user
TTL_MINUTES: Final = 30 * 24 * 60.0
_MODEL_CHARACTERS: Final = 2_000  # characters of notes that a model gets

_REQUEST: Final = lazy_regex(
    r"(?:please[ ,]{1,3})?remember(?: that\b|:)[ ,:]{0,3}|(?:请)?(?:帮我)?记住[：:，, ]{0,3}", re.IGNORECASE
)
_QUESTION_MARKS: Final = ("?", "？")


def note_request(message: str) -> tuple[str, str]:
    """Return the note that a message asks to remember, and the question after it; "" and the message without a note.

    The message must begin with "remember that", "remember:" or "记住". The first question ends the note.
    """
    match = _REQUEST.match(message.strip())
    if match is None:
        return "", message
    rest = message.strip()[match.end() :]
    stop = next(
        (start for start, end in split_sentences(rest) if rest[start:end].rstrip().endswith(_QUESTION_MARKS)), len(rest)
    )
    note = " ".join(rest[:stop].split())
    return (note[:MAX_NOTE_LENGTH], rest[stop:].strip()) if re.search(r"\w", note) else ("", message)


@dataclass(frozen=True, slots=True)
class Note:
    """A note; `at` is when it was first requested (ISO 8601)."""

    id: str
    text: str
    at: str = ""


class NoteStore:
    """The notes of each `person`, private to them. Thread-safe; methods raise StoreError."""

    def __init__(self, database: Path | Postgres) -> None:
        """Store notes in a SQLite file, or in Postgres."""
        self._database = database
        self._lock = threading.Lock()
        self._client: SqliteStore | PostgresStore | None = None

    def add(self, person: str, text: str, *, permanent: bool) -> str:
        """Add a note, which expires unless `permanent`; return its id. Raises RagError("remembered_full")."""
        if len(self.notes(person)) >= MAX_NOTES:
            raise RagError("remembered_full", most=MAX_NOTES)
        note_id = uuid4().hex
        self._put(person, Note(note_id, text, now()), permanent=permanent)
        return note_id

    def change(self, person: str, note_id: str, text: str, *, permanent: bool) -> None:
        """Replace a note's text; an empty one deletes the note, and a deleted note stays deleted."""
        text = " ".join(text.split())[:MAX_NOTE_LENGTH]
        note = next((other for other in self.notes(person) if other.id == note_id), None)
        if note and text:
            self._put(person, replace(note, text=text), permanent=permanent)
        elif note:
            self.forget(person, note_id)

    def forget(self, person: str, note_id: str) -> None:
        with self._store() as store:
            store.delete(_namespace(person), note_id)

    def notes(self, person: str) -> list[Note]:
        """Return all notes of a user, oldest first."""
        if not person or (isinstance(self._database, Path) and not self._database.exists()):
            return []
        with self._store() as store:
            items = store.search(_namespace(person), limit=MAX_NOTES)
        notes = [Note(item.key, str(item.value["text"]), str(item.value["at"])) for item in items]
        return sorted(notes, key=lambda note: note.at)

    def notes_for_model(self, person: str) -> list[str]:
        """Return a user's latest notes that fit into _MODEL_CHARACTERS, oldest first."""
        texts: list[str] = []
        for note in reversed(self.notes(person)):
            if sum(map(len, texts)) + len(note.text) > _MODEL_CHARACTERS:
                break
            texts.insert(0, note.text)
        return texts

    def close(self) -> None:
        with self._lock:
            if self._client is not None and isinstance(self._database, Path):  # Postgres connections are shared
                self._client.conn.close()
            self._client = None

    def _put(self, person: str, note: Note, *, permanent: bool) -> None:
        with self._store() as store:
            store.sweep_ttl()
            value = {"text": note.text, "at": note.at}
            store.put(_namespace(person), note.id, value, ttl=None if permanent else TTL_MINUTES)

    @contextmanager
    def _store(self) -> Iterator[SqliteStore | PostgresStore]:
        """Yield the store, opened on first use because its import takes a moment."""
        with (
            translate_errors(self._database) if isinstance(self._database, Path) else self._database.translate_errors()
        ):
            with self._lock:
                if self._client is None:
                    self._client = _open(self._database)
                store = self._client
            yield store


def _open(database: Path | Postgres) -> SqliteStore | PostgresStore:
    ttl: TTLConfig = {"default_ttl": None, "refresh_on_read": True}
    if isinstance(database, Path):
        from langgraph.store.sqlite import SqliteStore

        return SqliteStore(connect_shared(database), ttl=ttl)
    from langgraph.store.postgres import PostgresStore

    with database.exclusive_connection() as connection:
        PostgresStore(connection).setup()
    return PostgresStore(database.pool, ttl=ttl)


def _namespace(person: str) -> tuple[str, str]:
    return ("remembered", person)
