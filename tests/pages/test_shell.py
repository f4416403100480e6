from contextlib import suppress

import pytest
import streamlit as st

from rag.app import App
from rag.app.libraries import Models
from rag.errors import ConfigError, ModelError, StoreError, StoreUnavailableError
from rag.locales import label, say
from rag.store.qdrant.library import Library
from rag.types import Notice
from rag.ui import shell
from rag.ui.kit import session
from tests.pages.conftest import ANN, ASKED, BOB, QUOTES, Admit, Open, asked, page_file, record_calls, words
from tests.support.lighthouse import LIGHTHOUSE
from tests.support.storing import store_pages


def test_a_parameter_of_another_page_leaves_the_url(open_page: Open) -> None:
    page = open_page("library")
    page.switch_page(page_file("chat"))
    page.query_params["page"] = "f" * 32
    assert "page" not in page.run().query_params
    assert "find" in open_page("search", find="lamp").query_params


def test_the_switch_changes_every_word(open_page: Open) -> None:
    page = open_page("chat", "en")
    page.button_group(key="sidebar-language").set_value("zh").run()
    assert label("start_promise", "zh") in words(page)
    assert page.query_params["lang"] == "zh"


def test_a_library_is_made_and_chosen(open_page: Open, app: App) -> None:
    page = open_page("chat")
    page.text_input(key="library-name-main").set_value(" My  Second Library ")
    page.button(key="library-create").click().run()
    assert [info.display_name for info in app.libraries.infos()] == ["main", "My Second Library"]
    assert page.selectbox[0].options == ["main", "My Second Library"]
    assert page.selectbox[0].value == page.query_params["library"] == "my-second-library"
    assert label("empty_lead", "en") in words(page)


def test_a_wrong_name_makes_no_library(open_page: Open, app: App, language: str) -> None:
    page = open_page("chat", language)
    for name in ("", " ", "a\u202eb", "main\x00"):
        page.text_input(key="library-name-main").set_value(name)
        page.button(key="library-create").click().run()
        assert say(Notice("library_title_wrong", {"most": 60}), language) in words(page)
    assert [info.name for info in app.libraries.infos()] == ["main"]


def test_an_unknown_library_in_the_address_is_said_and_makes_none(open_page: Open, app: App, language: str) -> None:
    page = open_page("chat", language, library="nowhere")
    said = say(Notice("library_unknown", {"library": "nowhere"}), language)
    assert said in words(page)
    assert page.selectbox[0].value == "main"
    assert "library" not in page.query_params
    assert [info.name for info in app.libraries.infos()] == ["main"]
    assert said in words(page.run())
    page.switch_page(page_file("library"))
    assert said not in words(page.run())


