import pytest

from rag.ui.strings import label
from tests.pages.conftest import Open, page_file, words
from tests.support.fake_app import FakeApp

BOTH = pytest.mark.parametrize("language", ["en", "zh"])


@BOTH
def test_what_is_in_use_is_said(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    page = open_page("settings", language)
    assert not page.exception
    shown = words(page)
    for key in ("use_database_embedded", "use_embedding_builtin", "use_chat_none"):
        assert label(key, language) in shown
    assert str(app.settings.rag_data_dir) in shown


def fill(page: object, model: str, base_url: str, key: str) -> None:
    for name, value in (("chat-base-url", base_url), ("chat-model", model), ("chat-key-0", key)):
        page.text_input(key=name).set_value(value)  # type: ignore[attr-defined]


def test_a_chat_model_is_kept_for_this_session(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("settings")
    fill(page, "qwen3:8b", "http://127.0.0.1:11434/v1", "a key")
    page.button(key="chat-use").click().run()
    assert not page.exception
    assert label("chat_in_use", "en", model="qwen3:8b") in words(page)
    assert "a key" not in words(page)
    assert page.text_input(key="chat-key-1").value == ""
    page.switch_page(page_file("chat")).run()
    page.chat_input[0].set_value("How often?").run()
    assert app.asked[0]["chat"].model == "qwen3:8b"
    assert app.asked[0]["chat"].api_key == "a key"


def test_a_key_goes_to_the_service_it_was_given_for(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("settings")
    fill(page, "openai:large", "", "a key")
    page.button(key="chat-use").click().run()
    for model, key in (("openai:small", "a key"), ("anthropic:large", "")):
        page.text_input(key="chat-model").set_value(model)
        page.button(key="chat-use").click().run()
        assert page.session_state["pagelight"].chat.model == model
        assert page.session_state["pagelight"].chat.api_key == key


@BOTH
def test_the_connection_is_tested(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page("settings", language)
    fill(page, "qwen3:8b", "http://127.0.0.1:11434/v1", "wrong")
    page.button(key="chat-test").click().run()
    assert len(page.error) == 1
    fill(page, "qwen3:8b", "http://127.0.0.1:11434/v1", "right")
    page.button(key="chat-test").click().run()
    assert len(page.success) == 1
    assert not page.error


@BOTH
def test_what_is_missing_is_said_before_anything_is_asked(open_page: Open, app: FakeApp, language: str) -> None:
    page = open_page("settings", language)
    page.button(key="chat-test").click().run()
    assert label("chat_needs_model", language) in words(page)
    fill(page, "m", "ftp://x", "")
    page.button(key="chat-use").click().run()
    assert label("chat_needs_http", language) in words(page)
    assert app.models.tested == []


def test_the_database_is_tested(open_page: Open) -> None:
    page = open_page("settings")
    page.button(key="database-test").click().run()
    assert len(page.success) == 1


def test_the_fast_model_and_the_temperature_are_kept(open_page: Open, app: FakeApp) -> None:
    page = open_page("settings")
    fill(page, "big", "http://127.0.0.1:11434/v1", "")
    page.text_input(key="chat-fast-model").set_value("small")
    page.number_input(key="chat-temperature").set_value(0.4)
    page.button(key="chat-use").click().run()
    chat = page.session_state["pagelight"].chat
    assert (chat.model, chat.fast_model, chat.temperature) == ("big", "small", 0.4)


@BOTH
def test_prices_and_limits_are_said(open_page: Open, app: FakeApp, language: str) -> None:
    shown = words(open_page("settings", language))
    assert label("use_prices_none", language) in shown
    assert label("use_limits_none", language) in shown
    chosen = {"llm_price_in": 0.3, "llm_price_out": 1.2, "answer_max_calls": 4, "answer_max_tokens": 20_000}
    app.settings = app.settings.model_copy(update=chosen)
    shown = words(open_page("settings", language))
    assert label("use_prices_set", language, tokens_in="0.3", tokens_out="1.2") in shown
    assert label("use_limit_tokens", language, count="20,000") in shown


@BOTH
def test_feedback_is_counted_and_downloaded_as_test_cases(open_page: Open, app: FakeApp, language: str) -> None:
    app.filled()
    assert label("feedback_none", language) in words(open_page("settings", language))
    asked = app.converse("How often was the lamp wound?", mode="fast", library="main")
    app.answer(asked.run_id)
    app.feedback.give(asked.turn_id, 1)
    page = open_page("settings", language)
    assert label("feedback_count_one", language) in words(page)
    assert not page.get("download_button")
    page.session_state["feedback-files"] = True
    page.run()
    assert [one.proto.label for one in page.get("download_button")] == ["questions.jsonl", "pages.jsonl"]
