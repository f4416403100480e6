"""Memory notes: parsed narrowly, private to one user, bounded, and deletable."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag.conversations import memory
from rag.conversations.memory import MAX_NOTE_LENGTH, MAX_NOTES, NoteStore, note_request
from rag.store.sql.database import Database
from tests.store.support import refused

BERLIN = "I work in the Berlin office"


@pytest.fixture
def kept(database: Database, tmp_path: Path) -> Iterator[NoteStore]:
    made = NoteStore(database.postgres or tmp_path / "remembered.sqlite3")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("message", "note", "rest"),
    [
        (f"Remember that {BERLIN}", BERLIN, ""),
        (f"please remember: {BERLIN}.", f"{BERLIN}.", ""),
        (f"Remember that {BERLIN}. I like tea. When does it open?", f"{BERLIN}. I like tea.", "When does it open?"),
        ("记住我在柏林办公室工作", "我在柏林办公室工作", ""),
        ("请记住：我在柏林办公室工作。它几点开门？", "我在柏林办公室工作。", "它几点开门？"),
        ("请帮我记住，我吃素", "我吃素", ""),
        *(
            (message, "", message)
            for message in (
                "Remember when the bridge was opened?",
                "Remember that page about tea?",
                "Do you remember that I asked about tea?",
                "What should I remember that day?",
                "remember that ",
                "记住了吗？",
                "怎样记住密码？",
                "The guide says: remember that keys expire.",
                "",
            )
        ),
    ],
)
def test_a_wish_is_told_from_what_is_asked(message: str, note: str, rest: str) -> None:
    assert note_request(message) == (note, rest)


def test_notes_are_one_persons_and_can_be_edited_and_forgotten(kept: NoteStore) -> None:
    first, second = (kept.add("ann", text, permanent=True) for text in (BERLIN, "I like tea"))
    kept.add("bob", "secret", permanent=False)
    assert [one.text for one in kept.notes("ann")] == [BERLIN, "I like tea"] == kept.notes_for_model("ann")
    kept.change("ann", first, "I work  in Paris", permanent=True)
    kept.change("bob", first, "mine now", permanent=True)
    kept.forget("bob", second)
    assert [one.text for one in kept.notes("ann")] == ["I work in Paris", "I like tea"]
    kept.change("ann", second, "  ", permanent=True)
    assert [one.text for one in kept.notes("ann")] == ["I work in Paris"]
    assert [one.text for one in kept.notes("bob")] == ["secret"] and kept.notes("") == []


def test_they_are_bounded_and_outlive_the_process(kept: NoteStore) -> None:
    for number in range(MAX_NOTES):
        kept.add("ann", f"{number} " + "x" * (MAX_NOTE_LENGTH - 5), permanent=True)
    with refused("remembered_full"):
        kept.add("ann", "one more", permanent=True)
    told = kept.notes_for_model("ann")
    assert sum(map(len, told)) <= 2_000 and told[-1].startswith(f"{MAX_NOTES - 1} ")
    kept.close()
    again = NoteStore(kept._database)
    assert len(again.notes("ann")) == MAX_NOTES
    again.close()


def test_a_browsers_notes_go_when_nobody_reads_them(kept: NoteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "TTL_MINUTES", -1.0)
    kept.add("browser", BERLIN, permanent=False)
    kept.add("ann", BERLIN, permanent=True)
    place: Any = kept._database
    with sqlite3.connect(place) if isinstance(place, Path) else psycopg.connect(place._url) as db:
        assert [row[0] for row in db.execute("SELECT prefix FROM store")] == ["remembered.ann"]


def test_a_file_that_fails_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("no database", encoding="utf-8")
    broken = NoteStore(tmp_path / "broken")
    with refused("database_failed"):
        broken.notes("ann")
