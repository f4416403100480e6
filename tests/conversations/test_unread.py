"""A report that its owner has not read is marked, for the owner only, until the conversation is opened."""

from __future__ import annotations

from pathlib import Path

from rag.store.sql.database import Database


def test_a_report_is_unread_until_it_is_opened(tmp_path: Path) -> None:
    database = Database(tmp_path / "app.sqlite3")
    table = database.conversations
    report = table.begin_turn("a", "main", "ann", "What?")
    answer = table.begin_turn("b", "main", "ann", "And?")
    assert table.unread("main", "ann") == []
    table.finish_turn(report, {"text": "So."}, {"unread": True, "searches": 2})
    table.finish_turn(answer, {"text": "So."}, {"searches": 1})
    assert table.unread("main", "ann") == ["a"]
    assert table.unread("main", "bob") == table.unread("other", "ann") == []
    table.mark_read("a", "bob")
    assert table.unread("main", "ann") == ["a"]
    table.mark_read("a", "ann")
    assert table.unread("main", "ann") == []
    kept = table.turn(report, "ann")
    assert kept and kept.extra["searches"] == 2
    database.close()
