"""Requests in the chat: added, removed and missing pages are shown by title."""

from __future__ import annotations

from typing import Any

import pytest

from rag.app import App, Question
from rag.locales import label
from tests.pages.conftest import Open, run_imports, words
from tests.support.page_server import PageServer

TEA = "<html><title>Tea of the Harbour</title><article><h1>Tea</h1><p>{}</p></article></html>".format(
    "Longjing tea is sold in the harbour shop for 42 crowns a tin. The shop is open from nine to five. " * 3
)


@pytest.fixture
def settings(page_server: PageServer) -> dict[str, Any]:
    page_server.add("/tea", TEA)
    return {"fetch_allow_private_hosts": f"{page_server.host}:{page_server.port}"}


@pytest.fixture(autouse=True)
def empty_library(app: App) -> None:
    app.clear_library("main")
    run_imports(app)


def conversation(app: App, text: str) -> tuple[str, str]:
    begun = app.converse(Question(text, ("main",)))
    app.wait(begun.run_id, 60)
    return begun.conversation_id, begun.turn_id


def test_added_pages_are_listed_by_title_and_a_failure_once(open_page: Open, app: App, page_server: PageServer) -> None:
    missing = page_server.url("/missing")
    talk, _ = conversation(app, f"{page_server.url('/tea')} {missing}")
    page = open_page("chat", conversation=talk)
    rows = [one.value for one in page.caption] + [one.label for one in page.button]
    assert "Tea of the Harbour" in "\n".join(rows)
    assert page_server.url("/tea") not in "\n".join(rows)
    answer = [one.value for one in page.markdown if "Added 1 page. 1 source not added." in one.value]
    assert len(answer) == 1 and "missing" not in answer[0]
    assert "\n".join(rows).count("/missing") == 1


def test_a_page_is_removed_after_a_confirmation(
    open_page: Open, app: App, page_server: PageServer, language: str
) -> None:
    conversation(app, page_server.url("/tea"))
    talk, turn = conversation(app, "Delete the harbour tea page")
    page = open_page("chat", language, conversation=talk)
    page.button(key=f"remove-0-{turn}").click().run()
    assert len(app.library("main").pages()) == 1
    page.button(key=f"remove-0-{turn}").click()
    page.button(key=f"turn-{turn}-0-remove-go").click().run()
    assert not app.library("main").pages()
    assert label("way_removed", language, title="Tea of the Harbour") in words(page)


def test_a_summary_of_a_missing_page_offers_the_nearest(open_page: Open, app: App, page_server: PageServer) -> None:
    conversation(app, page_server.url("/tea"))
    talk, turn = conversation(app, "Summarise the harbour dues page")
    page = open_page("chat", conversation=talk)
    assert "No page is called “harbour dues”. Closest titles: Tea of the Harbour" in words(page)
    assert page.button(key=f"near-0-{turn}").label == "Summarise “Tea of the Harbour”"
    page.button(key=f"near-0-{turn}").click().run()
    (newest,) = app.conversations.turns(talk)[-1:]
    assert newest.question == "Summarise “Tea of the Harbour”"
