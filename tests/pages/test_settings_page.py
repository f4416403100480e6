import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rag.app import App
from rag.app.chat_models import ChatModels
from rag.app.libraries import Models
from rag.errors import RagError
from rag.evaluation.statistics import PAIRED_ROUNDS, bootstrap_weights, mean, paired_difference
from rag.locales import label
from rag.models.model_files import builtin_model
from rag.runs.run import Question
from rag.ui.kit import session
from tests.pages.conftest import ANN, ASKED, BOB, Admit, Open, asked, newest, opened, page_file, words
from tests.support.chat_server import ChatServer, rules


def test_what_is_in_use_is_said(open_page: Open, app: App, language: str) -> None:
    page = open_page("settings", language)
    assert not page.exception
    shown = words(page)
    for key in ("use_database_embedded", "use_chat_none", "use_prices_none", "use_limits_none"):
        assert label(key, language) in shown
    assert label("use_embedding_builtin", language, name=builtin_model()) in shown
    assert str(app.settings.rag_data_dir) in shown
    page.button(key="database-test").click().run()
    assert len(page.success) == 1
    chosen = {"llm_price_in": 0.3, "llm_price_out": 1.2, "answer_max_calls": 4, "answer_max_tokens": 20_000}
    app.settings = app.settings.model_copy(update=chosen)
    shown = words(open_page("settings", language))
    assert label("use_prices_set", language, tokens_in="0.3", tokens_out="1.2") in shown
    assert label("use_limit_tokens", language, count="20,000") in shown


def test_settings_have_tabs_and_the_way_there_is_the_status(open_page: Open) -> None:
    page = open_page("chat")
    page.menu_button(key="manage").click("settings").run()
    assert page.tabs
    page = open_page("chat")
    page.button(key="status").click().run()
    tabs = [tab.label for tab in page.tabs]
    assert tabs == [label(f"settings_tab_{name}", "en") for name in ("model", "memory", "prompts", "system")]
    (details,) = (one for one in page.tabs[3].expander if one.label == label("details", "en"))
    assert any("RAG_DATA_DIR" in one.value for one in details.markdown)
    outside = [one.value for tab in page.tabs for one in (*tab.markdown, *tab.caption)]
    assert sum(".env" in text for text in outside) == sum(".env" in one.value for one in details.markdown)


def fill(page: AppTest, base_url: str, key: str = "a-key") -> None:
    for name, value in (("chat-base-url", base_url), ("chat-model", "qwen3:8b"), ("chat-key-0", key)):
        page.text_input(key=name).set_value(value)


def connect(page: AppTest, service: ChatServer, key: str = "a-key") -> AppTest:
    fill(page, service.base_url, key)
    return page.button(key="chat-use").click().run()


def test_a_chat_model_is_kept_for_this_session(open_page: Open, app: App, service: ChatServer) -> None:
    page = open_page("settings")
    fill(page, service.base_url)
    page.text_input(key="chat-fast-model").set_value("small")
    page.number_input(key="chat-temperature").set_value(0.4)
    page.button(key="chat-use").click().run()
    assert not page.exception
    assert label("chat_in_use", "en", model="qwen3:8b") in words(page)
    assert [request.body["model"] for request in service.requests] == ["qwen3:8b", "small"], "each was tested"
    assert "a-key" not in words(page)
    assert page.text_input(key="chat-key-1").value == ""
    page.switch_page(page_file("chat")).run()
    asked(page, app)
    settings = newest(app).settings
    assert [settings[name] for name in ("model", "fast_model", "temperature")] == ["qwen3:8b", "small", 0.4]
    assert len(service.requests) > 2, "it was used, with its key"


def test_a_key_goes_to_the_service_it_was_given_for(open_page: Open, service: ChatServer) -> None:
    page = connect(open_page("settings"), service)
    with ChatServer(rules) as other:
        for model, address, key in (("small", service.base_url, "a-key"), ("m", other.base_url, "")):
            page.text_input(key="chat-base-url").set_value(address)
            page.text_input(key="chat-model").set_value(model)
            page.button(key="chat-use").click().run()
            assert page.session_state["pagelight"].chat.model == model
            assert page.session_state["pagelight"].chat.api_key == key


def test_what_is_entered_is_tested_before_it_is_used(open_page: Open, service: ChatServer, language: str) -> None:
    page = connect(open_page("settings", language), service, "wrong")
    assert [str(error.value) for error in page.error] and page.session_state["pagelight"].chat is None
    connect(page, service)
    assert not page.error and page.session_state["pagelight"].chat.api_key == "a-key"
    page.button(key="chat-disconnect").click().run()
    assert page.session_state["pagelight"].chat is None
    assert label("use_chat_none", language) in words(page)


def test_a_service_and_one_of_its_models_are_chosen(open_page: Open, service: ChatServer, language: str) -> None:
    page = open_page("settings", language)
    page.button_group(key="chat-service").set_value("Ollama").run()
    assert page.text_input(key="chat-base-url").value == "http://127.0.0.1:11434/v1"
    assert page.text_input(key="chat-model").value == "qwen3:8b"
    fill(page, service.base_url)
    page.button(key="chat-list").click().run()
    page.selectbox(key="chat-served-model").set_value("qwen3:32b").run()
    assert page.text_input(key="chat-model").value == "qwen3:32b"


def test_where_own_models_are_off_there_is_no_form(open_page: Open, app: App, language: str) -> None:
    app.settings = app.settings.model_copy(update={"own_models": False})
    app.chats = ChatModels(app.settings)
    page = open_page("settings", language)
    assert not page.exception
    assert label("settings_chat_off", language) in words(page)
    assert not [field for field in page.text_input if (field.key or "").startswith("chat-")]


