"""The whole app over real pages and the built-in model, with and without a chat model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from examples import langchain_program
from rag.app import App, ChatOptions
from rag.config import Settings, load_settings
from rag.errors import ConfigError, ModelError, ModelMismatchError, StoreBusyError, StoreUnavailableError
from rag.ingest.sources import example_sources
from rag.locales import say
from rag.runs.run import Question
from rag.store.values import wait_limit
from rag.types import Answer
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.qdrant_server import QdrantServer


def settings_for(folder: Path, **more: str) -> Settings:
    return load_settings(None, rag_data_dir=folder, qdrant_url="", llm_model="", llm_base_url="", **more)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with the sample pages."""
    app = App(settings_for(tmp_path_factory.mktemp("data")))
    job_id = app.imports.add_examples(library="main")
    end = time.monotonic() + 120
    while app.imports.jobs.job(job_id).state == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    yield app
    app.close()


def ask(app: App, question: str, mode: str = "fast", **how: object) -> Answer:
    return app.wait(app.ask(Question(question, ("main",), mode), **how), timeout=60)  # type: ignore[arg-type]


def check_citations(app: App, answer: Answer) -> None:
    assert answer.citations
    for citation in answer.citations:
        page = app.library("main").page(citation.url_hash)
        assert page is not None
        assert page.text[citation.start : citation.end] == citation.quote
        assert f"[{citation.n}]" in answer.text


def test_the_sample_pages_go_in(app: App) -> None:
    pages = app.library("main").pages()
    assert len(pages) == len(example_sources()) >= 12
    assert {page.language for page in pages} == {"en", "zh"}
    assert all(page.title and page.url.startswith("https://") and page.chunks for page in pages)


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no modes")
def test_nobody_else_reads_what_it_keeps(app: App) -> None:
    folder = app.settings.rag_data_dir
    files = [folder, *folder.rglob("*")]
    assert len(files) > 10
    assert not [path for path in files if path.lstat().st_mode & 0o077]


@pytest.mark.parametrize(
    ("wish", "title"), [("Summarise the travel policy", "Travel"), ("总结《临江地铁票价与乘车指南》", "地铁")]
)
def test_a_page_is_summarised_and_its_summary_kept(app: App, wish: str, title: str) -> None:
    answer = ask(app, wish, "summary")
    assert (answer.outcome, answer.model_calls) == ("answered", 0)
    assert len(answer.citations) >= 8 and all(title in one.title for one in answer.citations)
    check_citations(app, answer)
    again = ask(app, wish, "summary")
    assert again.notice and again.notice.code == "summary_kept"
    assert (again.text, again.citations) == (answer.text, answer.citations)


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize(
    ("question", "gold"),
    [
        ("What does the Team plan cost per person and month?", "9"),
        ("本科生最多可以借多少册图书？", "20 册"),
    ],
)
def test_questions_get_cited_answers(app: App, question: str, gold: str, mode: str) -> None:
    answer = ask(app, question, mode)
    assert answer.outcome == "answered"
    assert gold in answer.text
    assert answer.model_calls == 0
    assert answer.reasoner == "extractive"
    check_citations(app, answer)


def test_a_question_that_no_page_answers(app: App) -> None:
    answer = ask(app, "Which zeppelin crossed the Atlantic in 1928?")
    assert (answer.outcome, answer.text, answer.citations) == ("not_in_pages", "", ())


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_chat_model_writes_the_answer(app: App, mode: str) -> None:
    with ChatServer(rules) as server:
        chat = ChatOptions("qwen3:8b", server.base_url, "key")
        answer = ask(app, "What does the Team plan cost per person and month?", mode, chat=chat)
    assert answer.outcome == "answered"
    assert answer.reasoner == "qwen3:8b"
    assert 1 <= answer.model_calls <= (2 if mode == "fast" else 12)
    check_citations(app, answer)


def test_when_the_chat_model_fails_the_passages_are_quoted(app: App) -> None:
    chat = ChatOptions("m", "http://127.0.0.1:9/v1", "key")
    answer = ask(app, "What does the Team plan cost per person and month?", chat=chat)
    assert answer.outcome == "caveat"
    assert answer.passages and answer.citations
    assert answer.notice and answer.notice.cause == "chat_unreachable"
    assert answer.usage.calls == 0
    with pytest.raises(ModelError):
        app.chats.test(chat)


def test_a_library_refuses_another_embedding_model(tmp_path: Path) -> None:
    other = App(settings_for(tmp_path))
    try:
        from rag.store.qdrant.library import open_library

        open_library(other._client, "main", "another-model", 12)
        with pytest.raises(ModelMismatchError, match="another-model"):
            other.imports.ingestor("main")
        assert other.library("main").pages() == []
    finally:
        other.close()


def test_libraries_live_side_by_side(app: App) -> None:
    name = app.libraries.create("Team B")
    assert app.library(name).page_count() == 0
    assert [info.display_name for info in app.libraries.infos()] == ["main", "Team B"]


def test_a_second_process_gets_one_sentence(app: App) -> None:
    with pytest.raises(StoreBusyError) as caught:
        App(settings_for(app.settings.rag_data_dir))
    assert "\n" not in str(caught.value)


def test_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Can't write"):
        App(settings_for(tmp_path / "file" / "data"))


def test_a_langchain_program_over_the_library(app: App) -> None:
    """Run the example program verbatim."""
    prompt, *chunks = langchain_program.run(app, "main", "What does the Team plan cost?")
    assert prompt.startswith("[1] Skiff plans and prices: ")
    assert "The Team plan costs 9 euros per person and month" in prompt
    assert len(chunks) == 3 and all(chunk.startswith("https://") for chunk in chunks)


def test_a_model_that_cannot_be_loaded_is_remembered(tmp_path: Path) -> None:
    app = App(settings_for(tmp_path, embedding_model=str(tmp_path / "nowhere")))
    assert app.models.problem() is None
    with pytest.raises(ModelError):
        _ = app.models.embedding
    problem = app.models.problem()
    assert problem is not None
    assert problem.code == "embedding_no_folder"
    assert not app.models.ready()
    app.close()


def test_it_starts_while_its_server_is_away_and_finds_it_by_itself(tmp_path: Path) -> None:
    server = QdrantServer(tmp_path / "server")
    app = App(load_settings(None, rag_data_dir=tmp_path / "data", qdrant_url=server.url, llm_model=""))
    with closing(app):
        assert (away := app.outage()) is not None
        assert "Check QDRANT_URL" in say(away, "en")
        with wait_limit(0):
            assert [info.name for info in app.libraries.infos()] == ["main"]
            with pytest.raises(StoreUnavailableError):
                app.library()
        with server:
            while app.outage():
                time.sleep(0.05)
            assert app.library().page_count() == 0
