"""The form for a chat model of this session only."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.ui.escape import escape_line
from rag.ui.notice import draw_notice
from rag.ui.session import session
from rag.ui.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App, ChatOptions


def draw_chat_form(app: App, language: Language) -> None:
    """Fields for address, model and key, with a test; what is entered is kept in this tab's session."""
    from rag.app import ChatOptions

    st.markdown(label("settings_chat_lead", language))
    _draw_current(language)
    known = session().chat
    with st.form("chat-form"):
        base_url = st.text_input(
            label("chat_base_url", language),
            key="chat-base-url",
            value=known.base_url if known else app.settings.llm_base_url,
            placeholder="https://api.deepseek.com/v1",
        )
        model = st.text_input(
            label("chat_model_name", language),
            key="chat-model",
            value=known.model if known else app.settings.llm_model,
            placeholder="deepseek-chat",
        )
        key = st.text_input(
            label("chat_key", language),
            key=f"chat-key-{_round()}",
            type="password",
            placeholder=label("chat_key_hint", language),
            autocomplete="off",
        )
        fast, temperature = _draw_finer(app, language)
        with st.container(horizontal=True):
            use = st.form_submit_button(label("chat_use", language), type="primary", key="chat-use")
            test = st.form_submit_button(label("chat_test", language), key="chat-test")
    if use or test:
        entered = ChatOptions((model or "").strip(), (base_url or "").strip(), (key or "").strip(), fast, temperature)
        _act(app, entered, language, use=use)


def _draw_finer(app: App, language: Language) -> tuple[str, float]:
    """The model for all but the answer, and how freely the answer is worded."""
    known = session().chat
    left, right = st.columns(2)
    with left:
        fast = st.text_input(
            label("option_fast_model", language),
            key="chat-fast-model",
            value=known.fast_model if known else app.settings.fast_llm_model,
            placeholder=label("chat_fast_hint", language),
        )
    with right:
        usual = app.settings.llm_temperature
        temperature = st.number_input(
            label("option_temperature", language),
            min_value=0.0,
            max_value=2.0,
            step=0.1,
            value=known.temperature if known and known.temperature is not None else usual,
            key="chat-temperature",
        )
    return (fast or "").strip(), temperature


def _draw_current(language: Language) -> None:
    chat = session().chat
    if chat is None:
        return
    st.success(label("chat_in_use", language, model=escape_line(chat.model)), icon=":material/check_circle:")
    if st.button(label("chat_disconnect", language), key="chat-disconnect"):
        session().chat = None
        st.rerun()


def _act(app: App, entered: ChatOptions, language: Language, *, use: bool) -> None:
    if not _is_complete(entered, language):
        return
    options = _with_known_key(entered)
    if use:
        session().chat = options
        st.session_state["chat-round"] = _round() + 1
        st.rerun()
    with st.spinner(label("chat_testing", language)):
        draw_notice(lambda: app.models.test_chat(options), language)


def _round() -> int:
    """Being part of its key, it empties the key field once the key is taken: it is shown to nobody again."""
    return int(st.session_state.get("chat-round", 0))


def _is_complete(entered: ChatOptions, language: Language) -> bool:
    """Whether it can be tried; what is missing is said."""
    if not entered.model:
        st.error(label("chat_needs_model", language))
        return False
    if entered.base_url and not re.match(r"https?://\S+$", entered.base_url, re.ASCII):
        st.error(label("chat_needs_http", language))
        return False
    return True


def _with_known_key(entered: ChatOptions) -> ChatOptions:
    """The key field is never filled in again: an empty one keeps the key given before for the same service."""
    known = session().chat
    if entered.api_key or known is None or known.service != entered.service:
        return entered
    return replace(entered, api_key=known.api_key)
