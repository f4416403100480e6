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
