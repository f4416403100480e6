"""The language of the screens: chosen with the switch, else by the address, else by the browser."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rag.locales import preferred
from rag.ui.kit.session import session, set_param
from rag.ui.kit.strings import LANGUAGES, Language, label


def browser_language() -> Language:
    """The language that the browser asks for, English where it says nothing."""
    return preferred(st.context.locale or "")


def current_language() -> Language:
    """The language to draw in; kept in the address where it differs from the browser's."""
    state = session()
    wanted = state.language or st.query_params.get("lang", "")
    language = wanted if wanted in LANGUAGES else browser_language()
    state.language = language
    set_param("lang", "" if language == browser_language() else language)
    return language


def language_switch(key: str) -> None:
    """Draw the switch. It takes effect before anything else is drawn."""
    language = current_language()
    st.session_state[key] = language
    st.segmented_control(
        label("language", language),
        LANGUAGES,
        key=key,
        format_func=partial(label, "language_name"),
        required=True,
        on_change=_choose,
        args=(key,),
        label_visibility="collapsed",
    )


def _choose(key: str) -> None:
    session().language = st.session_state[key]
