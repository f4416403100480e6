"""The whole app over real pages and the built-in model, with and without a chat model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from examples import langchain_program
from rag.app import App, ChatOptions, RunOptions
from rag.errors import ConfigError, ModelError, ModelMismatchError, StoreUnavailableError
from rag.ingest.sources import example_sources
from rag.locales import say
from rag.prompts.texts import SHIPPED
from rag.retrieval.context import CAVEAT_THRESHOLD
from rag.retrieval.retriever import Retriever
from rag.runs.run import Question
from rag.store.qdrant.library import open_library
from rag.store.values import Filters, wait_limit
from rag.tracing import Span
from rag.types import Answer, Notice, Retrieval
from tests.support.apps import add_records, ask, open_app
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.qdrant_server import QdrantServer
from tests.support.tiny_model import build_tiny_reranker
from tests.support.waiting import until

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def app(samples_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with the sample pages."""
    with closing(open_app(copytree(samples_folder, tmp_path_factory.mktemp("app") / "data"))) as app:
        yield app


PRICE = "What does the Team plan cost per person and month?"


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
@pytest.mark.parametrize(("question", "gold"), [(PRICE, "9"), ("本科生最多可以借多少册图书？", "20 册")])
def test_questions_get_cited_answers(app: App, question: str, gold: str, mode: str) -> None:
    answer = ask(app, question, mode)
    assert answer.outcome == "answered"
    assert gold in answer.text
    assert answer.model_calls == 0
    assert answer.reasoner == "extractive"
    check_citations(app, answer)


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_chat_model_writes_the_answer(app: App, mode: str) -> None:
    with ChatServer(rules) as server:
        chat = ChatOptions("qwen3:8b", server.base_url, "key")
        answer = ask(app, PRICE, mode, chat=chat)
    assert answer.outcome == "answered"
    assert answer.reasoner == "qwen3:8b"
    assert 1 <= answer.model_calls <= (2 if mode == "fast" else 12)
    check_citations(app, answer)


@pytest.mark.parametrize("mode", ["fast", "research", "judge"])
def test_an_empty_library_is_said_to_be_empty(app: App, mode: Any) -> None:
    app.libraries.create(f"bare-{mode}")
    answer = app.wait(app.ask(Question("How much does the Team plan cost?", (f"bare-{mode}",), mode=mode)))
    assert answer.outcome == "not_in_pages" and answer.notice == Notice("no_pages")


def test_when_the_chat_model_fails_the_passages_are_quoted(app: App) -> None:
    chat = ChatOptions("m", "http://127.0.0.1:9/v1", "key")
    answer = ask(app, PRICE, chat=chat)
    assert answer.outcome == "caveat"
    assert answer.passages and answer.citations
    assert answer.notice and answer.notice.cause == "chat_unreachable"
    assert answer.usage.calls == 0
    with pytest.raises(ModelError):
        app.chats.test(chat)


def test_a_library_refuses_another_embedding_model(tmp_path: Path) -> None:
    with closing(open_app(tmp_path)) as other:
        open_library(other._client, "main", "another-model", 12)
        with pytest.raises(ModelMismatchError, match="another-model"):
            other.imports.ingestor("main")
        assert other.library("main").pages() == []


def test_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Can't write"):
        open_app(tmp_path / "file" / "data")


def test_a_langchain_program_over_the_library(app: App) -> None:
    """Run the example program verbatim."""
    prompt, *chunks = langchain_program.run(app, "main", "What does the Team plan cost?")
    assert prompt.startswith("[1] Skiff plans and prices: ")
    assert "The Team plan costs 9 euros per person and month" in prompt
    assert len(chunks) == 3 and all(chunk.startswith("https://") for chunk in chunks)


def test_it_starts_while_its_server_is_away_and_finds_it_by_itself(tmp_path: Path) -> None:
    server = QdrantServer(tmp_path / "server")
    with closing(open_app(tmp_path / "data", qdrant_url=server.url)) as app:
        assert (away := app.outage()) is not None
        assert "Check QDRANT_URL" in say(away, "en")
        with wait_limit(0):
            assert [info.name for info in app.libraries.infos()] == ["main"]
            with pytest.raises(StoreUnavailableError):
                app.library()
        with server:
            until(lambda: not app.outage())
            assert app.library().page_count() == 0


# Searches: the strategy, texts by a chat model within the calls of a run, scopes, languages


