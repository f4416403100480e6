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
_CONSIDERED = 300


def current_filter() -> PageFilter:
    """Return this tab's choices, which outlast a visit to another page."""
    wanted: PageFilter = st.session_state.setdefault(_KEY, PageFilter())
    return wanted


def draw_search(pages: Sequence[Page], language: Language) -> None:
    """The box for words, where they are looked for, and the button that opens the filters."""
    wanted = current_filter()
    with st.container(horizontal=True, vertical_alignment="center", key="shelf-search", gap="small"):
        _set("words", wanted.words)
        st.text_input(
            label("library_filter", language),
            key="library-words",
            placeholder=label("library_filter_text" if wanted.in_text else "library_filter", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=not wanted.in_text,
            on_change=_take,
            args=("words",),
        )
        _set("in_text", wanted.in_text)
        st.toggle(
            label("library_in_text", language),
            key="library-in_text",
            help=label("library_in_text_hint", language),
            on_change=_take,
            args=("in_text",),
        )
        _draw_filters(pages, wanted, language)


def _draw_filters(pages: Sequence[Page], wanted: PageFilter, language: Language) -> None:
    text = label("library_filters", language)
    text += f" ({wanted.narrowed})" if wanted.narrowed else ""
    with st.popover(text, icon=":material/tune:", key="shelf-filters"):
        _choice("sort", SORTS, lambda one: label(f"sort_{one}", language), language)
        sites = ["", *_distinct(page.site for page in pages)]
        every = label("filters_any", language)
        _choice("site", sites, lambda one: one or every, language)
        tags = ["", *_distinct(page.language for page in pages)]
        _choice("language", tags, lambda one: language_name(one, language) if one else every, language)
        _choice("age", AGES, lambda one: label(f"age_{one}", language), language)
        if wanted != PageFilter():
            st.button(label("filters_clear", language), key="shelf-clear", type="tertiary", on_click=_clear)


def _choice(name: str, options: Sequence[str], told: Callable[[str], str], language: Language) -> None:
    chosen = getattr(current_filter(), name)
    _set(name, chosen if chosen in options else options[0])
    st.selectbox(
        label(f"shelf_{name}", language),
        options,
        key=f"library-{name}",
        format_func=told,
        on_change=_take,
        args=(name,),
    )


def draw_states(counts: Mapping[State, int], language: Language) -> None:
    """Draw the status filter: all pages, recently changed, gone, excluded, each with its number."""
    wanted = current_filter()
    shown = [state for state in STATES if counts[state] or state in ("all", wanted.state)]
    if shown == ["all"]:
        return
    _set("state", wanted.state)
    st.pills(
        label("library_state", language),
        shown,
        required=True,
        format_func=lambda state: f"{label(f'state_{state}', language)} {counts.get(state, 0):,}",
        key="library-state",
        label_visibility="collapsed",
        on_change=_take,
        args=("state",),
    )


def draw_subjects(subjects: Sequence[str], language: Language) -> None:
    """Draw the topics as filters; a topic that no longer exists is cleared."""
    if current_filter().subject not in subjects:
        _keep(replace(current_filter(), subject=""))
    if subjects:
        _set("subject", current_filter().subject or None)
        st.pills(
            label("library_subjects", language),
            subjects,
            format_func=escape_line,
            key="library-subject",
            label_visibility="collapsed",
            on_change=_take,
            args=("subject",),
        )


def take_subject() -> None:
    """Choose the subject that a link names; it is no part of the address afterwards."""
    if subject := st.query_params.get("subject", ""):
        _keep(PageFilter(subject=subject))
        set_param("subject", "")


def pages_with(app: App, library: str, words: str, language: Language) -> list[str]:
    """Hashes of the pages whose texts the keyword search finds, the best first; kept until the words change."""
    asked = (library, words, app.library(library).page_count())
    kept: Any = st.session_state.get("shelf-found")
    if kept is None or kept[0] != asked:
        with st.spinner(label("library_searching", language)):
            found = app.search(words, library=library, strategy="keyword", fetch_k=_CONSIDERED)
        hashes = list(dict.fromkeys(candidate.passage.url_hash for candidate in found.candidates))
        st.session_state["shelf-found"] = kept = (asked, hashes)
    hits: list[str] = kept[1]
    return hits


def _set(name: str, value: object) -> None:
    """Give a widget its value: Streamlit forgets it while another page is shown."""
    st.session_state[f"library-{name}"] = value


def _take(name: str) -> None:
    value = st.session_state[f"library-{name}"]
    _keep(replace(current_filter(), **{name: value if value is not None else getattr(PageFilter(), name)}))


def _clear() -> None:
    _keep(PageFilter())


def _keep(wanted: PageFilter) -> None:
    st.session_state[_KEY] = wanted


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value})
