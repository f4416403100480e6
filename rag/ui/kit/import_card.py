"""The card after an import: its pages, a quoted sentence of each, and questions that they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.errors import RagError
from rag.types import Page
from rag.ui.kit.attempt import unless_away
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import short_source
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.app.overviews import Overview

_LIMIT: Final = 5  # pages; the others are collapsed
_WISHES: Final = 3  # summaries, offered if no question is known
_LONGEST_TITLE, _LONGEST_SENTENCE = 90, 260
_POLL_SECONDS: Final = 0.5


def draw_import_card(
    app: App,
    library: str,
    url_hashes: Sequence[str],
    ask: Callable[[str], object],
    language: Language,
    *,
    key: str,
    samples: Sequence[str] = (),
) -> None:
    """Draw the card of these pages, nothing if none is left; a click on a question calls `ask` with it.

    `samples` are questions that these pages are known to answer.
    """
    pages = unless_away(lambda: app.library(library).known(url_hashes)) if url_hashes else None
    existing = [url_hash for url_hash in dict.fromkeys(url_hashes) if url_hash in pages] if pages else []
    if not existing:
        return
    future = app.overviews.of(library, existing, app.reasoner(library, session().chat), language)
    if not future.done():
        st.fragment(_wait, run_every=_POLL_SECONDS)(app, library, existing, language)
        return
    try:
        overview = future.result()
    except RagError:
        return
    with st.container(key=f"import-card-{key}", gap="small"):
        _draw_pages(overview, len(existing), language, key)
        wishes = [label("near_page", language, title=page.title) for page, _ in overview.pages[:_WISHES] if page.title]
        _draw_questions(samples or overview.questions or wishes, ask, language, key)


def _wait(app: App, library: str, url_hashes: Sequence[str], language: Language) -> None:
    if app.overviews.of(library, url_hashes, app.reasoner(library, session().chat), language).done():
        st.rerun()
    st.caption(f":material/progress_activity: {label('card_waiting', language)}")


def _draw_pages(overview: Overview, count: int, language: Language, key: str) -> None:
    for page, sentence in overview.pages[:_LIMIT]:
        _draw_page(page, sentence, key)
    if rest := overview.pages[_LIMIT:]:
        more = count - _LIMIT
        with st.expander(counted("card_more_one", "card_more", more, language), type="compact", key=f"card-more-{key}"):
            for page, sentence in rest:
                _draw_page(page, sentence, key)
            if count > len(overview.pages):
                st.caption(label("card_in_library", language))


def _draw_page(page: Page, sentence: str, key: str) -> None:
    title = escape_line(shorten(page.title or short_source(page.url), _LONGEST_TITLE))
    with st.container(key=f"card-page-{key}-{page.url_hash}", gap=None):
        if st.button(title, icon=":material/article:", type="tertiary", key=f"card-open-{key}-{page.url_hash}"):
            go("library", page=page.url_hash)
        if sentence:
            quote = escape_line(shorten(sentence, _LONGEST_SENTENCE))
            st.caption(f"“{quote}”")


def _draw_questions(questions: Sequence[str], ask: Callable[[str], object], language: Language, key: str) -> None:
    if not questions:
        return
    st.markdown(f":gray[{label('card_ask', language)}]")
    with st.container(key=f"card-questions-{key}", gap="xsmall"):
        for place, question in enumerate(questions):
            if st.button(escape_line(question), icon=":material/arrow_outward:", key=f"card-ask-{place}-{key}"):
                ask(question)
