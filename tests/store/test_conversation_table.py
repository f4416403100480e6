"""Conversations and their turns."""

from __future__ import annotations

import time

import pytest

from rag.store.sql import conversation_table
from rag.store.sql.conversation_table import Change, ConversationTable
from rag.store.sql.database import Database
from rag.tracing import Span, end
from tests.store.support import save_turn


@pytest.fixture
def table(database: Database) -> ConversationTable:
    return database.conversations


def test_turns_come_back_in_order(table: ConversationTable) -> None:
    for number in range(3):
        save_turn(table, "c1", "main", "li", {"question": f"q{number}", "text": "答案"})
    save_turn(table, "c2", "main", "li", {"question": "other"})
    turns = table.turns("c1")
    assert [turn.answer["question"] for turn in turns] == ["q0", "q1", "q2"]
    assert turns[0].answer["text"] == turns[0].text == "答案"
    assert table.turns("none") == table.turns("c1", "ada") == []
    assert table.turn(turns[0].id, "ada") is None and table.turn(turns[0].id, "li") == turns[0]


def test_a_turn_runs_and_ends(table: ConversationTable) -> None:
    turn_id = table.begin_turn("c1", "main", "", "q", process="host:1:a", extra={"settings": {"mode": "fast"}})
    table.touch_turn(turn_id, "so far", run_id="r1")
    (running,) = table.running()
    assert (running.text, running.run_id, running.state, running.answer) == ("so far", "r1", "running", {})
    table.finish_turn(turn_id, {"question": "q", "text": "whole"}, {"stamps": {"h": {"version": 1}}})
    table.touch_turn(turn_id, "too late")
    (done,) = table.turns("c1")
    assert (done.text, done.state) == ("whole", "done") and table.running() == []
    assert done.extra == {"settings": {"mode": "fast"}, "stamps": {"h": {"version": 1}}}
    table.interrupt([turn_id])
    assert table.turns("c1")[0].state == "done"


def test_a_turn_that_waits_is_taken_up_once(table: ConversationTable) -> None:
    turn_id = table.begin_turn("c1", "main", "", "q", process="host:1:a")
    table.touch_turn(turn_id, "", run_id="r1")
    assert not table.resume_turn(turn_id, "host:2:b")
    table.suspend_turn(turn_id, {"asks": [{"id": "w"}]})
    (waiting,) = table.turns("c1")
    assert (waiting.suspension, waiting.state, table.running()) == ({"asks": [{"id": "w"}]}, "running", [])
    assert table.resume_turn(turn_id, "host:2:b") and not table.resume_turn(turn_id, "host:3:c")
    (running,) = table.running()
    assert (running.process, running.run_id, running.suspension) == ("host:2:b", "", {})
    table.suspend_turn(turn_id, {"asks": []})
    table.finish_turn(turn_id, {"question": "q"})
    assert not table.resume_turn(turn_id, "host:2:b")


def test_searches_go_with_their_turn(table: ConversationTable) -> None:
    turn_id = table.begin_turn("c1", "main", "li", "q")
    table.finish_turn(turn_id, {"question": "q"}, searches=b"found")
    assert (table.searches(turn_id, "li"), table.searches(turn_id, "ada")) == (b"found", b"")
    source = table.conversation("c1", "li")
    assert source is not None
    copy = table.branch(source, table.turns("c1"), "t", turn_id)
    (copied,) = table.turns(copy)
    assert table.delete("c1", "li")
    assert (table.searches(turn_id, "li"), table.searches(copied.id, "li")) == (b"", b"found")


