"""Roles in the UI: owners grant them, and readers are not offered what they may not do."""

from __future__ import annotations

from rag.access import build_person
from rag.app import App
from rag.app.roles import EVERYONE, Roles
from rag.locales import Language, label
from tests.pages.conftest import ANN, BOB, Admit, Open, words


def anns(app: App) -> Roles:
    return Roles(app._database.grants, build_person(ANN))


def test_an_owner_grants_and_takes_back(open_page: Open, app: App, admit: Admit, language: Language) -> None:
    anns(app).make_owner("main")
    admit(ANN, "@example.com")
    page = open_page("library", language)
    page.text_input(key="access-subject").set_value("nobody")
    page.button(key="access-grant").click().run()
    assert label("access", language) in words(page)
    assert [one.subject for one in anns(app).grants("main")] == ["ann@example.com"]
    page.text_input(key="access-subject").set_value("bob@example.com")
    page.selectbox(key="access-role").set_value("editor")
    page.button(key="access-grant").click().run()
    assert "bob@example.com" in words(page)
    page.selectbox(key="access-everyone-main").set_value("none").run()
    assert {one.subject: one.role for one in anns(app).grants("main")} == {
        EVERYONE: "none",
        "ann@example.com": "owner",
        "bob@example.com": "editor",
    }
    page.button(key="access-revoke-bob@example.com").click().run()
    assert "bob@example.com" not in {one.subject for one in anns(app).grants("main")}


def test_a_reader_is_offered_no_changes(open_page: Open, app: App, admit: Admit, language: Language) -> None:
    anns(app).make_owner("main")
    anns(app).grant("main", EVERYONE, "reader")
    admit(BOB, "@example.com")
    page = open_page("library", language)
    keys = {button.key for button in page.button}
    assert not keys & {"recheck-all", "clear", "library-rename", "library-remove", "access-grant"}
    assert label("role_reads_only", language) in words(page)
    adding = open_page("add", language)
    assert label("role_adds_nothing", language) in words(adding)
    assert not [one for one in adding.text_area if one.key]


def test_without_sign_in_there_are_no_roles(open_page: Open) -> None:
    keys = {button.key for button in open_page("library").button}
    assert "recheck-all" in keys and "access-grant" not in keys