def test_an_app_that_cannot_start_says_why(open_page: Open, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    def fail() -> None:
        raise ConfigError("data_dir_unwritable", path="/nowhere")

    monkeypatch.setattr(session, "build_app", fail)
    page = open_page("chat", language)
    assert not page.exception
    assert "/nowhere" in words(page)
    assert label("start_failed", language) in words(page)


def test_an_expected_failure_on_a_page_is_one_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("data_dir_unwritable", path="/nowhere")

    monkeypatch.setattr(Library, "pages", fail)
    page = open_page("library")
    assert not page.exception
    assert "/nowhere" in words(page)


def test_page_recovers_after_a_database_outage(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    page = asked(open_page("chat", language), app, ASKED[language])
    notice = Notice("store_away", {"since": "12:03", "url": "http://db"})

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailableError("store_away", since="12:03", url="http://db")

    with monkeypatch.context() as away:
        for call in ("page", "pages", "page_count", "stored_pages", "passages", "texts"):
            away.setattr(Library, call, fail)
        away.setattr(app, "outage", lambda: notice)
        away.setattr(app, "converse", fail)
        page.run()
        assert not page.exception
        shown = words(page)
        assert say(notice, language) in shown
        assert label("in_use_away", language) in shown
        assert ASKED[language] in shown
        assert QUOTES[language][0] in shown
        page.chat_input[0].set_value("And then?").run()
        assert page.chat_input[0].value == "And then?"
    shown = words(page.run())
    assert "12:03" not in shown
    assert label("in_use_away", language) not in shown


def test_models_that_are_loading_or_could_not_be_loaded_are_noted(open_page: Open, app: App, language: str) -> None:
    assert label("in_use_loading", language) in words(open_page("chat", language))
    failing = Models(app.settings.model_copy(update={"embedding_model": "/nowhere"}))
    with suppress(ModelError):
        assert failing.embedding
    app.models = failing
    page = open_page("chat", language)
    assert not page.exception
    assert "/nowhere" in words(page)
    assert label("in_use_failed", language) in words(page)
    assert label("in_use_loading", language) not in words(page)


def test_without_sign_in_conversations_are_said_to_be_shared(open_page: Open, language: str) -> None:
    assert label("shared_by_all", language) in words(open_page("chat", language))


@pytest.mark.parametrize("name", ["chat", "library", "settings"])
def test_whoever_is_not_signed_in_sees_the_door_only(open_page: Open, admit: Admit, name: str, language: str) -> None:
    admit({"is_logged_in": False}, "@example.com")
    page = open_page(name, language)
    assert not page.exception
    assert label("door_title", language) in words(page)
    assert [one.key for one in page.button] == ["sign-in-"]
    assert not page.selectbox
    assert not page.chat_input


@pytest.mark.parametrize(
    ("change", "allowed", "why"),
    [
        ({"email": "eve@evil.example"}, ["@example.com"], "not_listed"),
        ({"email_verified": False}, ["@example.com"], "unverified"),
        ({"email": ""}, ["@example.com"], "no_address"),
        ({"email": "\u212aim@example.com"}, ["@example.com"], "foreign_letters"),
        ({}, [], "no_list"),
    ],
)
def test_whoever_may_not_enter_is_told_why(
    open_page: Open, admit: Admit, change: dict[str, object], allowed: list[str], why: str, language: str
) -> None:
    claims = ANN | change
    admit(claims, *allowed)
    page = open_page("chat", language)
    assert label(f"door_{why}", language, address=claims["email"]) in words(page)
    assert [one.key for one in page.button] == ["refused-sign-out"]
    assert not page.chat_input


def test_a_refusal_names_the_provider_that_gives_no_email_address(open_page: Open, app: App, admit: Admit) -> None:
    claims = {name: value for name, value in ANN.items() if name != "email_verified"}
    admit(claims, "@example.com")
    assert "AUTH_VERIFIED_ISSUERS: https://id.example" in words(open_page("chat"))
    app.settings = app.settings.model_copy(update={"auth_verified_issuers": ("https://id.example",)})
    assert open_page("chat").chat_input


def test_the_navigation_is_hidden_from_who_is_refused(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, admit: Admit
) -> None:
    drawn: list[bool] = []
    draw = shell.draw_navigation
    monkeypatch.setattr(
        shell,
        "draw_navigation",
        lambda language, hidden=False: (drawn.append(hidden), draw(language, hidden=hidden))[1],
    )
    admit(ANN, "bob@example.com")
    page = open_page("chat")
    assert drawn[-1] and not page.chat_input
    admit(ANN, "ann@example.com")
    assert page.run().chat_input and not drawn[-1]


def test_a_list_without_sign_in_closes_the_app(open_page: Open, admit: Admit) -> None:
    admit(None, "@example.com")
    page = open_page("chat")
    assert "secrets.toml" in words(page)
    assert not page.chat_input


def test_conversations_belong_to_the_person_signed_in(open_page: Open, app: App, admit: Admit) -> None:
    admit(ANN, "@example.com")
    page = asked(open_page("chat"), app)
    address = page.query_params["conversation"]
    assert "Ann" in words(page)
    assert QUOTES["en"][0] in words(page)
    admit(BOB, "@example.com")
    other = open_page("chat", conversation=address)
    assert len(other.toast) == 1
    assert QUOTES["en"][0] not in words(other)
    assert not [one for one in other.button if (one.key or "").startswith("talk-other")]
    assert app.conversations.conversations("main") == []


def test_the_address_of_a_conversation_brings_its_library(open_page: Open, app: App) -> None:
    app.libraries.create("second")
    store_pages(app.imports.ingestor("second"), LIGHTHOUSE["en"])
    page = open_page("chat", library="second")
    assert page.selectbox[0].value == "second"
    page.chat_input[0].set_value(ASKED["en"]).run()
    other = open_page("chat", conversation=page.query_params["conversation"])
    assert other.selectbox[0].value == "second"
    other.selectbox[0].set_value("main").run()
    assert "conversation" not in other.query_params
    assert QUOTES["en"][0] not in words(other)


def test_of_several_providers_each_has_its_button(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, admit: Admit
) -> None:
    admit({"is_logged_in": False}, "*")
    sections = {name: {"client_id": "x"} for name in ("google", "okta")}
    monkeypatch.setattr(st, "secrets", {"auth": {"cookie_secret": "x", **sections}})
    assert [one.key for one in open_page("chat").button] == ["sign-in-google", "sign-in-okta"]


def test_a_navigation_link_keeps_the_conversation_and_back_leaves_it(open_page: Open) -> None:
    """Back leads to the page without the conversation; a navigation link, which names none, keeps it."""
    page = open_page("chat", "en")
    page.chat_input[0].set_value(ASKED["en"]).run()
    asked = page.query_params["conversation"]
    page.switch_page(page_file("search")).run()
    del page.query_params["conversation"]
    page.switch_page(page_file("chat")).run()
    assert page.query_params["conversation"] == asked
    del page.query_params["conversation"]
    page.run()
    assert label("start_promise", "en") in words(page)
    assert "conversation" not in page.query_params
    page.query_params["conversation"] = asked
    page.run()
    assert ASKED["en"] in words(page)


def test_answers_are_counted_by_browser_or_by_who_is_signed_in(
    open_page: Open, app: App, monkeypatch: pytest.MonkeyPatch, admit: Admit
) -> None:
    converse = record_calls(monkeypatch, app, "converse")

    def asker(browser: str) -> str:
        monkeypatch.setattr(session, "browser_id", lambda: browser)
        open_page("chat").chat_input[0].set_value(ASKED["en"]).run()
        return str(converse.call_args.kwargs["person"])

    first, again, other = asker("a" * 43), asker("a" * 43), asker("b" * 43)
    assert first == again != other
    assert "a" * 43 not in first
    admit(ANN, "@example.com")
    signed_in_here, there = asker("a" * 43), asker("b" * 43)
    assert signed_in_here == there not in (first, other)