def test_latest_first_and_searched(table: ConversationTable) -> None:
    save_turn(table, "c1", "main", "", {"question": "When did it erupt?", "text": "In 1953, by 100 %."})
    save_turn(table, "c2", "main", "", {"question": "桥是什么时候通车的？", "text": "1932 年。"})
    save_turn(table, "c3", "other", "", {"question": "When?", "text": ""})
    assert [one.id for one in table.conversations("main", "")] == ["c2", "c1"]
    save_turn(table, "c1", "main", "", {"question": "And then?", "text": ""})
    assert [one.id for one in table.conversations("main", "")] == ["c1", "c2"]
    assert table.pin("c2", "", True) and not table.pin("c2", "ada", True)
    assert [(one.id, one.pinned) for one in table.conversations("main", "")] == [("c2", True), ("c1", False)]
    assert table.pin("c2", "", False)
    for words, found in (("通车", ["c2"]), ("ERUPT", ["c1"]), ("100 %", ["c1"]), ("_", []), ("\\", [])):
        assert [one.id for one in table.conversations("main", "", words)] == found


def test_the_pages_that_answers_cite_most_come_first(table: ConversationTable) -> None:
    for cited in ("a", "ab", "b", "bc"):
        citations = [{"url_hash": one, "library": "other" if one == "c" else ""} for one in cited]
        save_turn(table, "c1", "main", "li", {"question": "q", "citations": citations})
    assert table.most_cited("main", "li") == ["b", "a"]
    assert table.most_cited("main", "li", latest=1) == ["b"]
    assert table.most_cited("main", "ada") == table.most_cited("other", "li") == []


def test_deleting_takes_turns_along_and_only_ones_own(table: ConversationTable) -> None:
    save_turn(table, "c1", "main", "li", {"question": "q"})
    assert not table.delete("c1", "ada") and not table.rename("c1", "ada", "Mine")
    assert table.delete("c1", "li") and table.turns("c1") == []


def _spans(count: int, start: float = 0.0) -> list[Span]:
    spans = [Span(f"s{place}", "leg", attributes={"n": place}) for place in range(count)]
    for one in spans:
        end(one)
        one.start = start or one.start
    return spans


def test_spans_belong_to_their_owner_and_are_deleted_with_the_conversation(database: Database) -> None:
    turn_id = database.conversations.begin_turn("c1", "main", "li", "q")
    database.spans.save(turn_id, _spans(1))
    spans = _spans(2)
    spans[1].parent, spans[1].attributes = spans[0].id, {"long": "长" * 3_000}
    database.spans.save(turn_id, spans)
    first, second = database.spans.for_turn(turn_id, "li")
    assert (first, second.parent, second.status) == (spans[0], spans[0].id, "ok")
    assert len(str(second.attributes)) < 100
    assert database.spans.for_turn(turn_id, "ada") == []
    database.conversations.delete("c1", "li")
    assert database.spans.for_turn(turn_id, "li") == []


def test_they_are_bounded_in_age_and_number(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_table, "_DAYS", 1)
    monkeypatch.setattr(conversation_table, "_MAX_SPANS", 5)
    table = database.spans
    old, new, newer = (database.conversations.begin_turn("c1", "main", "", "q") for _ in range(3))
    table.save(old, _spans(2, start=time.time() - 90_000))
    table.save(new, _spans(4))
    assert (table.for_turn(old, ""), len(table.for_turn(new, ""))) == ([], 4)
    table.save(newer, _spans(3))
    assert [len(table.for_turn(turn, "")) for turn in (new, newer)] == [2, 3]


def test_changes_of_a_running_turn_are_kept_in_order_and_go_with_it(database: Database) -> None:
    turn_id = database.conversations.begin_turn("c1", "main", "li", "q")
    said = [Change("skip", {"part": "乙"}), Change("budget", {"calls": 3})]
    assert [database.changes.add(turn_id, "li", change) for change in said] == [True, True]
    assert not database.changes.add(turn_id, "ada", Change("finish"))
    assert not database.changes.add("none", "li", Change("finish"))
    assert database.changes.for_turn(turn_id) == said
    database.conversations.finish_turn(turn_id, {"question": "q"})
    assert not database.changes.add(turn_id, "li", Change("finish"))
    database.conversations.delete("c1", "li")
    assert database.changes.for_turn(turn_id) == []


def test_a_report_is_unread_until_its_owner_opens_it(table: ConversationTable) -> None:
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
