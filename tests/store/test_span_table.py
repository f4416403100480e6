"""Spans rest beside their turn, for a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.store.database import Database
from rag.store.span_table import SpanTable
from rag.tracing import Span, end


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "app.db")
    yield database
    database.close()


def _spans(count: int, start: float = 0.0) -> list[Span]:
    spans = [Span(f"s{place}", "leg", attributes={"n": place}) for place in range(count)]
    for one in spans:
        end(one)
        one.start = start or one.start
    return spans


def test_they_come_back_to_their_owner_and_go_with_the_conversation(database: Database) -> None:
    turn_id = database.conversations.begin_turn("c1", "main", "li", "q")
    database.spans.save(turn_id, _spans(1))
    spans = _spans(2)
    spans[1].parent, spans[1].attributes = spans[0].id, {"long": "长" * 3_000}
    database.spans.save(turn_id, spans)
    first, second = database.spans.of_turn(turn_id, "li")
    assert (first, second.parent, second.status) == (spans[0], spans[0].id, "ok")
    assert len(str(second.attributes)) < 100
    assert database.spans.of_turn(turn_id, "ada") == []
    database.conversations.delete("c1", "li")
    assert database.spans.of_turn(turn_id, "li") == []


def test_they_are_bounded_in_age_and_number(database: Database) -> None:
    table = SpanTable(database, days=1, most=5)
    old, new, newer = (database.conversations.begin_turn("c1", "main", "", "q") for _ in range(3))
    table.save(old, _spans(2, start=time.time() - 90_000))
    table.save(new, _spans(4))
    assert (table.of_turn(old, ""), len(table.of_turn(new, ""))) == ([], 4)
    table.save(newer, _spans(3))
    assert [len(table.of_turn(turn, "")) for turn in (new, newer)] == [2, 3]
