import pytest

from rag.errors import ConfigError, StoreError
from rag.types import Notice
from rag.ui import session
from rag.ui.strings import label
from tests.pages.conftest import Open, words
from tests.support.fake_app import FakeApp


def test_the_switch_changes_every_word(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat", "en")
    page.button_group(key="sidebar-language").set_value("zh").run()
    assert label("chat_lead", "zh") in words(page)
    assert page.query_params["lang"] == "zh"


def test_a_library_is_made_and_chosen(open_page: Open, app: FakeApp) -> None:
    app.filled()
    page = open_page("chat")
    page.text_input(key="library-name").set_value("second")
    page.button(key="library-create").click().run()
    assert app.library_names() == ["main", "second"]
    assert page.selectbox[0].value == "second"
    assert page.query_params["library"] == "second"
    assert label("empty_title", "en") in words(page)


@pytest.mark.parametrize("name", ["", "Big", "../x", "a b", "灯塔"])
def test_a_wrong_name_makes_no_library(open_page: Open, app: FakeApp, name: str) -> None:
    page = open_page("chat")
    page.text_input(key="library-name").set_value(name)
    page.button(key="library-create").click().run()
    assert label("library_name_wrong", "en") in words(page)
    assert app.library_names() == ["main"]


def test_the_library_in_the_address_is_taken(open_page: Open, app: FakeApp) -> None:
    app.libraries["second"] = app.library("main").__class__()
    page = open_page("chat", library="second")
    assert page.selectbox[0].value == "second"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_app_that_cannot_start_says_why(open_page: Open, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    def fail() -> None:
        raise ConfigError("data_dir_unwritable", path="/nowhere")

    monkeypatch.setattr(session, "build_app", fail)
    page = open_page("chat", language)
    assert not page.exception
    assert "/nowhere" in words(page)
    assert label("start_failed", language) in words(page)


def test_an_expected_failure_on_a_page_is_one_sentence(
    open_page: Open, app: FakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StoreError("data_dir_unwritable", path="/nowhere")

    monkeypatch.setattr(app.library(), "pages", fail)
    page = open_page("library")
    assert not page.exception
    assert "/nowhere" in words(page)


def test_models_that_are_loading_are_noted(open_page: Open, app: FakeApp) -> None:
    app.models.is_ready = False
    assert label("in_use_loading", "en") in words(open_page("chat"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_models_that_could_not_be_loaded_say_why(open_page: Open, app: FakeApp, language: str) -> None:
    app.models.is_ready, app.models.why_not = False, Notice("embedding_no_folder", {"name": "/nowhere"})
    page = open_page("chat", language)
    assert not page.exception
    assert "/nowhere" in words(page)
    assert label("in_use_failed", language) in words(page)
    assert label("in_use_loading", language) not in words(page)


def test_nothing_heavy_is_imported_to_draw() -> None:
    import subprocess
    import sys

    heavy = "torch transformers FlagEmbedding langchain langgraph trafilatura"
    code = f"import sys, main\nprint([n for n in '{heavy}'.split() if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip().endswith("[]")
