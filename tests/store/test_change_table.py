"""What a person changes during a run: rows that go with their turn."""

from __future__ import annotations

from pathlib import Path

from rag.store.database import Change, Database


def test_changes_of_a_running_turn_are_kept_in_order_and_go_with_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "app.db")
    turn_id = database.conversations.begin_turn("c1", "main", "li", "q")
    said = [Change("skip", {"part": "乙"}), Change("budget", {"calls": 3})]
    assert [database.changes.add(turn_id, "li", change) for change in said] == [True, True]
    assert not database.changes.add(turn_id, "ada", Change("finish"))
    assert not database.changes.add("none", "li", Change("finish"))
    assert database.changes.of_turn(turn_id) == said
    database.conversations.finish_turn(turn_id, {"question": "q"})
    assert not database.changes.add(turn_id, "li", Change("finish"))
    database.conversations.delete("c1", "li")
    assert database.changes.of_turn(turn_id) == []
    database.close()
