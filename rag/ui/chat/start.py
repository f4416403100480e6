"""The first screen of a chat: a promise, a picture of a citation, the box, questions to click, and pages at hand."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.conversations.followups import from_headings
from rag.types import Answer, Page
from rag.ui.chat.asking import ask_first
from rag.ui.chat.composer import draw_composer
from rag.ui.chat.examples import example_questions, sample_questions
from rag.ui.kit.attempt import unless_away
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.session import count_pages, is_empty, session, whose
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_SHOWN, _LONGEST = 4, 60


def draw_start(app: App, library: str, language: Language) -> None:
    """Draw it; in an empty library the questions are those of the sample pages, which a click loads first."""
    empty = is_empty(app, library)
    with st.container(key="hero"):
        st.markdown(f"# {label('start_promise', language)}", anchors=False)
        st.html(_picture(language))
        if empty:
            st.markdown(label("empty_lead", language))
        draw_composer(app, library, language, None)
        if empty:
            _draw_questions(app, library, sample_questions(language), language, samples=True)
            _draw_ways_in(app, library, language)
        else:
            newest, questions = unless_away(lambda: _at_hand(app, library, language)) or ([], [])
            _draw_questions(app, library, questions, language, samples=False)
            _draw_at_hand(app, library, newest, language)


def _picture(language: Language) -> str:
    """A sentence of an answer with its mark, and the passage that the mark leads to."""
    told = {name: html.escape(label(f"picture_{name}", language)) for name in ("sentence", "page", "quote", "rest")}
    return (
        f'<div class="mark-picture" role="img" aria-label="{html.escape(label("picture_label", language))}">'
        f"<p>{told['sentence']}<b>1</b></p>"
        f"<blockquote><b>1</b> <cite>{told['page']}</cite>"
        f"<span><mark>{told['quote']}</mark> {told['rest']}</span></blockquote></div>"
    )


def _draw_questions(app: App, library: str, questions: Sequence[str], language: Language, *, samples: bool) -> None:
    if not questions:
        return
    st.markdown(f":gray[{label('start_samples' if samples else 'chat_examples', language)}]")
    with st.container(key="examples", horizontal=True, gap="xsmall"):
        for place, question in enumerate(questions):
            st.button(
                escape_line(question),
                icon=":material/arrow_outward:",
                key=f"example-{place}",
                on_click=_ask_samples if samples else ask_first,
                args=(app, library, question),
            )


def _ask_samples(app: App, library: str, question: str) -> None:
    """Load the sample pages, and answer once they are there."""
    ask_first(app, library, question, saving=app.imports.add_examples(library=library, owner=whose()))


def _draw_ways_in(app: App, library: str, language: Language) -> None:
    with st.container(horizontal=True, key="ways-in", gap="xsmall"):
        if st.button(label("empty_add", language), icon=":material/add:", key="empty-add"):
            go("add")
        if st.button(label("empty_samples", language), icon=":material/auto_stories:", key="empty-samples"):
            go("add", job=app.imports.add_examples(library=library, owner=whose()))


def _draw_at_hand(app: App, library: str, newest: Sequence[Page], language: Language) -> None:
    """Draw the newest pages, and those that answers cited most."""
    cited = app.conversations.most_cited(library, session().owner)
    known = unless_away(lambda: app.library(library).known(cited)) or {}
    left, right = st.columns(2)
    with left:
        _draw_pages("newest", newest, language)
    with right:
        _draw_pages("asked", [*known.values()][:_SHOWN], language)


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
        questions = example_questions(app, library, language) or _first_questions(app, library, own or newest)
        questions = questions or [label("near_page", language, title=page.title) for page in newest if page.title][:2]
        st.session_state["start-at-hand"] = kept = (asked, newest, questions)
    return kept[1], kept[2]


def _first_questions(app: App, library: str, pages: Sequence[Page]) -> list[str]:
    """Return a question from a heading of each page, in the page's language."""
    found: list[str] = []
    for page in pages:
        asked = label("chat_title", "zh" if page.language == "zh" else "en")
        chunks = tuple(app.library(library).chunks(page.url_hash))
        found += from_headings(asked, Answer(asked, "fast", "answered", "", passages=chunks))[:1]
    return list(dict.fromkeys(found))