class Model:
    """A model that follows the rules, writes texts to search with, and records the kinds of its calls."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.kinds: list[str] = []

    def __call__(self, request: Request) -> Reply | str:
        system = str(request.messages[0].get("content"))
        jobs = {"hypothetical": "passage", "phrasings": "phrasings", "translation": "translation"}
        texts = {kind: SHIPPED.for_job(job, system).text for job, kind in jobs.items()}
        kind = next((kind for kind, text in texts.items() if system.startswith(text.partition("{")[0])), "")
        self.kinds.append(kind or "other")
        return self.texts[kind] if kind else rules(request)


def ask_model(app: App, question: str, model: Model, mode: str, strategy: str = "") -> Answer:
    with ChatServer(model) as server:
        chat = ChatOptions("test", server.base_url, "key")
        return ask(app, question, mode, options=RunOptions(strategy=strategy), chat=chat)


def notes(answer: Answer) -> Any:
    return answer.searches[0].notes


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_passage_is_one_more_call_that_counts(app: App, mode: str) -> None:
    model = Model(passage="The Team plan costs nine euros per person and month.")
    answer = ask_model(app, PRICE, model, mode=mode, strategy="hyde")
    assert answer.outcome == "answered"
    assert model.kinds == ["passage", "other"] if mode == "fast" else model.kinds.count("passage") == 1
    assert answer.model_calls == len(model.kinds)
    assert notes(answer)["passage"] == model.texts["passage"]


def test_phrasings_are_searched_beside_the_question(app: App) -> None:
    model = Model(phrasings="Team plan price\nmonthly price of a person")
    answer = ask_model(app, PRICE, model, mode="deep", strategy="multi_query")
    assert notes(answer)["queries"][1:] == ["Team plan price", "monthly price of a person"]


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_question_in_chinese_finds_the_english_page_without_a_translation(app: App, mode: str) -> None:
    model = Model(translation=PRICE)
    found = ask_model(app, "Business 套餐每人每月多少钱？", model, mode=mode)
    assert "translation" not in model.kinds
    first = found.searches[0]
    assert any("pricing" in passage.url for passage in first.passages[:4]) and first.answerable >= CAVEAT_THRESHOLD


def test_search_only_asks_no_model_unless_the_strategy_writes(app: App) -> None:
    model = Model(passage="The Team plan costs nine euros.")
    with ChatServer(model) as server:
        chat = ChatOptions("test", server.base_url, "key")
        for strategy in ("mmr", "auto", "rerank"):
            app.search("小艇团队套餐", library="main", strategy=strategy, chat=chat)
        assert model.kinds == []
        app.search(PRICE, library="main", strategy="hyde", chat=chat)
    assert model.kinds == ["passage"]


def test_a_page_named_in_the_question_confines_the_search(app: App) -> None:
    found = app.search("In the release notes, what does the Team plan cost?", library="main")
    assert {passage.title for passage in found.passages} == {"Skiff release notes"}
    assert found.question == "what does the Team plan cost?"
    assert found.notes["scope"] == {"code": "scope_named", "params": {"names": "Skiff release notes"}}


def test_a_scope_that_holds_nothing_is_left(app: App) -> None:
    question = "在《古城墙夜市：吃什么，怎么去》中，restore a whole folder"
    found = app.search(question, library="main", filters=Filters(languages=("en",)))
    assert found.passages
    assert found.notes["scope"]["code"] == "scope_empty"


def test_what_was_chosen_beside_the_question_is_kept(app: App) -> None:
    (page,) = [page for page in app.library("main").pages() if page.url.endswith("/handbook")]
    filters = Filters(pages=(page.url_hash,))
    found = app.search("In the release notes, what is new?", library="main", filters=filters)
    assert {passage.url_hash for passage in found.passages} == {page.url_hash}
    answer = app.wait(app.ask(Question(PRICE, ("main",), scope=filters)), timeout=60)
    assert {passage.url_hash for passage in answer.passages} <= {page.url_hash}


TEA = {"url": "https://a.example/tea", "title": "Tea", "text": "Green tea needs cooler water."}


def test_the_settings_choose_the_strategy_and_the_reranker(tmp_path: Path) -> None:
    folder = build_tiny_reranker(tmp_path / "reranker")
    for reranker, code in ((str(folder), "rerank_with"), ("", "rerank_without_weights")):
        with closing(open_app(tmp_path, strategy="rerank", reranker_model=reranker)) as app:
            add_records(app, TEA)
            found = app.search("green tea", library="main")
            assert (found.strategy, found.notes["reranker"]["code"]) == ("rerank", code)
            assert app.search("green tea", library="main", strategy="keyword").strategy == "keyword"


def test_a_reranker_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    with closing(open_app(tmp_path, reranker_model="/no/such")) as app:
        add_records(app, TEA)
        found = app.search("green tea", library="main")
        assert found.passages
        assert "RERANKER_MODEL" in say(Notice(**found.notes["fell_back"]), "en")


def test_a_fast_answer_makes_one_search_and_its_follow_ups_none(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    searching = Retriever.search

    def counted(retriever: Retriever, question: str, **how: Any) -> Retrieval:
        searched.append(question)
        return searching(retriever, question, **how)

    monkeypatch.setattr(Retriever, "search", counted)
    asked = app.converse(Question("绿茶用多少度的水泡？", ("main",)))
    app.wait(asked.run_id, 60)
    until(lambda: app.conversations.turn(asked.turn_id).suggestions)
    assert len(searched) == 1
    assert [span.kind for span in app.conversations.spans(asked.turn_id)].count("leg") == 1


def test_a_run_is_traced_as_spans_of_steps_and_searches(app: App) -> None:
    with ChatServer(Model()) as server:
        chat = ChatOptions("test", server.base_url, "key")
        asked = app.converse(Question(PRICE, ("main",)), chat=chat, owner="ann")
        answer = app.wait(asked.run_id, 60)
    spans = {span.id: span for span in app.conversations.spans(asked.turn_id, "ann")}

    def path(span: Span) -> str:
        return f"{path(spans[span.parent])} {span.kind}" if span.parent else span.kind

    assert [span.name for span in spans.values() if span.kind == "node"] == [step.node for step in answer.steps]
    told = {f"{path(span)}: {span.name}" for span in spans.values()}
    assert {"node: agent", "node model: test", "node: retrieve", "node tool: retrieve", "node: generate"} <= told
    assert any(one.startswith("node tool leg: ") for one in told)
    models = [span for span in spans.values() if span.kind == "model"]
    assert len(models) == answer.model_calls
    assert sum(span.attributes["tokens_in"] for span in models) == answer.usage.tokens_in
    assert all(span.status == "ok" and spans.get(span.parent, span).start <= span.start for span in spans.values())
    assert app.conversations.spans(asked.turn_id, "bob") == []
