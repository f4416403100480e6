"""The form for a chat model of this session only."""

from __future__ import annotations

import re
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
        with st.container(horizontal=True):
            use = st.form_submit_button(label("chat_use", language), type="primary", key="chat-use")
            test = st.form_submit_button(label("chat_test", language), key="chat-test")
    if use or test:
        _act(app, (model or "").strip(), (base_url or "").strip(), (key or "").strip(), language, use=use)


def _draw_current(language: Language) -> None:
    chat = session().chat
    if chat is None:
        return
    st.success(label("chat_in_use", language, model=escape_line(chat.model)), icon=":material/check_circle:")
    if st.button(label("chat_disconnect", language), key="chat-disconnect"):
        session().chat = None
        st.rerun()


def _act(app: App, model: str, base_url: str, key: str, language: Language, *, use: bool) -> None:
    options = _options(model, base_url, key, language)
    if options is None:
        return
    if use:
        session().chat = options
        st.session_state["chat-round"] = _round() + 1
        st.rerun()
    with st.spinner(label("chat_testing", language)):
        draw_notice(lambda: app.models.test_chat(options), language)


def _round() -> int:
    """Being part of its key, it empties the key field once the key is taken: it is shown to nobody again."""
    return int(st.session_state.get("chat-round", 0))


def _options(model: str, base_url: str, key: str, language: Language) -> ChatOptions | None:
    """The options as entered, or None after saying what is missing.

    The key field is never filled in again: an empty one keeps the key given before for the same address.
    """
    from rag.app import ChatOptions

    if not model:
        st.error(label("chat_needs_model", language))
        return None
    if base_url and not re.match(r"https?://\S+$", base_url, re.ASCII):
        st.error(label("chat_needs_http", language))
        return None
    known = session().chat
    if not key and known and known.base_url == base_url:
        key = known.api_key
    return ChatOptions(model=model, base_url=base_url, api_key=key)
