"""The chat page with the real app: added, removed and missing pages are shown by title."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rag.app import App, Question
from rag.config import load_settings
from rag.locales import label
from rag.ui.kit import session
from tests.pages.conftest import Open, words
from tests.support.page_server import PageServer

TEA = "<html><title>Tea of the Harbour</title><article><h1>Tea</h1><p>{}</p></article></html>".format(
    "Longjing tea is sold in the harbour shop for 42 crowns a tin. The shop is open from nine to five. " * 3
)


@pytest.fixture
def library(tmp_path: Path, page_server: PageServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    page_server.add("/tea", TEA)
    settings = load_settings(
        None,
        rag_data_dir=tmp_path / "data",
        qdrant_url="",
        llm_model="",
        llm_base_url="",
        fetch_allow_private_hosts=f"{page_server.host}:{page_server.port}",
    )
    with closing(App(settings)) as app:
        app.imports.start()
        monkeypatch.setattr(session, "build_app", lambda: app)
        session.get_app.clear()
        yield app


def conversation(app: App, text: str) -> tuple[str, str]:
    begun = app.converse(Question(text, ("main",)))
    app.wait(begun.run_id, 60)
    return begun.conversation_id, begun.turn_id


def test_added_pages_are_listed_by_title_and_a_failure_once(
    open_page: Open, library: App, page_server: PageServer
) -> None:
    missing = page_server.url("/missing")
    talk, _ = conversation(library, f"{page_server.url('/tea')} {missing}")
    page = open_page("chat", conversation=talk)
    rows = [one.value for one in page.caption] + [one.label for one in page.button]
    assert "Tea of the Harbour" in "\n".join(rows)
    assert page_server.url("/tea") not in "\n".join(rows)
    answer = [one.value for one in page.markdown if "Added 1 of 2 sources" in one.value]
    assert len(answer) == 1 and "missing" not in answer[0]


def test_a_page_is_removed_after_a_confirmation(
    open_page: Open, library: App, page_server: PageServer, language: str
) -> None:
    conversation(library, page_server.url("/tea"))
    talk, turn = conversation(library, "Delete the harbour tea page")
    page = open_page("chat", language, conversation=talk)
    page.button(key=f"remove-0-{turn}").click().run()
    assert len(library.library("main").pages()) == 1
    page.button(key=f"remove-0-{turn}").click()
    page.button(key=f"turn-{turn}-0-remove-go").click().run()
    assert not library.library("main").pages()
    assert label("way_removed", language, title="Tea of the Harbour") in words(page)


def test_a_summary_of_a_missing_page_offers_the_nearest(open_page: Open, library: App, page_server: PageServer) -> None:
    conversation(library, page_server.url("/tea"))
    talk, turn = conversation(library, "Summarise the harbour dues page")
    page = open_page("chat", conversation=talk)
    assert "No page is called “harbour dues”. Closest titles: Tea of the Harbour" in words(page)
    assert page.button(key=f"near-0-{turn}").label == "Summarise “Tea of the Harbour”"
    page.button(key=f"near-0-{turn}").click().run()
    (newest,) = library.conversations.turns(talk)[-1:]
    assert newest.question == "Summarise “Tea of the Harbour”"
