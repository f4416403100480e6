"""When which pages are looked at again."""

from __future__ import annotations

import pytest

from rag.errors import StoreError
from rag.store.sql.database import Database
from rag.store.sql.schedule_table import ScheduleTable


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
    table.note_start(one.id, "j1", "2026-01-02")
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
