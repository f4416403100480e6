"""The library's pages next to the chat: selected ones limit the next questions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from rag.types import Page
from rag.ui.kit.attempt import unless_away
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import short_source
from rag.ui.kit.session import count_pages, session
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App

_OPEN: Final = "page-picker-open"
_LIMIT: Final = 100
"""Pages listed at a time; a search narrows them down."""
_LONGEST: Final = 80


def draw_picker_button(app: App, library: str, language: Language) -> None:
    """Draw the button that opens and closes the panel, with the number of selected pages, and the open panel."""
    count = count_pages(app, library)
    if not count:
        return
    selected = len(session().scope.pages)
    words = label("picker_some", language, chosen=selected, count=count) if selected else label("picker", language)
    with st.container(horizontal=True, horizontal_alignment="right", key="page-picker-row"):
        st.button(words, icon=":material/checklist:", type="tertiary", key="page-picker-toggle", on_click=_toggle)
    if st.session_state.get(_OPEN):
        pages = unless_away(lambda: app.library(library).pages())
        if pages is not None:
            excluded = unless_away(lambda: app.library(library).left_out()) or set()
            _draw_panel([page for page in pages if page.url_hash not in excluded], language)


def _toggle() -> None:
    st.session_state[_OPEN] = not st.session_state.get(_OPEN)


def _draw_panel(pages: list[Page], language: Language) -> None:
    with st.container(key="page-picker", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"## {label('picker', language)}", anchors=False, width="content")
            st.button(
                label("source_close", language),
                icon=":material/close:",
                type="tertiary",
                key="page-picker-close",
                on_click=_toggle,
            )
        st.caption(label("picker_lead", language))
        words = st.text_input(
            label("picker_search", language),
            key="page-picker-words",
            placeholder=label("picker_search", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=True,
        )
        matches = filter_pages(pages, words or "", session().scope.pages)
        if session().scope.pages:
            st.button(label("picker_clear", language), type="tertiary", key="page-picker-clear", on_click=_choose)
        with st.container(key="page-picker-list", gap=None):
            for page in matches[:_LIMIT]:
                _draw_page(page)
            if len(matches) > _LIMIT:
                st.caption(counted("picker_more_one", "picker_more", len(matches) - _LIMIT, language))
            if not matches:
                st.caption(label("picker_none", language))


def filter_pages(pages: list[Page], words: str, selected: tuple[str, ...]) -> list[Page]:
    """Return the pages whose title or address contains all `words`, those of `selected` first."""
    terms = words.casefold().split()
    matches = [page for page in pages if all(word in f"{page.title} {page.url}".casefold() for word in terms)]
    return sorted(matches, key=lambda page: page.url_hash not in selected)


def _draw_page(page: Page) -> None:
    key = f"page-tick-{page.url_hash}"
    st.session_state[key] = page.url_hash in session().scope.pages
    title = escape_line(shorten(page.title or short_source(page.url), _LONGEST))
    st.checkbox(title, key=key, on_change=_select, args=(page.url_hash,))


def _select(url_hash: str) -> None:
    others = tuple(page for page in session().scope.pages if page != url_hash)
    _choose(*others, *((url_hash,) if st.session_state[f"page-tick-{url_hash}"] else ()))


def _choose(*pages: str) -> None:
    session().scope = replace(session().scope, pages=pages)
