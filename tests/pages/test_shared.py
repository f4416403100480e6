"""A shared conversation: read-only, for readers of its library."""

from __future__ import annotations

from rag.access import build_person
from rag.app import App
from rag.locales import Language, label
from tests.pages.conftest import ANN, BOB, Admit, Open, asked, opened, words

QUESTION = "What lights the tower?"


def test_a_link_is_made_opened_and_removed(open_page: Open, app: App, admit: Admit, language: Language) -> None:
    admit(ANN, "@example.com")
    page = asked(open_page("chat", language), app, QUESTION)
    owner = build_person(ANN).owner
    (conversation,) = app.conversations.conversations("main", owner)
    assert not app.conversations.conversation(conversation.id, owner).link
    opened(page, "talk-menu")
    page.button(key="talk-link").click().run()
    link = app.conversations.conversation(conversation.id, owner).link
    assert any(link in one.value for one in page.code)

    admit(BOB, "@example.com")
    theirs = open_page("chat", language, shared=link)
    assert not theirs.exception
    seen = words(theirs)
    assert QUESTION in seen and label("talk_shared", language) in seen
    assert not theirs.chat_input and not [one.key for one in theirs.button if one.key and one.key.startswith("branch-")]

    admit(ANN, "@example.com")
    page.button(key="talk-unlink").click().run()
    admit(BOB, "@example.com")
    gone = open_page("chat", language, shared=link)
    assert label("conversation_unknown", language) in words(gone) and QUESTION not in words(gone)


def test_without_sign_in_there_is_nobody_to_share_with(open_page: Open) -> None:
    page = open_page("chat")
    page.chat_input[0].set_value(QUESTION).run()
    assert not [one for one in opened(page, "talk-menu").button if one.key == "talk-link"]
