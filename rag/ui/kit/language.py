"""The language of the screens: from the switch, else from the address, else from the browser."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rag.locales import preferred
from rag.ui.kit.session import session, set_param
from rag.ui.kit.strings import LANGUAGES, Language, label


def browser_language() -> Language:
    """Return the language that the browser asks for, English if it names none."""
    return preferred(st.context.locale or "")


def current_language() -> Language:
    """Return the language to draw in, kept in the address if it differs from the browser's."""
    state = session()
    tag = state.language or st.query_params.get("lang", "")
    language = tag if tag in LANGUAGES else browser_language()
    state.language = language
    set_param("lang", "" if language == browser_language() else language)
    return language


def draw_language_switch(key: str) -> None:
    """Draw the switch, which takes effect before anything else is drawn."""
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
