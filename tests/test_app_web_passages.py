"""Web research: a search service over HTTP, pages through the guard and the parser, nothing stored."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import cast

import pytest

from rag.app import App, Question, RunOptions
from rag.app.web_passages import ledger_passages
from rag.retrieval.retriever import LibraryGroup
from rag.runs.run import WebAccess
from rag.store.qdrant.library import Library
from rag.types import Answer, Passage
from tests.support.answering import passage
from tests.support.apps import ask, open_app
from tests.support.page_server import PageServer

pytestmark = pytest.mark.weights

PAGE = (
    "<html lang='en'><head><title>Lanterns of Kalvik</title></head><body><article><h1>Lanterns of Kalvik</h1>"
    "<p>Kalvik is a fishing village in the far north. Its harbour freezes in January.</p>"
    "<p>The keeper of the Kalvik lantern is Ingrid Solheim, who has lit it each evening since 1987.</p>"
    "<p>Visitors may climb the tower on Sundays, when the keeper tells how the lamp works.</p></article></body></html>"
)
QUESTION = "Who is the keeper of the Kalvik lantern?"


def open_with_web(folder: Path, pages: PageServer, forbidden: str = "") -> App:
    hosts = f"{pages.host}:{pages.port}"
    return open_app(folder, searxng_url=pages.origin, web_search_except=forbidden, fetch_allow_private_hosts=hosts)


def add_page(pages: PageServer, *refused: str) -> str:
    """Serve the page, and searches that find it after the `refused` addresses; return its URL."""
    url = pages.add("/kalvik", PAGE)
    pages.add("/search", json.dumps({"results": [{"url": one, "title": "Kalvik"} for one in (*refused, url)]}))
    return url


@pytest.mark.parametrize("forbidden", ["", "main"])
def test_the_web_is_read_only_where_it_is_allowed(tmp_path: Path, page_server: PageServer, forbidden: str) -> None:
    url = add_page(page_server, "http://169.254.169.254/latest/meta-data")
    with closing(open_with_web(tmp_path, page_server, forbidden)) as app:
        assert ask(app, QUESTION, "research").outcome == "not_in_pages"
        assert not page_server.count("/search")
        answer = ask(app, QUESTION, "research", options=RunOptions(web="allowed"))
        told = ask(app, QUESTION, "tool", options=RunOptions(route="web"))
        if forbidden:
            assert told.notice and told.notice.code == "web_tool_off"
            assert answer.outcome == "not_in_pages" and not page_server.count("/search")
            return
        assert "Ingrid Solheim" in answer.text and "Ingrid Solheim" in told.text
        assert answer.citations[0].url == told.citations[0].url == url and told.tools[0].name == "web_search"
        assert [one["source"] for one in answer.trail["ledger"]] == ["web"] * len(answer.trail["ledger"])
        assert len(app.library().pages()) == 0


ASKED_ON = "Since when has Ingrid Solheim lit the Kalvik lantern?"
LATER = "How many lanes does the bridge of Sydney have?"


@pytest.mark.parametrize("mode", ["research", "fast", "deep"])
def test_follow_ups_to_a_report_are_answered_from_its_ledger_first(
    tmp_path: Path, page_server: PageServer, mode: str
) -> None:
    """The page is only on the web: once it is read, the follow-up needs no search of the web or of the library."""
    url = add_page(page_server)
    with closing(open_with_web(tmp_path, page_server)) as app:
        first = converse(app, QUESTION, "research", web="allowed")
        assert "Ingrid Solheim" in first.text and page_server.count("/search") == 1
        then = converse(app, ASKED_ON, mode, web="allowed")
        assert "since 1987" in then.text and then.citations[0].url == url
        assert (page_server.count("/search"), page_server.count("/kalvik"), then.searches) == (1, 1, ())
        assert any("ledger" in one.ranks for one in then.passages)
        other = converse(app, LATER, mode, web="allowed")
        assert page_server.count("/search") == 1 + (mode == "research") and "1987" not in other.text
        alone = app.wait(app.converse(Question(ASKED_ON, ("main",), mode)).run_id, 120)
        assert alone.outcome == "not_in_pages", "another conversation knows nothing of it"


def converse(app: App, text: str, mode: str, *, web: WebAccess) -> Answer:
    """Ask in the only conversation."""
    kept = app.conversations.conversations("main")
    asked = app.converse(
        Question(text, ("main",), mode, options=RunOptions(web=web)), conversation_id=kept[0].id if kept else ""
    )
    return app.wait(asked.run_id, 120)


class Shelf:
    """A library with one page and one passage of it."""

    def __init__(self, page_text: str, one: Passage) -> None:
        self.page_text, self.one = page_text, one

    def passages(self, ids: list[str]) -> list[Passage]:
        return [self.one] if self.one.id in ids else []

    def texts(self, url_hashes: list[str]) -> dict[str, str]:
        return {self.one.url_hash: self.page_text}


def test_a_span_is_read_from_the_version_of_its_passage() -> None:
    old, new = "Kalvik lies in the north. Its lamp is red.", "Its lamp is green. Kalvik lies in the far north."
    one = replace(passage(1, "Its lamp is red."), start=26, end=42)
    rows = [{"id": one.id, "start": 0, "end": 42}]
    other = replace(passage(2, "Its lamp is green."), start=0, end=18, url_hash=one.url_hash)
    (alone,) = ledger_passages(rows, cast(Library, Shelf(old, one)))
    assert alone.text == old
    group = LibraryGroup(cast(list[Library], [Shelf(new, other), Shelf(old, one)]))
    assert ledger_passages(rows, group) == [one], "the first library has another version"


def test_a_library_without_the_answer_is_not_quoted_next_to_the_web(
    samples_folder: Path, tmp_path: Path, page_server: PageServer
) -> None:
    url = add_page(page_server)
    with closing(open_with_web(copytree(samples_folder, tmp_path / "data"), page_server)) as app:
        answer = ask(app, QUESTION, "research", options=RunOptions(web="allowed"))
        assert "Ingrid Solheim" in answer.text and {one.url for one in answer.citations} == {url}
        assert (answer.outcome, answer.notice) == ("answered", None)
