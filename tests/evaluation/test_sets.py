"""Sets are stored, and their evidence is searched for in the current pages."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag.errors import RagError
from rag.evaluation.cases import Case, Evidence
from rag.evaluation.sets import Sets, anchor
from rag.locales import say
from rag.store.sql.database import Database
from rag.store.sql.evaluation_table import BATCH_SIZE
from rag.store.sql.table import SqliteFile

PAGE = "https://a.example/"
TEXT = "The ferry left at six. The harbour bridge was opened to traffic in the spring of 1932. It carries eight lanes."
QUOTE = "The harbour bridge was opened to traffic in the spring of 1932."


@pytest.fixture
def sets(database_location: Path | str) -> Iterator[Sets]:
    database = Database(database_location)
    yield Sets(database)
    database.close()


@pytest.fixture
def sets_in_sqlite(tmp_path: Path) -> Iterator[Sets]:
    database = Database(tmp_path / "app.sqlite3")
    yield Sets(database)
    database.close()


def case(name: str, quote: str = QUOTE, status: str = "approved") -> Case:
    return Case(name, "When?", "en", ("1932",), (Evidence(PAGE, quote),), answerable=True, status=status)  # type: ignore[arg-type]


def test_cases_are_kept_in_order_replaced_and_approved(sets: Sets) -> None:
    set_id = sets.create("main", "  bridges ")
    sets.put(set_id, [case("b"), case("a", status="draft")])
    sets.put(set_id, [case("c"), case("b", "Other.")])
    assert [one.id for one in sets.cases(set_id)] == ["b", "a", "c"]
    assert sets.cases(set_id)[0].quotes == ["Other."]
    assert [one.id for one in sets.cases(set_id, approved=True)] == ["b", "c"]
    before, version = sets.get_set(set_id), sets.version(set_id)
    assert (before.name, before.cases, before.drafts) == ("bridges", 3, 1)
    sets.approve(set_id, ["a"])
    sets.approve(set_id, ["b"], False)
    assert [one.id for one in sets.cases(set_id, approved=True)] == ["a", "c"]
    assert sets.version(set_id) != version
    sets.remove(set_id, ["c"])
    assert [one.id for one in sets.cases(set_id)] == ["b", "a"]


def test_sets_by_name(sets: Sets) -> None:
    set_id = sets.create("main", "one")
    assert sets.create("main", "one") == set_id != sets.create("other", "one")
    found = sets.find_by_name("main", "one")
    assert found is not None
    assert found.id == set_id
    sets.delete(set_id)
    assert sets.find_by_name("main", "one") is None
    for fails in (lambda: sets.cases(set_id), lambda: sets.create("main", " \n ")):
        with pytest.raises(RagError):
            fails()


def test_it_comes_in_and_goes_out(sets: Sets) -> None:
    set_id = sets.import_file("main", "file", '{"id": "q", "question": "When?", "answers": ["1932"]}\n')
    assert sets.export(set_id, "csv").splitlines()[1].startswith("q,When?,en")
    assert '"user_input": "When?"' in sets.export(set_id, "ragas")


@pytest.mark.parametrize(
    ("text", "state", "quote", "status"),
    [
        (TEXT, "", QUOTE, "approved"),
        (TEXT.replace("in the spring", " in\nthe spring"), "", QUOTE, "approved"),
        (
            TEXT.replace(
                "was opened to traffic in the spring of 1932", "was at last opened to all traffic in May 1932"
            ),
            "moved",
            "The harbour bridge was at last opened to all traffic in May 1932.",
            "draft",
        ),
        ("The ferry left at six. Nothing else is told.", "lost", QUOTE, "draft"),
        (None, "lost", QUOTE, "draft"),
    ],
)
def test_evidence_is_anchored_again(text: str | None, state: str, quote: str, status: str) -> None:
    found = anchor(case("q"), {PAGE: text}.get)
    assert (found.evidence[0].state, found.evidence[0].quote, found.status) == (state, quote, status)


def test_what_came_back_is_not_lost_and_what_has_no_address_stays(sets: Sets) -> None:
    lost = Case("q", "When?", evidence=(Evidence(PAGE, QUOTE, 1.0, "lost"),), status="draft")
    assert anchor(lost, {PAGE: TEXT}.get).evidence[0].state == ""
    bare = Case("bare", "When?", evidence=(Evidence("", "Whatever."),))
    assert anchor(bare, {PAGE: TEXT}.get) == bare
    set_id = sets.create("main", "s")
    sets.put(set_id, [lost, bare])
    assert sets.anchor(set_id, {PAGE: TEXT}.get) == 1
    assert [one.evidence[0].state for one in sets.cases(set_id)] == ["", ""]


def many(count: int) -> str:
    return "".join(f'{{"question": "When was bridge {n} of the harbour opened?"}}\n' for n in range(count))


def test_no_transaction_writes_more_than_one_lot(sets_in_sqlite: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are drawn meanwhile wait for the only lock of the file."""
    sets = sets_in_sqlite
    written: list[int] = []
    transaction = SqliteFile.transaction

    @contextmanager
    def watched(file: SqliteFile) -> Iterator[sqlite3.Connection]:
        with transaction(file) as db:
            before = db.total_changes
            yield db
            written.append(db.total_changes - before)

    monkeypatch.setattr(SqliteFile, "transaction", watched)
    set_id = sets.import_file("main", "many", many(2 * BATCH_SIZE + 1))
    sets.approve(set_id, [str(n) for n in range(1, 2 * BATCH_SIZE + 2)], False)
    sets.remove(set_id, [str(n) for n in range(1, 2 * BATCH_SIZE + 2)])
    assert sum(written) > 6 * BATCH_SIZE and max(written) <= BATCH_SIZE + 1  # plus the set, whose timestamp changes
    assert sets.get_set(set_id).cases == 0


