"""A set with very many questions in the UI: the cost of a redraw does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rag.app.chat_models import ChatOptions
from rag.errors import RagError
from rag.evaluation.cases import Case
from rag.evaluation.evaluation import Evaluation
from rag.evaluation.sets import Sets
from rag.store.sql.database import Database
from rag.ui.kit import session
from tests.support.evaluating import RuleBasedApp

APP: Any = SimpleNamespace()
COUNT = 1_000


def draw() -> None:
    from rag.ui.evaluation.sets import draw_sets
    from tests.ui.evaluation.test_sets import APP

    draw_sets(APP, "main", "en")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    database = Database(tmp_path / "app.sqlite3")
    APP.evaluation = Evaluation(database, RuleBasedApp(), None)  # type: ignore[arg-type]
    APP.chats = SimpleNamespace(of_settings=lambda: None)
    monkeypatch.setattr(session, "browser_id", lambda: "a-browser")
    sets = APP.evaluation.sets
    sets.put(sets.create("main", "large"), [Case(str(n), f"Question {n}?", "en") for n in range(COUNT)])
    yield AppTest.from_function(draw, default_timeout=60)
    database.close()


def test_a_redraw_reads_what_it_shows_and_makes_no_file(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    cases = Sets.cases

    def counted(sets: Sets, *given: Any, **how: Any) -> list[Case]:
        found = cases(sets, *given, **how)
        read.append(len(found))
        return found

    monkeypatch.setattr(Sets, "cases", counted)
    monkeypatch.setattr(Sets, "export", lambda *_: pytest.fail("a file that nobody asked for"))
    page.run()
    assert not page.exception and len(page.dataframe[0].value) == 200
    assert str(COUNT) in page.selectbox(key="evaluation-set").options[0]
    page.button(key="cases-more").click().run()
    assert not page.exception and len(page.dataframe[0].value) == 400
    assert max(read) <= 400


@pytest.mark.parametrize(
    ("written", "fails", "codes"),
    [
        (0, True, ["chat_failed"]),
        (2, True, ["chat_failed", "sets_made"]),
        (2, False, ["sets_made"]),
        (0, False, ["sets_made"]),
    ],
)
def test_an_error_before_the_first_written_question_is_the_only_notice(
    page: AppTest, monkeypatch: pytest.MonkeyPatch, written: int, fails: bool, codes: list[str]
) -> None:
    def write(*_: Any, **__: Any) -> Iterator[Case]:
        yield from [Case(str(n), "?", "en") for n in range(written)]
        if fails:
            raise RagError("chat_failed")

    monkeypatch.setattr(Evaluation, "write_drafts", write)
    APP.chats = SimpleNamespace(of_settings=lambda: ChatOptions("m", "http://127.0.0.1:9/v1"))
    page.run()
    page.button(key="make-model").click().run()
    assert not page.exception
    assert [notice.code for notice in page.session_state["pagelight"].notices] == codes


def test_a_person_sees_their_own_sets(page: AppTest) -> None:
    page.run()
    page.session_state["pagelight"].person = SimpleNamespace(owner="ann")
    page.run()
    assert not page.exception and not page.dataframe
    APP.evaluation.of("ann").sets.create("main", "mine")
    page.run()
    assert [one.partition(" ")[0] for one in page.selectbox[0].options] == ["mine"]
