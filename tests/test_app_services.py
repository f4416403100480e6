"""The app with models by URL: real store, real HTTP servers."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, Question
from rag.cli import main
from rag.commands.doctor import examine
from rag.config import load_settings
from rag.errors import ConfigError, ModelError
from rag.ingest.sources import record_sources
from rag.models import model_files
from rag.models.embedding import EmbeddingModel
from tests.support.apps import ask, finish, open_app, refusal
from tests.support.model_server import ModelServer, hash_texts
from tests.support.quoting import builtin_model
from tests.support.waiting import until

pytestmark = pytest.mark.weights

PAGES = [
    {
        "url": f"https://a.example/{number}",
        "title": f"Station {number}",
        "text": f"The {thing} of station {number} was wound every {number + 2} hours. Its keeper wrote it into a book.",
    }
    for number, thing in enumerate(("lamp", "bell", "door", "clock", "harbour", "ladder", "window", "garden"))
]
QUESTION = "How often was the bell of station 1 wound?"


@contextmanager
def app_of(folder: Path, server: ModelServer | None = None, **settings: Any) -> Iterator[App]:
    if server is not None:
        settings = {"embedding_base_url": server.url, "embedding_model": "m", "embedding_timeout": 2.0, **settings}
    with closing(open_app(folder, **settings)) as app:
        yield app


def add(app: App, pages: Sequence[dict[str, str]] = PAGES) -> list[str]:
    """Import the pages; return their statuses."""
    sources = list(record_sources(map(json.dumps, pages), "pages.jsonl"))
    return [result.status for result in finish(app, app.imports.jobs.submit(sources, library="main"))]


def test_pages_are_added_and_found_by_a_service(tmp_path: Path) -> None:
    with ModelServer("openai") as server, app_of(tmp_path, server) as app:
        assert add(app) == ["added"] * len(PAGES)
        found = app.search(QUESTION, library="main")
        assert (found.legs, found.passages[0].url) == (("dense", "sparse"), PAGES[1]["url"])
        assert app.library("main").embedding_model == "m@service"
        assert app.library("main").dimension == 64


def test_a_silent_service_leaves_keywords_with_a_notice(tmp_path: Path) -> None:
    with ModelServer("tei") as server:
        with app_of(tmp_path, server, embedding_timeout=1.0) as app:
            add(app)
            server.delay = 300.0
            answer = ask(app, QUESTION)
            assert answer.citations[0].url == PAGES[1]["url"]
            assert answer.searches[0].legs == ("sparse",)
            assert answer.notice is not None
            assert answer.notice.code == "searched_by_keywords"
        with app_of(tmp_path, server, embedding_timeout=1.0) as app:  # a start while the service is silent
            assert app.search(QUESTION, library="main").notes["meaning"]["code"] == "service_timeout"
            server.delay, server.faults = 0.0, [503] * 8
            assert add(app, [{**PAGES[0], "url": "https://a.example/new", "text": "A new page of text."}]) == ["failed"]
            server.faults = []
            time.sleep(1.1)
            assert app.search(QUESTION, library="main").legs == ("dense", "sparse")


def test_a_service_that_comes_back_with_another_model_is_noticed(tmp_path: Path) -> None:
    with ModelServer("openai") as server:
        port = server.port
        with app_of(tmp_path, server) as app:
            add(app)
    other = ModelServer("openai", encode=lambda texts: hash_texts(texts, seed=1), port=port)
    with other, app_of(tmp_path, other) as app:
        assert refusal(partial(app.search, QUESTION, library="main")) == "service_model_exchanged"
        assert refusal(app.imports.ingestor, "main") == "service_model_exchanged"
    with ModelServer("openai", port=port) as server, app_of(tmp_path, server) as app:
        assert app.search(QUESTION, library="main").legs == ("dense", "sparse")


@pytest.mark.skipif(model_files.find_e5_package() is None, reason="the built-in model is the other one")
def test_a_model_by_url_finds_the_same_passages_as_a_local_one(tmp_path: Path) -> None:
    questions = [f"How often was the {page['text'].split()[1]} wound?" for page in PAGES]
    local: EmbeddingModel = builtin_model()

    def same(texts: Sequence[str]) -> list[list[float]]:
        return [
            (
                local.encode_query(text[7:]) if text.startswith("query: ") else local.encode_passages([text[9:]])[0]
            ).tolist()
            for text in texts
        ]

    with app_of(tmp_path / "here") as app:
        add(app)
        expected = [[one.url for one in app.search(asked, library="main").passages] for asked in questions]
    shutil.copytree(tmp_path / "here", tmp_path / "moved")
    with ModelServer("tei", encode=lambda texts: same([*texts])) as server:
        of_service = {"embedding_model": "intfloat/multilingual-e5-small", "embedding_timeout": 30.0}
        with app_of(tmp_path / "there", server, **of_service) as app:
            add(app)
            assert [[one.url for one in app.search(asked, library="main").passages] for asked in questions] == expected
        with app_of(tmp_path / "moved", server, **of_service) as app:
            app.moves.begin("main", app.libraries.target_model(""))
            assert app.moves.wait("main", 60).state == "done"
            assert app.library("main").embedding_model == "intfloat/multilingual-e5-small@service"
            assert [[one.url for one in app.search(asked, library="main").passages] for asked in questions] == expected
            app.moves.go_back("main")
            assert app.moves.wait("main", 60).state == "done"
            assert app.library("main").embedding_model == model_files.E5


def test_a_served_model_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="EMBEDDING_MODEL"):
        load_settings(None, embedding_base_url="http://127.0.0.1:1", embedding_model="builtin")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of an app with answered questions and citations."""
    folder = tmp_path_factory.mktemp("asked")
    with app_of(folder) as app:
        add(app)
        for number, page in enumerate(PAGES):
            thing = page["text"].split()[1]
            run = app.converse(Question(f"How often was the {thing} of station {number} wound?", ("main",))).run_id
            assert app.wait(run, timeout=60).citations
        until(lambda: len(app._database.conversations.answers_with_citations("main", 50)) == len(PAGES))
    return folder


