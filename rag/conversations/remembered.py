"""What people asked to be remembered in all their conversations: in LangGraph's store, each person's by themselves.

Who is not signed in is known by their browser, whose notes go after MINUTES without being read: the next one that it
opens is another.
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

from rag.dates import now
from rag.errors import RagError
from rag.store.sql.sqlite_file import connected, failures
from rag.text import split_sentences

if TYPE_CHECKING:
    from langgraph.store.base import TTLConfig
    from langgraph.store.postgres import PostgresStore
    from langgraph.store.sqlite import SqliteStore

    from rag.store.sql.postgres import Postgres

LONGEST: Final = 300  # characters of a note
MOST: Final = 50  # notes of a person
MINUTES: Final = 30 * 24 * 60.0
_TOLD: Final = 2_000  # characters of notes that a model is given

_WISH: Final = re.compile(
    r"(?:please[ ,]{1,3})?remember(?: that\b|:)[ ,:]{0,3}|(?:请)?(?:帮我)?记住[：:，, ]{0,3}", re.IGNORECASE
)
_ASKS: Final = ("?", "？")


def note_request(message: str) -> tuple[str, str]:
    """What a message asks to be remembered, and what it asks beside that; both empty, or the note, for most messages.

    It must begin with "remember that", "remember:" or "记住". From the first question on it is a question.
    """
    found = _WISH.match(message.strip())
    if found is None:
        return "", message
    rest = message.strip()[found.end() :]
    asks = next((start for start, end in split_sentences(rest) if rest[start:end].rstrip().endswith(_ASKS)), len(rest))
    note = " ".join(rest[:asks].split())
    return (note[:LONGEST], rest[asks:].strip()) if re.search(r"\w", note) else ("", message)


@dataclass(frozen=True, slots=True)
class Note:
    """`at` is when it was first asked for (ISO 8601)."""

    id: str
    text: str
    at: str = ""


class Remembered:
    """Safe to share between threads. `person` is the namespace: nobody reads another's. Methods raise StoreError."""

    def __init__(self, place: Path | Postgres) -> None:
        """Keep notes in a SQLite file, or in Postgres."""
        self._place = place
        self._lock = threading.Lock()
        self._kept: SqliteStore | PostgresStore | None = None

    def add(self, person: str, text: str, *, lasting: bool) -> str:
        """Keep a note, for good where it is `lasting`; returns its id. Raises RagError("remembered_full")."""
        if len(self.notes(person)) >= MOST:
            raise RagError("remembered_full", most=MOST)
        note_id = uuid4().hex
        self._put(person, Note(note_id, text, now()), lasting=lasting)
        return note_id

    def change(self, person: str, note_id: str, text: str, *, lasting: bool) -> None:
        """Give a note another text; an empty one forgets it, and one that is gone stays so."""
        text = " ".join(text.split())[:LONGEST]
        known = next((one for one in self.notes(person) if one.id == note_id), None)
        if known and text:
            self._put(person, replace(known, text=text), lasting=lasting)
        elif known:
            self.forget(person, note_id)

    def forget(self, person: str, note_id: str) -> None:
        with self._store() as store:
            store.delete(_place(person), note_id)

    def notes(self, person: str) -> list[Note]:
        """All of a person's, oldest first."""
        if not person or (isinstance(self._place, Path) and not self._place.exists()):
            return []
        with self._store() as store:
            found = store.search(_place(person), limit=MOST)
        notes = [Note(one.key, str(one.value["text"]), str(one.value["at"])) for one in found]
        return sorted(notes, key=lambda note: note.at)

    def told(self, person: str) -> list[str]:
        """The latest of a person's notes, oldest first, as many as a model is given."""
        kept: list[str] = []
        for note in reversed(self.notes(person)):
            if sum(map(len, kept)) + len(note.text) > _TOLD:
                break
            kept.insert(0, note.text)
        return kept

    def close(self) -> None:
        with self._lock:
            if self._kept is not None and isinstance(self._place, Path):  # Postgres's connections are the tables'
                self._kept.conn.close()
            self._kept = None

    def _put(self, person: str, note: Note, *, lasting: bool) -> None:
        with self._store() as store:
            store.sweep_ttl()
            value = {"text": note.text, "at": note.at}
            store.put(_place(person), note.id, value, ttl=None if lasting else MINUTES)

    @contextmanager
    def _store(self) -> Iterator[SqliteStore | PostgresStore]:
        """The store, opened by whoever needs it first: its import takes a moment."""
        with failures(self._place) if isinstance(self._place, Path) else self._place.failures():
            with self._lock:
                if self._kept is None:
                    self._kept = _open(self._place)
                store = self._kept
            yield store


def _open(place: Path | Postgres) -> SqliteStore | PostgresStore:
    ttl: TTLConfig = {"default_ttl": None, "refresh_on_read": True}
    if isinstance(place, Path):
        from langgraph.store.sqlite import SqliteStore

        return SqliteStore(connected(place), ttl=ttl)
    from langgraph.store.postgres import PostgresStore

    with place.sole() as connection:
        PostgresStore(connection).setup()
    return PostgresStore(place.pool, ttl=ttl)


def _place(person: str) -> tuple[str, str]:
    return ("remembered", person)
