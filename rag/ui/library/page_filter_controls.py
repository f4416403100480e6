"""The controls above the list of pages: search, states with their counts, filters and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.types import Page
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import language_name
from rag.ui.kit.session import set_param
from rag.ui.kit.strings import Language, label
from rag.ui.library.page_filter import AGES, SORTS, STATES, PageFilter, State

if TYPE_CHECKING:
    from rag.app import App

_KEY = "shelf"
_MAX_CANDIDATES = 300


def current_filter() -> PageFilter:
    """Return this tab's choices, which persist across pages."""
    criteria: PageFilter = st.session_state.setdefault(_KEY, PageFilter())
    return criteria


def draw_search(pages: Sequence[Page], language: Language) -> None:
    """Draw the search box, the full-text switch, and the button that opens the filters."""
    criteria = current_filter()
    with st.container(horizontal=True, vertical_alignment="center", key="shelf-search", gap="small"):
        _set_widget("words", criteria.words)
        st.text_input(
            label("library_filter", language),
            key="library-words",
            placeholder=label("library_filter_text" if criteria.in_text else "library_filter", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=not criteria.in_text,
            on_change=_store,
            args=("words",),
        )
        _set_widget("in_text", criteria.in_text)
        st.toggle(
            label("library_in_text", language),
            key="library-in_text",
            help=label("library_in_text_hint", language),
            on_change=_store,
            args=("in_text",),
        )
        _draw_filters(pages, criteria, language)


def _draw_filters(pages: Sequence[Page], criteria: PageFilter, language: Language) -> None:
    text = label("library_filters", language)
    text += f" ({criteria.filter_count})" if criteria.filter_count else ""
    with st.popover(text, icon=":material/tune:", key="shelf-filters"):
        _draw_choice("sort", SORTS, lambda one: label(f"sort_{one}", language), language)
        sites = ["", *_distinct(page.site for page in pages)]
        every = label("filters_any", language)
        _draw_choice("site", sites, lambda one: one or every, language)
        tags = ["", *_distinct(page.language for page in pages)]
        _draw_choice("language", tags, lambda one: language_name(one, language) if one else every, language)
        _draw_choice("age", AGES, lambda one: label(f"age_{one}", language), language)
        if criteria != PageFilter():
            st.button(label("filters_clear", language), key="shelf-clear", type="tertiary", on_click=_clear)


def _draw_choice(name: str, options: Sequence[str], name_of: Callable[[str], str], language: Language) -> None:
    value = getattr(current_filter(), name)
    _set_widget(name, value if value in options else options[0])
    st.selectbox(
        label(f"shelf_{name}", language),
        options,
        key=f"library-{name}",
        format_func=name_of,
        on_change=_store,
        args=(name,),
    )


def draw_states(counts: Mapping[State, int], language: Language) -> None:
    """Draw the status filter: all pages, recently changed, gone, excluded, each with its number."""
    criteria = current_filter()
    states = [state for state in STATES if counts[state] or state in ("all", criteria.state)]
    if states == ["all"]:
        return
    _set_widget("state", criteria.state)
    st.pills(
        label("library_state", language),
        states,
        required=True,
        format_func=lambda state: f"{label(f'state_{state}', language)} {counts.get(state, 0):,}",
        key="library-state",
        label_visibility="collapsed",
        on_change=_store,
        args=("state",),
    )


def draw_subjects(subjects: Sequence[str], language: Language) -> None:
    """Draw the topics as filters; a topic that no longer exists is cleared."""
    if current_filter().subject not in subjects:
        _set_filter(replace(current_filter(), subject=""))
    if subjects:
        _set_widget("subject", current_filter().subject or None)
        st.pills(
            label("library_subjects", language),
            subjects,
            format_func=escape_line,
            key="library-subject",
            label_visibility="collapsed",
            on_change=_store,
            args=("subject",),
        )


def apply_subject() -> None:
    """Select the topic in the address, and remove it from there."""
    if subject := st.query_params.get("subject", ""):
        _set_filter(PageFilter(subject=subject))
        set_param("subject", "")


def search_texts(app: App, library: str, words: str, language: Language) -> list[str]:
    """Return hashes of the pages whose texts the keyword search finds, best first; cached until the words change."""
    key = (library, words, app.library(library).page_count())
    cached: Any = st.session_state.get("shelf-found")
    if cached is None or cached[0] != key:
        with st.spinner(label("library_searching", language)):
            result = app.search(words, library=library, strategy="keyword", fetch_k=_MAX_CANDIDATES)
        hashes = list(dict.fromkeys(candidate.passage.url_hash for candidate in result.candidates))
        st.session_state["shelf-found"] = cached = (key, hashes)
    hits: list[str] = cached[1]
    return hits


def _set_widget(name: str, value: object) -> None:
    """Set a widget's value, which Streamlit forgets while another page is shown."""
    st.session_state[f"library-{name}"] = value


def _store(name: str) -> None:
    value = st.session_state[f"library-{name}"]
    _set_filter(replace(current_filter(), **{name: value if value is not None else getattr(PageFilter(), name)}))


def _clear() -> None:
    _set_filter(PageFilter())


def _set_filter(criteria: PageFilter) -> None:
    st.session_state[_KEY] = criteria


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value})
