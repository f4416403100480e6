"""The language of the screens: chosen with the switch, else by the address, else by the browser."""

from __future__ import annotations

import streamlit as st

from rag.ui.kit.session import session, set_param
from rag.ui.kit.strings import LANGUAGE_NAMES, LANGUAGES, Language, label


def browser_language() -> Language:
    """The language that the browser asks for, English where it says nothing."""
    locale = st.context.locale or ""
    return "zh" if locale.lower().startswith("zh") else "en"


def current_language() -> Language:
    """The language to draw in; kept in the address where it differs from the browser's."""
    state = session()
    wanted = state.language or st.query_params.get("lang", "")
    language: Language = "zh" if wanted == "zh" else "en" if wanted == "en" else browser_language()
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
        format_func=LANGUAGE_NAMES.__getitem__,
        required=True,
        on_change=_choose,
        args=(key,),
        label_visibility="collapsed",
    )


def _choose(key: str) -> None:
    session().language = st.session_state[key]
