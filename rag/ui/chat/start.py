"""The start screen: the question box, starter questions, and the newest and most cited pages."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from rag.conversations.conversations import from_headings
from rag.locales import Language, label
from rag.types import Page
from rag.ui.chat.asking import start_answer
from rag.ui.chat.composer import draw_composer
from rag.ui.kit.actions import none_if_unavailable
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button
from rag.ui.kit.session import cached, count_pages, is_empty, person_id, session
from rag.web.urls import url_hash

if TYPE_CHECKING:
    from rag.app import App

_LIMIT, _LONGEST = 4, 60
_FILE = Path(__file__).resolve().parents[3] / "examples" / "questions.json"
_MAX_EXAMPLES = 3


def draw_start(app: App, library: str, language: Language) -> None:
    """Draw the start screen.

    An empty library shows an example of an answer, and questions about the sample pages, which a click loads.
    """
    empty = is_empty(app, library)
    with st.container(key="hero"):
        st.markdown(f"# {label('start_promise', language)}", anchors=False)
        if empty:
            st.html(_picture(language))
            st.markdown(label("empty_lead", language))
        draw_composer(app, library, language, None)
        if empty:
            _draw_questions(app, library, _pick_examples(_examples(), language), language, samples=True)
            with st.container(horizontal=True, key="ways-in", gap="xsmall"):
                if draw_button(label("empty_add", language), "add", "empty-add"):
                    go("add")
                if draw_button(label("empty_samples", language), "auto_stories", "empty-samples"):
                    go("add", job=app.imports.add_examples(library=library, owner=person_id()))
        else:
            newest, questions = none_if_unavailable(lambda: _newest_and_questions(app, library, language)) or ([], [])
            _draw_questions(app, library, questions, language, samples=False)
            most_cited = app.conversations.most_cited(library, session().owner)
            pages = none_if_unavailable(lambda: app.library(library).stored_pages(most_cited)) or {}
            left, right = st.columns(2)
            with left:
                _draw_pages("newest", newest, language)
            with right:
                _draw_pages("asked", [*pages.values()][:_LIMIT], language)


def _picture(language: Language) -> str:
    """Return the HTML of a sentence with its mark, and of the passage that the mark cites."""
    texts = {name: html.escape(label(f"picture_{name}", language)) for name in ("sentence", "page", "quote", "rest")}
    space = "" if language == "zh" else " "
    return (
        f'<div class="mark-picture" role="img" aria-label="{html.escape(label("picture_label", language))}">'
        f"<p>{texts['sentence']}<b>1</b></p>"
        f"<blockquote><b>1</b> <cite>{texts['page']}</cite>"
        f"<span><mark>{texts['quote']}</mark>{space}{texts['rest']}</span></blockquote></div>"
    )


def _draw_questions(app: App, library: str, questions: Sequence[str], language: Language, *, samples: bool) -> None:
    if not questions:
        return
    st.markdown(f":gray[{label('start_samples' if samples else 'chat_examples', language)}]")
    with st.container(key="examples", horizontal=True, gap="xsmall"):
        ask = _ask_samples if samples else start_answer
        for place, question in enumerate(questions):
            draw_button(escape_line(question), "arrow_outward", f"example-{place}", ask, app, library, question)


def _ask_samples(app: App, library: str, question: str) -> None:
    """Load the sample pages, then answer."""
    start_answer(app, library, question, saving=app.imports.add_examples(library=library, owner=person_id()))


def _draw_pages(name: str, pages: Sequence[Page], language: Language) -> None:
    if not pages:
        return
    st.markdown(f":gray[{label(f'start_{name}', language)}]")
    with st.container(key=f"start-{name}", gap=None):
        for page in pages:
            title, key = escape_line(shorten(page.title or page.url, _LONGEST)), f"start-{name}-{page.url_hash}"
            if draw_button(title, "article", key, type="tertiary"):
                go("library", page=page.url_hash)


def _newest_and_questions(app: App, library: str, language: Language) -> tuple[list[Page], list[str]]:
    """Return the newest pages and questions about them, cached until the page count changes."""

    def choose() -> tuple[list[Page], list[str]]:
        latest = sorted(app.library(library).pages(), key=lambda page: page.added_at, reverse=True)
        newest, in_language = latest[:_LIMIT], [page for page in latest if page.language == language][:_LIMIT]
        questions = example_questions(app, library, language)
        if not questions:  # a question from a heading of each page, in the page's language
            excluded = app.library(library).excluded_pages()
            for page in in_language or newest:
                if page.source != "note" and page.url_hash not in excluded:
                    title = label("chat_title", "zh" if page.language == "zh" else "en")
                    questions += from_headings(title, app.library(library).chunks(page.url_hash))[:1]
        titles = [label("near_page", language, title=page.title) for page in newest if page.title]
        return newest, list(dict.fromkeys(questions)) or titles[:2]

    return cached("start-at-hand", (library, count_pages(app, library), language), choose)


class _Example(NamedTuple):
    question: str
    language: str
    page: str


def example_questions(app: App, library: str, language: Language, among: Sequence[str] | None = None) -> list[str]:
    """Return a few questions about pages of `library` (and of `among`, if given), in `language` if there are any."""
    hashes = [example.page for example in _examples()]
    pages = none_if_unavailable(lambda: app.library(library).stored_pages(hashes)) or {}
    selected = pages.keys() if among is None else pages.keys() & set(among)
    return _pick_examples([example for example in _examples() if example.page in selected], language)


def _pick_examples(examples: list[_Example], language: Language) -> list[str]:
    """Return a few questions, in `language` if there are any, those about different pages first."""
    own = [example for example in examples if example.language == language] or examples
    first = list({example.page: example for example in reversed(own)}.values())[::-1]
    others = [example for example in own if example not in first]
    return [example.question for example in [*first, *others][:_MAX_EXAMPLES]]


@cache
def _examples() -> list[_Example]:
    if not _FILE.is_file():
        return []
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return [_Example(row["question"], row["lang"], url_hash(row["pages"][0])) for row in rows if row.get("pages")]
