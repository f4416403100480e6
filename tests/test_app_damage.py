"""Damaged texts in the database: never quoted, reported, and repaired by importing the page again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rag.app import App
from rag.commands.doctor import examine
from rag.locales import say
from rag.store.qdrant.records import page_id
from tests.support.apps import add_files, ask, finish, open_app
from tests.support.page_server import ARTICLE, PageServer, Reply

TEXT = (
    "# Ferry to the island\n\n"
    "The ferry to the island leaves the south quay at nine each morning of the winter.\n\n"
    "## Fares\n\nA ticket for the ferry costs four crowns, and dogs travel free of charge.\n"
)
FORGED = "The ferry to the island leaves the north quay at midnight, and a ticket costs ninety crowns."
ASKED = "When does the ferry to the island leave, and what does a ticket cost?"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Yield an app with one page."""
    with closing(open_app(tmp_path)) as opened:
        upload(opened)
        yield opened


def finished(app: App, job_id: str) -> str:
    """Return the outcome of the job's only item."""
    (result,) = finish(app, job_id)
    return result.status


def upload(app: App) -> str:
    (status,) = add_files(app, ("ferry.md", TEXT))
    return status


def damage(app: App) -> None:
    """Change every chunk, as a faulty disk or a manual edit would."""
    library = app.library("main")
    points, _ = app._client.scroll(library.chunks_collection, with_payload=False)  # type: ignore[attr-defined]
    ids = [point.id for point in points]
    app._client.set_payload(library.chunks_collection, {"page_content": FORGED}, ids)  # type: ignore[attr-defined]


def test_a_damaged_passage_is_not_quoted_and_its_page_is_named(app: App) -> None:
    damage(app)
    for mode in ("fast", "deep", "judge", "research", "tool"):
        answer = ask(app, ASKED, mode)
        assert "midnight" not in json.dumps([answer.text, *(one.text for one in answer.passages)]), mode
        assert not answer.citations and not answer.passages, mode
        assert answer.notice and answer.notice.code == "pages_damaged", mode
        assert "“Ferry to the island”" in say(answer.notice, "en") and "Re-check" in say(answer.notice, "en")
        assert not [one for one in answer.searches if one.candidates], mode


def test_the_rest_of_a_library_is_quoted(app: App) -> None:
    other = "# Bus\n\nThe bus to the island leaves the market at ten each morning, and a ticket costs two crowns.\n"
    add_files(app, ("bus.md", other))
    library = app.library("main")
    (ferry,) = (page for page in library.pages() if "ferry" in page.url)
    bad = [one.id for one in library.chunks(ferry.url_hash)]
    app._client.set_payload(library.chunks_collection, {"page_content": FORGED}, bad)  # type: ignore[attr-defined]
    answer = ask(app, "When does the bus to the island leave?")
    assert "ten each morning" in answer.text and "midnight" not in answer.text
    assert {one.title for one in answer.citations} == {"Bus"}


@pytest.mark.parametrize("again", ["search", "doctor"])
def test_whoever_takes_the_page_in_again_repairs_it(app: App, again: str) -> None:
    assert upload(app) == "unchanged"
    damage(app)
    if again == "search":
        assert app.search(ASKED, library="main").damaged == ("Ferry to the island",)
    else:
        (told,) = (one for one in examine(app, deep=True) if one.part == "library" and "damaged" in one.text)
        assert not told.works and "file:///ferry.md" in told.text
    assert upload(app) == "updated"
    answer = ask(app, ASKED)
    assert "four crowns" in answer.text
    assert answer.notice is None or answer.notice.code == "closest", "of two questions, a sentence answers half"
    assert app.search(ASKED, library="main").damaged == ()
    assert upload(app) == "unchanged"


def test_a_damaged_page_is_fetched_in_full_despite_its_etag(tmp_path: Path) -> None:
    with PageServer() as server:

        def page() -> Reply:
            known = server.requests[-1][1].get("if-none-match") == '"1"'
            return Reply(b"" if known else ARTICLE.encode(), status=304 if known else 200, headers={"ETag": '"1"'})

        url = server.add_reply("/ferry", page)
        with closing(open_app(tmp_path, fetch_allow_private_hosts=f"{server.host}:{server.port}")) as app:
            assert finished(app, app.imports.add_urls([url], library="main")) == "added"
            assert finished(app, app.imports.jobs.recheck("main")) == "unchanged"
            damage(app)
            assert app.search("When was the lighthouse built?", library="main").damaged
            assert finished(app, app.imports.jobs.recheck("main")) == "updated"
            assert "1910" in ask(app, "When was the lighthouse of Vik built?").text


def test_a_page_whose_own_text_is_damaged_is_not_summarised(app: App) -> None:
    library = app.library("main")
    (page,) = library.pages()
    changed = {"text": TEXT.replace("nine each morning", "midnight")}
    app._client.set_payload(library.pages_collection, changed, [page_id(page.url_hash)])  # type: ignore[attr-defined]
    answer = ask(app, "Summarise the ferry page", "summary")
    assert "midnight" not in answer.text and not answer.citations
    assert answer.notice and answer.notice.code == "page_damaged"
    assert library.texts([page.url_hash]) == {}
    assert upload(app) == "updated"
    assert "nine each morning" in ask(app, "Summarise the ferry page", "summary").text