def test_a_reranker_by_address_runs_only_after_a_comparison(
    asked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ModelServer("cohere") as server:
        of_service = {"reranker_base_url": server.url, "reranker_model": "judge"}
        with app_of(asked, **of_service) as app:
            assert app.models.reranker is None
            assert refusal(app.models.reranking.switch, True) == "reranker_not_compared"
            app.search(QUESTION, library="main")
            assert server.requests == []
            found = app.compare_reranker("main")
            assert (found.n, found.after) == (len(PAGES), 1.0)
            assert app.models.reranker is None
        monkeypatch.chdir(asked)
        for name, value in {"RAG_DATA_DIR": str(asked), **of_service}.items():
            monkeypatch.setenv(name.upper(), value)
        assert main(["reranker", "--on"]) == 0
        assert "judge: on" in capsys.readouterr().out
        with app_of(asked, **of_service) as app:  # it stays enabled
            searched = app.search(QUESTION, library="main")
            assert searched.notes["reranker"]["params"]["model"] == "judge"
            server.score = lambda question, texts: [float("nan") for _ in texts]
            failed = app.search(QUESTION, library="main")
            assert failed.notes["fell_back"]["code"] == "service_not_finite"
        with app_of(asked) as app:
            plain = app.search(QUESTION, library="main")
        assert [one.id for one in failed.passages] == [one.id for one in plain.passages]
        with app_of(asked, **{**of_service, "reranker_model": "another"}) as app:
            assert app.models.reranker is None  # of which nothing is known


def test_a_comparison_needs_a_reranker_that_works_and_questions(tmp_path: Path) -> None:
    with ModelServer("cohere") as server, app_of(tmp_path, reranker_base_url=server.url) as app:
        add(app)
        assert refusal(app.compare_reranker, "main") == "reranker_no_questions"
    with app_of(tmp_path) as app:
        assert refusal(app.compare_reranker, "main") == "reranker_none"


def test_a_comparison_with_a_reranker_that_is_away_notes_nothing(asked: Path) -> None:
    with app_of(asked, reranker_base_url="http://127.0.0.1:9") as app:
        assert refusal(app.compare_reranker, "main") == "service_unreachable"
        assert not app.models.reranking.comparison
        with pytest.raises(ModelError):
            app.models.reranking.configured.scores("a", ["b"])  # type: ignore[union-attr]


def test_doctor_names_the_services_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    def found(app: App, part: str) -> tuple[bool, str]:
        (one,) = (one for one in examine(app) if one.part == part)
        return one.works, one.text

    with ModelServer("openai") as server, app_of(tmp_path, server, reranker_base_url="http://127.0.0.1:9") as app:
        add(app)
        assert found(app, "embedding model") == (True, f"m@service, 64 dimensions, served by 127.0.0.1:{server.port}.")
        assert found(app, "reranker")[0] is False
    other = ModelServer("openai", encode=lambda texts: hash_texts(texts, seed=1), port=server.port)
    with other, app_of(tmp_path, other) as app:
        works, text = found(app, "embedding model")
        assert (works, "no longer serves the model" in text) == (False, True)
