"""Searching through the app: the configured strategy, texts by a chat model within a run's calls, scopes, languages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, ChatOptions, Question, RunOptions
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.sources import record_sources
from rag.locales import say
from rag.prompts.texts import SHIPPED
from rag.retrieval.context import CAVEAT_THRESHOLD
from rag.retrieval.retriever import Retriever
from rag.store.values import Filters
from rag.tracing import Span
from rag.types import Answer, Notice, Retrieval
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.tiny_model import build_tiny_reranker

PRICE = "What does the Team plan cost per person and month?"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Yield an app with the sample pages."""
    folder = tmp_path_factory.mktemp("data")
    app = App(load_settings(None, rag_data_dir=folder, qdrant_url="", llm_model="", llm_base_url=""))
    job_id = app.imports.add_examples(library="main")
    end = time.monotonic() + 120
    while app.imports.jobs.job(job_id).state == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    yield app
    app.close()


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


def _question(text: str, *, mode: str, strategy: str = "") -> Question:
    return Question(text, ("main",), mode, options=RunOptions(strategy=strategy))


def ask(app: App, question: str, model: Model, **how: Any) -> Answer:
    with ChatServer(model) as server:
        chat = ChatOptions("test", server.base_url, "key")
        return app.wait(app.ask(_question(question, **how), chat=chat), timeout=60)


def notes(answer: Answer) -> Any:
    return answer.searches[0].notes


def test_in_fast_mode_a_passage_is_one_more_call(app: App) -> None:
    model = Model(passage="The Team plan costs nine euros.")
    answer = ask(app, PRICE, model, mode="fast", strategy="hyde")
    assert (answer.outcome, answer.model_calls, model.kinds) == ("answered", 2, ["passage", "other"])


def test_in_deep_mode_a_passage_is_one_more_call_that_counts(app: App) -> None:
    model = Model(passage="The Team plan costs nine euros per person and month.")
    answer = ask(app, PRICE, model, mode="deep", strategy="hyde")
    assert answer.outcome == "answered"
    assert model.kinds.count("passage") == 1
    assert answer.model_calls == len(model.kinds)
    assert notes(answer)["passage"] == model.texts["passage"]


def test_the_default_strategy_makes_no_calls_of_its_own(app: App) -> None:
    for mode in ("fast", "deep"):
        model = Model()
        ask(app, PRICE, model, mode=mode)
        assert set(model.kinds) == {"other"}


def test_phrasings_are_searched_beside_the_question(app: App) -> None:
    model = Model(phrasings="Team plan price\nmonthly price of a person")
    answer = ask(app, PRICE, model, mode="deep", strategy="multi_query")
    assert notes(answer)["queries"][1:] == ["Team plan price", "monthly price of a person"]


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_question_in_chinese_finds_the_english_page_without_a_translation(app: App, mode: str) -> None:
    model = Model(translation="What does the Team plan cost per person and month?")
    found = ask(app, "Business 套餐每人每月多少钱？", model, mode=mode)
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


def test_the_settings_choose_the_strategy_and_the_reranker(tmp_path: Path) -> None:
    folder = build_tiny_reranker(tmp_path / "reranker")
    line = json.dumps({"url": "https://a.example/tea", "title": "Tea", "text": "Green tea needs cooler water."})
    for reranker, code in ((str(folder), "rerank_with"), ("", "rerank_without_weights")):
        chosen = {"strategy": "rerank", "reranker_model": reranker}
        settings = load_settings(None, rag_data_dir=tmp_path, qdrant_url="", llm_model="", **chosen)
        with closing(App(settings)) as app:
            list(ingest_all(app.imports.ingestor("main"), list(record_sources([line], "lines"))))
            found = app.search("green tea", library="main")
            assert (found.strategy, found.notes["reranker"]["code"]) == ("rerank", code)
            assert app.search("green tea", library="main", strategy="keyword").strategy == "keyword"


def test_a_reranker_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    settings = load_settings(None, rag_data_dir=tmp_path, qdrant_url="", llm_model="", reranker_model="/no/such")
    with closing(App(settings)) as app:
        line = json.dumps({"url": "https://a.example/tea", "title": "Tea", "text": "Green tea needs cooler water."})
        list(ingest_all(app.imports.ingestor("main"), list(record_sources([line], "lines"))))
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
    until = time.monotonic() + 60
    while not app.conversations.turn(asked.turn_id).suggestions:
        assert time.monotonic() < until
        time.sleep(0.05)
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
