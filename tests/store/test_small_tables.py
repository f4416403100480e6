"""The tables of ratings, schedules and summaries."""

from __future__ import annotations

import pytest

from rag.errors import StoreError
from rag.store.sql import small_tables
from rag.store.sql.database import Database
from rag.store.sql.small_tables import ScheduleTable
from tests.store.support import save_turn


def test_feedback_is_kept_with_its_data(database: Database) -> None:
    turn = save_turn(database.conversations, "c1", "main", "li", {"question": "q"})
    database.feedback.save(turn, "main", "li", rating=-1, data={"reason": "wrong page"})
    (said,) = database.feedback.for_library("main")
    assert (said["turn_id"], said["rating"], said["data"]) == (turn, -1, {"reason": "wrong page"})
    assert database.feedback.for_library("other") == []


def test_one_opinion_for_each_person(database: Database) -> None:
    for owner, rating in (("li", 1), ("ada", 1), ("li", -1)):
        database.feedback.save("t", "main", owner, rating=rating)  # type: ignore[arg-type]
    assert database.feedback.rating("t", "li") == -1 and database.feedback.rating("t", "ada") == 1
    database.feedback.delete("t", "li")
    assert database.feedback.rating("t", "li") == 0
    assert [one["owner"] for one in database.feedback.for_library("main")] == ["ada"]


@pytest.fixture
def table(database: Database) -> ScheduleTable:
    return database.schedules


def add(table: ScheduleTable, next_at: str, library: str = "main", every: int = 24) -> str:
    return table.add(library, "li", "pages", site="", url_hashes=("b", "a"), every=every, next_at=next_at)


def test_a_schedule_comes_back_as_it_was_set(table: ScheduleTable) -> None:
    one = table.schedule(add(table, "2026-01-02"))
    assert one is not None
    assert (one.library, one.owner, one.scope, one.url_hashes) == ("main", "li", "pages", ("b", "a"))
    assert (one.every_hours, one.next_at, one.last_at, one.last_job) == (24, "2026-01-02", "", "")
    table.record_start(one.id, "j1", "2026-01-02")
    table.change(one.id, 48, "2026-01-04")
    one = table.schedule(one.id)
    assert one is not None
    assert (one.every_hours, one.next_at, one.last_at, one.last_job) == (48, "2026-01-04", "2026-01-02", "j1")
    table.remove(one.id)
    assert table.schedule(one.id) is None


def test_those_whose_time_has_come_are_due(table: ScheduleTable) -> None:
    assert table.next_time() == ""
    late, later, future = (add(table, moment) for moment in ("2026-01-02", "2026-01-01", "2026-01-09"))
    assert [one.id for one in table.due_schedules("2026-01-02")] == [later, late]
    assert table.next_time() == "2026-01-01"
    assert [one.id for one in table.schedules()] == [late, later, future]
    assert table.schedules("other") == []


def test_one_of_two_processes_gets_it(table: ScheduleTable) -> None:
    one = table.schedule(add(table, "2026-01-02"))
    assert one is not None
    assert table.claim(one, "2026-01-03")
    assert not table.claim(one, "2026-01-03")


def test_never_is_no_period(table: ScheduleTable) -> None:
    with pytest.raises(StoreError, match=r"(?i)check constraint"):
        add(table, "2026-01-02", every=0)


def test_a_summary_is_of_one_text_in_one_language_by_one_writer(database: Database) -> None:
    table = database.summaries
    table.save("main", "page", "text1", "en", "rules", {"text": "By rules."})
    table.save("main", "page", "text1", "en", "model", {"text": "By a model."})
    assert [table.find("main", "page", "text1", "en", by) is not None for by in ("rules", "model", "", "other")] == [
        *(True, True, True, False)
    ]
    assert table.find("main", "page", "text1", "zh") is None
    newest = table.find("main", "page", "text1", "en")
    assert newest and (newest["author"], newest["data"]) == ("model", {"text": "By a model."})
    table.save("main", "page", "text2", "en", "rules", {"text": "Of the new text."})
    assert table.find("main", "page", "text1", "en") is None


def test_the_oldest_give_way_and_all_go_with_their_page_or_library(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.summaries
    monkeypatch.setattr(small_tables, "MAX_SUMMARIES", 3)
    for n in range(5):
        table.save("main" if n < 4 else "other", f"page{n}", "text", "en", "rules", {"n": n})
    assert [bool(table.find("main", f"page{n}", "text", "en")) for n in range(4)] == [False, False, True, True]
    table.forget("main", ["page2"])
    assert table.find("main", "page2", "text", "en") is None
    database.forget_library("main")
    assert table.find("main", "page3", "text", "en") is None
    assert table.find("other", "page4", "text", "en")
