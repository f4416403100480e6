"""What a library holds, before it is asked anything: good first questions, the newest pages, those most asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.conversations.followups import from_headings
from rag.types import Answer, Page
from rag.ui.chat.asking import ask_first
from rag.ui.chat.examples import example_questions
from rag.ui.kit.attempt import unless_away
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.session import count_pages, session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_SHOWN, _LONGEST = 4, 60


def draw_start(app: App, library: str, language: Language) -> None:
    newest, questions = unless_away(lambda: _at_hand(app, library, language)) or ([], [])
    if questions:
        st.markdown(f":gray[{label('chat_examples', language)}]")
        with st.container(key="examples", gap="xsmall"):
            for place, question in enumerate(questions):
                key, icon, args = f"example-{place}", ":material/arrow_outward:", (app, library, question)
                st.button(escape_line(question), key=key, icon=icon, on_click=ask_first, args=args)
    if found := app.page_maps.at_hand(library):
        _draw_subjects(found.subjects, language)
    cited = app.conversations.most_cited(library, session().owner)
    known = unless_away(lambda: app.library(library).known(cited)) or {}
    left, right = st.columns(2)
    with left:
        _draw_pages("newest", newest, language)
    with right:
        _draw_pages("asked", [*known.values()][:_SHOWN], language)


def _draw_subjects(subjects: Sequence[str], language: Language) -> None:
    st.markdown(f":gray[{label('start_subjects', language)}]")
    with st.container(horizontal=True, gap="small", key="subjects"):
        for at, subject in enumerate(subjects):
            if st.button(escape_line(subject), key=f"subject-{at}"):
                go("library", subject=subject)


def _draw_pages(name: str, pages: Sequence[Page], language: Language) -> None:
    if not pages:
        return
    st.markdown(f":gray[{label(f'start_{name}', language)}]")
    with st.container(key=f"start-{name}", gap=None):
        for page in pages:
            title, key = escape_line(shorten(page.title or page.url, _LONGEST)), f"start-{name}-{page.url_hash}"
            if st.button(title, icon=":material/article:", type="tertiary", key=key):
                go("library", page=page.url_hash)


def _at_hand(app: App, library: str, language: Language) -> tuple[list[Page], list[str]]:
    """The newest pages and questions about them, read again only once the library has changed."""
    asked = (library, count_pages(app, library), language)
    kept: Any = st.session_state.get("start-at-hand")
    if kept is None or kept[0] != asked:
        latest = sorted(app.library(library).pages(), key=lambda page: page.added_at, reverse=True)
        newest, own = latest[:_SHOWN], [page for page in latest if page.language == language][:_SHOWN]
        app.page_maps.of(library, latest)
        questions = example_questions(app, library, language) or _first_questions(app, library, own)
        st.session_state["start-at-hand"] = kept = (asked, newest, questions)
    return kept[1], kept[2]


def _first_questions(app: App, library: str, pages: Sequence[Page]) -> list[str]:
    """What a heading of each page asks or names, in the page's language."""
    found: list[str] = []
    for page in pages:
        asked = label("chat_title", "zh" if page.language == "zh" else "en")
        chunks = tuple(app.library(library).chunks(page.url_hash))
        found += from_headings(asked, Answer(asked, "fast", "answered", "", passages=chunks))[:1]
    return list(dict.fromkeys(found))
