"""Sets are kept, and their evidence is looked for in the pages as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.errors import RagError
from rag.evaluation.cases import Case, Evidence
from rag.evaluation.sets import Sets, anchored
from rag.store.sql.database import Database

PAGE = "https://a.example/"
TEXT = "The ferry left at six. The harbour bridge was opened to traffic in the spring of 1932. It carries eight lanes."
QUOTE = "The harbour bridge was opened to traffic in the spring of 1932."


@pytest.fixture
def sets(tmp_path: Path) -> Iterator[Sets]:
    database = Database(tmp_path / "app.sqlite3")
    yield Sets(database)
    database.close()


def case(name: str, quote: str = QUOTE, status: str = "approved") -> Case:
    return Case(name, "When?", "en", ("1932",), (Evidence(PAGE, quote),), answerable=True, status=status)  # type: ignore[arg-type]


def test_cases_are_kept_in_order_replaced_and_approved(sets: Sets) -> None:
    set_id = sets.create("main", "  bridges ", "ann")
    sets.put(set_id, [case("b"), case("a", status="draft")])
    sets.put(set_id, [case("c"), case("b", "Other.")])
    assert [one.id for one in sets.cases(set_id)] == ["b", "a", "c"]
    assert sets.cases(set_id)[0].quotes == ["Other."]
    assert [one.id for one in sets.cases(set_id, approved=True)] == ["b", "c"]
    before = sets.set_of(set_id)
    assert (before.name, before.cases, before.drafts) == ("bridges", 3, 1)
    sets.approve(set_id, ["a"])
    sets.approve(set_id, ["b"], False)
    assert [one.id for one in sets.cases(set_id, approved=True)] == ["a", "c"]
    assert sets.set_of(set_id).version != before.version
    sets.remove(set_id, ["c"])
    assert [one.id for one in sets.cases(set_id)] == ["b", "a"]


def test_sets_by_name(sets: Sets) -> None:
    set_id = sets.create("main", "one")
    assert sets.create("main", "one") == set_id != sets.create("other", "one")
    found = sets.named("main", "one")
    assert found is not None
    assert found.id == set_id
    sets.delete(set_id)
    assert sets.named("main", "one") is None
    for fails in (lambda: sets.cases(set_id), lambda: sets.create("main", " \n ")):
        with pytest.raises(RagError):
            fails()


def test_it_comes_in_and_goes_out(sets: Sets) -> None:
    set_id = sets.bring_in("main", "file", '{"id": "q", "question": "When?", "answers": ["1932"]}\n')
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
    found = anchored(case("q"), {PAGE: text}.get)
    assert (found.evidence[0].state, found.evidence[0].quote, found.status) == (state, quote, status)


def test_what_came_back_is_not_lost_and_what_has_no_address_stays(sets: Sets) -> None:
    lost = Case("q", "When?", evidence=(Evidence(PAGE, QUOTE, 1.0, "lost"),), status="draft")
    assert anchored(lost, {PAGE: TEXT}.get).evidence[0].state == ""
    bare = Case("bare", "When?", evidence=(Evidence("", "Whatever."),))
    assert anchored(bare, {PAGE: TEXT}.get) == bare
    set_id = sets.create("main", "s")
    sets.put(set_id, [lost, bare])
    assert sets.anchor(set_id, {PAGE: TEXT}.get) == 1
    assert [one.evidence[0].state for one in sets.cases(set_id)] == ["", ""]