def test_each_row_costs_the_same_however_many_there_are(sets_in_sqlite: Sets) -> None:
    """Measured in the database's steps, for the first rows of a set and for as many after ten thousand."""
    sets = sets_in_sqlite
    table, steps, set_id = sets._table, [0], sets.create("main", "large")

    def cost(first: int, count: int) -> int:
        steps[0] = 0
        table.put(set_id, [(str(n), {"id": str(n), "question": f"Question {n}?"}) for n in range(first, first + count)])
        return steps[0]

    table._file._db.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + 1), 100)
    at_first = cost(0, 500)
    cost(500, 10_000)
    assert cost(10_500, 500) < 2 * at_first
    sets.sets("main")
    steps[0] = 0
    shown = sets.cases(set_id, limit=200)
    assert len(shown) == 200 and shown[0].id == "0" and steps[0] < at_first


def test_others_get_on_while_a_set_comes_in(sets_in_sqlite: Sets) -> None:
    """The importing thread sleeps most of the time, so that the interpreter can draw pages."""
    began, busy = time.monotonic(), time.thread_time()
    sets_in_sqlite.import_file("main", "many", many(5_000))
    assert time.thread_time() - busy < 0.6 * (time.monotonic() - began)


def test_a_set_has_so_many_questions_at_most(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.evaluation.sets.MAX_CASES", 1_000)
    with pytest.raises(RagError, match=r"is full \(limit: 1,000\)\. Put the rest in another set\.$"):
        sets.import_file("main", "too many", many(1_001))
    assert sets.sets("main") == [], "nothing of it is there"
    set_id = sets.import_file("main", "many", many(1_000))
    sets.put(set_id, [case("1"), case("2")])
    with pytest.raises(RagError) as caught:
        sets.put(set_id, [case("1"), case("another")])
    assert "1,000" in say(caught.value.notice, "zh") and sets.get_set(set_id).cases == 1_000
    assert sets.cases(set_id)[0].quotes == [QUOTE]


def test_what_is_shown_of_a_set_is_a_part_in_order(sets: Sets) -> None:
    set_id = sets.import_file("main", "many", many(30))
    assert [one.id for one in sets.cases(set_id, offset=10, limit=5)] == ["11", "12", "13", "14", "15"]
    sets.approve(set_id, ["12"], False)
    assert [one.id for one in sets.cases(set_id, approved=True, offset=10, limit=2)] == ["11", "13"]
    assert (sets.get_set(set_id).cases, sets.get_set(set_id).drafts) == (30, 1)
    lost = case("12", "Nowhere.")
    sets.put(set_id, [lost])
    assert sets.anchor(set_id, {PAGE: TEXT}.get) == 1
    found = sets.get_set(set_id)
    assert (found.drafts, found.moved, found.lost) == (1, 0, 1)


def test_sets_are_their_owners(database_location: Path | str) -> None:
    database = Database(database_location)
    ann, bob, everybody = Sets(database, "ann"), Sets(database, "bob"), Sets(database, None)
    hers, his = ann.create("main", "mine"), bob.create("main", "mine")
    assert hers != his and ann.create("main", "mine") == hers
    assert [one.id for one in ann.sets("main")] == [hers] and Sets(database).sets("main") == []
    assert {one.id for one in everybody.sets("main")} == {hers, his}
    with pytest.raises(RagError):
        bob.cases(hers)
    database.close()