def test_feedback_is_counted_and_downloaded_as_test_cases(open_page: Open, app: App, language: str) -> None:
    assert label("feedback_none", language) in words(open_page("settings", language))
    turn = app.converse(Question(ASKED["en"], ("main",)))
    app.wait(turn.run_id, 60)
    app.feedback.rate(turn.turn_id, 1)
    page = open_page("settings", language)
    assert label("feedback_count_one", language) in words(page)
    assert not page.get("download_button")
    files = opened(page, "feedback-files").get("download_button")
    assert [one.proto.label for one in files] == ["questions.jsonl", "pages.jsonl"]


def test_what_is_connected_is_the_browsers(
    open_page: Open, service: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "browser_id", lambda: "one")
    connect(open_page("settings"), service)
    for browser, model in (("one", "qwen3:8b"), ("two", None), ("", None)):
        monkeypatch.setattr(session, "browser_id", lambda browser=browser: browser)
        chat = open_page("chat").session_state["pagelight"].chat
        assert (chat.model if chat else None) == model


def test_a_model_stays_with_its_person(
    open_page: Open, service: ChatServer, monkeypatch: pytest.MonkeyPatch, admit: Admit
) -> None:
    monkeypatch.setattr(session, "browser_id", lambda: "shared")
    monkeypatch.setattr(st, "logout", lambda: None)
    admit(ANN, "@example.com")
    page = connect(open_page("settings"), service)
    assert open_page("chat").session_state["pagelight"].chat
    admit(BOB, "@example.com")
    assert open_page("chat").session_state["pagelight"].chat is None, "another person in the same browser has none"
    admit(ANN, "@example.com")
    page.button(key="sign-out").click().run()
    assert open_page("chat").session_state["pagelight"].chat is None, "signing out disconnects it"


def test_rules_for_models_are_replaced_and_taken_back(open_page: Open, app: App, language: str) -> None:
    page = open_page("settings", language)
    page.selectbox(key="prompt-name").select("need.en").run()
    before = app.chats.prompts.text("need.en")
    page.text_area[0].set_value("Say {one} word.")
    page.button(key="prompt-save").click().run()
    assert not page.toast and "need.en" in page.error[0].value and app.chats.prompts.text("need.en") == before
    page.text_area[0].set_value("Say one word: exact, concept or facets.")
    page.button(key="prompt-save").click().run()
    assert not page.exception
    assert app.chats.prompts.text("need.en").text == "Say one word: exact, concept or facets.\n"
    assert [one.value for one in page.toast] == [label("prompt_saved", language)]
    page.button(key="prompt-back").click().run()
    assert app.chats.prompts.text("need.en") == before
    assert page.text_area[0].value == before.text


def test_only_administrators_see_the_rules_and_the_reranker(open_page: Open, app: App, admit: Admit) -> None:
    app.models = Models(app.settings.model_copy(update={"reranker_base_url": "http://127.0.0.1:9"}))
    admit(ANN, "@example.com")
    for admins, sees in ((), False), ((BOB["email"],), False), ((ANN["email"],), True):
        app.settings = app.settings.model_copy(update={"auth_admins": admins})
        shown = words(open_page("settings"))
        for key in ("settings_prompts", "settings_reranker"):
            assert (label(key, "en") in shown) is sees


def test_notes_are_listed_edited_and_deleted(
    open_page: Open, app: App, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ui.settings.tabs.person_id", lambda: "ann")
    page = open_page("settings", language)
    assert label("remembered_none", language) in words(page)
    notes = [app.memory.add("ann", text, permanent=True) for text in ("I work in Berlin", "[x](javascript:1)")]
    app.memory.add("bob", "secret", permanent=True)
    page.run()
    assert label("remembered_no_model", language) in words(page) and "secret" not in words(page)
    page.text_input(key=f"note-{notes[0]}").set_value("I work in Paris").run()
    page.button(key=f"save-note-{notes[0]}").click().run()
    page.button(key=f"forget-note-{notes[1]}").click().run()
    assert [one.text for one in app.memory.notes("ann")] == ["I work in Paris"]
    assert not page.exception and len(app.memory.notes("bob")) == 1


def test_a_reranker_is_turned_on_after_it_was_compared(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    assert label("settings_reranker", language) not in words(open_page("settings", language))  # none is configured
    served = {"reranker_base_url": "http://127.0.0.1:9", "reranker_model": "judge"}
    app.models = Models(app.settings.model_copy(update=served))
    reranking = app.models.reranking

    def compare(library: str) -> None:
        if library != "main":
            raise RagError("reranker_no_questions")
        weights = bootstrap_weights(range(8), PAIRED_ROUNDS)
        reranking.save_comparison(paired_difference(8, mean(weights, [0.5] * 8), mean(weights, [1.0] * 8)))

    monkeypatch.setattr(app, "compare_reranker", compare)
    page = open_page("settings", language)
    assert page.button(key="rerank-switch").disabled
    assert label("reranker_off", language, model="judge") in words(page)
    page.button(key="rerank-compare").click().run()
    assert not page.exception
    assert "+0.500 (+0.500 – +0.500)" in words(page)
    assert label("verdict_better", language) in words(page)
    assert reranking.current is None
    page.button(key="rerank-switch").click().run()
    assert reranking.current is reranking.configured
    assert label("reranker_on", language, model="judge") in words(page)
    page.button(key="rerank-switch").click().run()
    assert reranking.current is None
