"""A library moves to another embedding model while it is asked, searched and written: real store, real models."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

from rag.app import App, Question
from rag.app.moves import LibraryMove, encode
from rag.cli import main
from rag.errors import StoreError
from rag.ingest.sources import record_sources
from rag.models import model_files
from rag.models.model_files import MINILM
from rag.store.qdrant.records import LIBRARIES, chunks_collections, library_id
from tests.support.apps import ask, finish, open_app
from tests.support.waiting import until

pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(model_files.find_e5_package() is None, reason="there is one built-in model here"),
]

TOPICS = ("lamp", "bell", "door", "clock", "harbour", "ladder", "window", "garden")
OIL = {
    "url": "https://a.example/oil",
    "title": "Borholm",
    "text": "The lighthouse of Borholm burned twelve litres of oil a night.",
}
QUESTION = "How much oil did the lighthouse of Borholm burn?"


def record(number: int) -> dict[str, str]:
    text = f"The {TOPICS[number % 8]} of station {number} was wound every {number + 2} hours, day and night."
    more = f"The keeper of station {number} wrote each of these hours into a book."
    return {"url": f"https://a.example/{number}", "title": f"Station {number}", "text": f"{text} {more}"}


def add(app: App, first: int, last: int) -> str:
    rows = [*map(record, range(first, last)), *([OIL] if first == 0 else [])]
    return app.imports.jobs.submit(list(record_sources(map(json.dumps, rows), "pages.jsonl")), library="main")


def statuses(app: App, job: str) -> list[str]:
    return [result.status for result in finish(app, job)]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the data of an app that was used with the old model: 25 pages, and an answer."""
    folder = tmp_path_factory.mktemp("used")
    with closing(open_app(folder, embedding_model=MINILM)) as app:
        finish(app, add(app, 0, 24))
        asked = app.converse(Question("How often was the bell of station 9 wound?", ("main",)))
        assert app.wait(asked.run_id, timeout=60).citations
        until(lambda: app._database.conversations.answers_with_citations("main", 1))
    return folder


@pytest.fixture
def folder(used: Path, tmp_path: Path) -> Path:
    return copytree(used, tmp_path / "data")


@pytest.fixture
def app(folder: Path) -> Iterator[App]:
    with closing(open_app(folder)) as opened:
        yield opened


def ended(app: App) -> LibraryMove:
    move = app.moves.wait("main", 60)
    assert (move.state, move.notice) == ("done", None)
    return move


def test_it_moves_is_compared_and_goes_back(app: App) -> None:
    assert app.library("main").embedding_model == MINILM
    assert app.libraries.current_model() == model_files.E5
    before = {page.url: app.library("main").chunks(page.url_hash) for page in app.library("main").pages()}
    app.moves.begin("main", model_files.E5)
    move = ended(app)
    assert (move.asked, move.found) == (1, 1)
    assert move.done == move.total == sum(map(len, before.values()))
    assert app.library("main").embedding_model == model_files.E5
    assert {page.url: app.library("main").chunks(page.url_hash) for page in app.library("main").pages()} == before
    assert app.search("守灯人多久上一次发条？", library="main").passages  # which the old model could not read
    assert statuses(app, add(app, 20, 26)) == ["unchanged"] * 4 + ["added"] * 2
    app.moves.go_back("main")
    ended(app)
    assert app.library("main").embedding_model == MINILM
    assert app.search("station 25", library="main").passages[0].url == "https://a.example/25"


def test_every_question_is_answered_and_no_page_lost_meanwhile(app: App) -> None:
    texts: list[str] = []
    done = threading.Event()

    def ask_on() -> None:
        while not done.is_set():
            answer = ask(app, QUESTION)
            texts.append(answer.text if answer.citations else answer.outcome)

    app.imports.start()
    asking = threading.Thread(target=ask_on)
    asking.start()
    job = add(app, 24, 120)
    app.moves.begin("main", model_files.E5)
    ended(app)
    finish(app, job)
    done.set()
    asking.join(60)
    assert len(texts) > 2
    assert not [text for text in texts if "twelve litres" not in text]
    assert set(statuses(app, job)) <= {"added", "unchanged"}
    library = app.library("main")
    assert (library.page_count(), library.embedding_model) == (121, model_files.E5)
    assert library.audit(deep=True).incomplete == 0
    assert library.chunk_count() == sum(page.chunks for page in library.pages())


def test_an_import_goes_on_with_the_new_model_after_the_switch(app: App) -> None:
    move, _ = app.libraries.move("main", model_files.E5, lambda model: partial(encode, model))
    assert move.fill(lambda done, total: None, lambda: False)
    job = add(app, 24, 324)
    while app.imports.jobs.job(job).done == 0:
        time.sleep(0.005)
    app.libraries.switch(move)
    assert app.imports.jobs.job(job).state == "running"
    finish(app, job)
    assert set(statuses(app, job)) <= {"added", "unchanged"}
    library = app.library("main")
    assert (library.page_count(), library.embedding_model) == (325, model_files.E5)
    assert library.chunk_count() == sum(page.chunks for page in library.pages())


def test_a_move_that_was_cut_off_goes_on_with_the_next_start(folder: Path) -> None:
    app = open_app(folder)
    app._client.set_payload(LIBRARIES, {"moving_to": model_files.E5}, [library_id("main")])
    app.close()
    app = open_app(folder)
    assert app.library("main").embedding_model == MINILM
    app.start()
    ended(app)
    assert app.library("main").embedding_model == model_files.E5
    app.close()


def test_the_old_index_is_kept_for_seven_days(app: App) -> None:
    app.moves.begin("main", model_files.E5)
    ended(app)
    app.tidy()
    assert len(chunks_collections(app._client, "main")) == 2
    moment = datetime.now(UTC) - timedelta(days=7, seconds=1)
    app._client.set_payload(LIBRARIES, {"moved_at": moment.isoformat()}, [library_id("main")])
    with pytest.raises(StoreError, match="is gone"):
        app.moves.go_back("main")
    app.tidy()
    assert len(chunks_collections(app._client, "main")) == 1
    assert app.search(QUESTION, library="main").passages


def test_a_model_that_the_app_does_not_search_with_is_refused(app: App) -> None:
    with pytest.raises(StoreError, match="BAAI/bge-m3"):
        app.libraries.target_model("BAAI/bge-m3")
    app.moves.begin("main", "BAAI/bge-m3")  # like going back to a model that the settings no longer name
    failed = app.moves.wait("main", 60)
    assert failed.state == "failed"
    assert failed.notice is not None and failed.notice.code == "move_other_model"
    assert app.search(QUESTION, library="main").passages
    targets = [app.libraries.target_model(one) for one in ("", "builtin", MINILM)]
    assert targets == [model_files.E5, model_files.E5, MINILM]
    with pytest.raises(StoreError, match="is gone"):
        app.moves.go_back("main")


def test_the_command_moves_and_goes_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir", str(folder), "move-library"]) == 0
    assert "main is searched with multilingual-e5-small" in capsys.readouterr().out
    assert main(["--data-dir", str(folder), "move-library"]) == 1
    assert "already uses" in capsys.readouterr().err
    assert main(["--data-dir", str(folder), "move-library", "--back", "--json"]) == 0
    said = capsys.readouterr().out
    assert '"model": "all-MiniLM-L6-v2"' in said
    assert '"asked": 1, "found": 1' in said
