"""The form that connects a chat model for this browser only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.app.chat_models import SERVICES, from_form
from rag.errors import RagError
from rag.locales import Language, label
from rag.ui.kit.actions import draw_failure
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.session import browser_key, disconnect_chat_model, reset_count, reset_widgets, session

if TYPE_CHECKING:
    from rag.app import App, ChatOptions

_LONGEST = 2000
_MODELS = "chat-served"


def draw_chat_form(app: App, language: Language) -> None:
    """Draw the form for URL, model and key, tested before they are saved for this browser; a note if that is off."""
    st.markdown(f"## {label('settings_chat', language)}", anchors=False)
    if not app.chats.own_allowed:
        st.markdown(label("settings_chat_off", language))
        return
    st.markdown(label("settings_chat_lead", language))
    current = session().chat
    if current is not None:
        st.success(label("chat_in_use", language, model=escape_line(current.model)), icon=":material/check_circle:")
        if st.button(label("chat_disconnect", language), key="chat-disconnect"):
            disconnect_chat_model(app)
            st.rerun()
    st.pills(label("chat_service", language), list(SERVICES), key="chat-service", on_change=_fill_service)
    # Set through the session state, since other choices fill these fields too.
    st.session_state.setdefault("chat-base-url", current.base_url if current else app.settings.llm_base_url)
    st.session_state.setdefault("chat-model", current.model if current else app.settings.llm_model)
    with st.form("chat-form"):
        base_url = _text("chat_base_url", "chat-base-url", language, placeholder="https://api.deepseek.com/v1")
        model = _text("chat_model_name", "chat-model", language, placeholder="deepseek-chat")
        key = st.text_input(
            label("chat_key", language),
            key=f"chat-key-{reset_count('chat')}",
            type="password",
            placeholder=label("chat_key_hint", language),
            autocomplete="off",
            max_chars=_LONGEST,
        )
        fast, temperature = _draw_details(app, language)
        with st.container(horizontal=True):
            connect = st.form_submit_button(label("chat_use", language), type="primary", key="chat-use")
            list_only = st.form_submit_button(label("chat_list", language), key="chat-list")
    if connect or list_only:
        options = from_form(model, base_url, key or "", fast, temperature)
        if not options.api_key and current is not None and current.service == options.service:
            options = replace(options, api_key=current.api_key)  # the key field is never prefilled
        _connect(app, options, language) if connect else _list(app, options, language)
    _draw_models(language)


def _text(name: str, key: str, language: Language, *, placeholder: str) -> str:
    return st.text_input(label(name, language), key=key, placeholder=placeholder, max_chars=_LONGEST) or ""


def _draw_details(app: App, language: Language) -> tuple[str, float]:
    """Draw the fields for the fast model and for the temperature, and return their values."""
    current = session().chat
    left, right = st.columns(2)
    with left:
        fast = st.text_input(
            label("option_fast_model", language),
            key="chat-fast-model",
            value=current.fast_model if current else app.settings.fast_llm_model,
            placeholder=label("chat_fast_hint", language),
            max_chars=_LONGEST,
        )
    with right:
        default = app.settings.llm_temperature
        temperature = st.number_input(
            label("option_temperature", language),
            min_value=0.0,
            max_value=2.0,
            step=0.1,
            value=current.temperature if current and current.temperature is not None else default,
            key="chat-temperature",
        )
    return fast or "", temperature


def _fill_service() -> None:
    if name := st.session_state["chat-service"]:
        st.session_state["chat-base-url"], st.session_state["chat-model"] = SERVICES[name]
        st.session_state.pop(_MODELS, None)


def _connect(app: App, options: ChatOptions, language: Language) -> None:
    """Test the options and save them; if only the model's name was wrong, offer the models of the service."""
    try:
        with st.spinner(label("chat_testing", language)):
            notice = app.chats.connect(options, browser_key(), session().owner)
    except RagError as error:
        _draw_error(error, language)
        if error.code in ("connect_no_model", "connect_unknown_model"):
            with suppress(RagError):
                st.session_state[_MODELS] = app.chats.list_models(options)
        return
    session().notices.append(notice)
    reset_widgets("chat")
    st.rerun()


def _list(app: App, options: ChatOptions, language: Language) -> None:
    try:
        with st.spinner(label("chat_testing", language)):
            st.session_state[_MODELS] = app.chats.list_models(options)
    except RagError as error:
        _draw_error(error, language)


def _draw_error(error: RagError, language: Language) -> None:
    st.session_state.pop(_MODELS, None)
    draw_failure(error.notice, language)


def _draw_models(language: Language) -> None:
    """Draw the models that the service listed; a selected one fills the form."""
    if names := st.session_state.get(_MODELS):
        st.selectbox(
            label("chat_served", language, count=len(names)),
            names,
            index=None,
            key="chat-served-model",
            placeholder=label("chat_served_hint", language),
            on_change=_fill_model,
        )


def _fill_model() -> None:
    if name := st.session_state["chat-served-model"]:
        st.session_state["chat-model"] = name
