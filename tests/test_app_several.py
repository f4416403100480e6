"""Several libraries asked at once: each with its own model, every source with its library's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, Question
from rag.cli import main
from rag.ingest.batch import ingest_all
from rag.ingest.chunking import get_chunker
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import record_sources
from rag.reading.parser import Parser
from rag.store.qdrant.library import open_library
from rag.types import RunMode
from rag.ui.kit.sources import answer_of, pages_now
from rag.web.fetch import Fetcher
from tests.support.apps import open_app, refusal
from tests.support.hashed_model import HashedBuiltin, HashedModel

BRIDGE = "The harbour bridge was opened in 1932. It has eight lanes and two tracks for trains. Ships pass below it."
FERRY = "The harbour ferry crosses in eleven minutes. It was opened in 1911. It carries bicycles for free."
WHEN = "When was the harbour ferry opened?"
BOTH = ("main", "boats")


def _row(name: str, text: str) -> str:
    return json.dumps({"url": f"https://{name}.example/", "title": name.title(), "lang": "en", "text": text})


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with a library of the current model, and one of another model."""
    loaded = {"builtin": HashedBuiltin, HashedBuiltin.name: HashedBuiltin, "hashed": HashedModel}
    patch = pytest.MonkeyPatch()
    patch.setattr("rag.app.libraries.load_embedding_model", lambda name: loaded[name]())
    folder = tmp_path_factory.mktemp("data")
    with closing(open_app(folder)) as app:
        ingestor = app.imports.ingestor("main")
        other = open_library(app._client, "boats", "hashed", HashedModel.dimension)
        boats = Ingestor(other, HashedModel(), app.models.sparse, Fetcher(()), Parser(), get_chunker())
        for each, name, text in ((ingestor, "bridge", BRIDGE), (boats, "ferry", FERRY)):
            done = list(ingest_all(each, list(record_sources([_row(name, text)], name))))
            assert [result.status for _, result in done] == ["added"]
        app.libraries.rename("boats", "Boats and ferries")
        yield app
    patch.undo()


@pytest.mark.parametrize("mode", ["fast", "deep", "research", "judge"])
def test_every_mode_answers_from_both_and_names_the_library(app: App, mode: RunMode) -> None:
    answer = app.wait(app.ask(Question(WHEN, BOTH, mode)), 60)
    assert "1911" in answer.text, answer
    assert {one.library for one in answer.citations if "1911" in one.quote} == {"boats"}
    assert {one.library for one in answer.passages} <= set(BOTH)
    assert all(one.library for one in answer.passages)
    alone = app.wait(app.ask(Question("When was the harbour bridge opened?", ("main",), mode)), 60)
    assert "1932" in alone.text and {one.library for one in alone.citations} == {""}


def test_a_library_that_is_not_there_is_refused(app: App) -> None:
    for ask in (app.ask, app.converse):
        assert refusal(ask, Question(WHEN, ("main", "secret"))) == "library_unknown"


def test_weights_say_whose_passages_come_first(app: App) -> None:
    question = "Which harbour opened?"
    for heavy, light in (BOTH, BOTH[::-1]):
        found = app.search(question, library="main", others=["boats"], weights={light: 0.1})
        assert found.passages[0].library == heavy
        assert {one.passage.library for one in found.candidates} == set(BOTH)


def test_a_stored_answer_finds_its_texts_where_they_are(app: App) -> None:
    scope = {"scope": {"libraries": ["boats"]}}
    asked = app.converse(Question(WHEN, BOTH), settings=scope)
    answer = app.wait(asked.run_id, 60)
    turn = app.conversations.turn(asked.turn_id)
    app._runs._runs.clear()  # as after a restart
    again = answer_of(app, "main", turn)
    assert again and [one.text for one in again.passages] == [one.text for one in answer.passages]
    assert pages_now(app, "main", turn) == {}
    (cited,) = {one.url_hash for one in answer.citations if one.library == "boats"}
    assert [one.id for one in app.conversations.find_citing_turns("boats", cited)] == [asked.turn_id]
    assert app.conversations.find_citing_turns("main", cited) == []
    app.feedback.rate(asked.turn_id, 1)
    assert {"Ferry"} <= {page["title"] for page in app.feedback.pages("main", app.page)}


def test_the_command_line_takes_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    for name, text in (("bridge", BRIDGE), ("ferry", FERRY)):
        (tmp_path / "pages.jsonl").write_text(_row(name, text), encoding="utf-8")
        with closing(open_app(tmp_path / "data")) as made:
            if not made.libraries.has(name):
                made.libraries.create(name)
        assert main([*data, "--library", name, "import", str(tmp_path / "pages.jsonl")]) == 0
    capsys.readouterr()
    for command in ("search", "ask"):
        assert main([*data, "--library", "bridge=0.5", "--library", "ferry", command, "--json", WHEN]) == 0
        row: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert {one["library"] for one in row["hits"]} == {"bridge", "ferry"}
        assert all(one["library"] == "ferry" for one in row.get("citations", ()) if "1911" in one["quote"])
    with pytest.raises(SystemExit):
        main([*data, "--library", "bridge", "--library", "ferry", "pages"])
    with pytest.raises(SystemExit):
        main([*data, "--library", "bridge=much", "search", WHEN])
