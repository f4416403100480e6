"""The form for a chat model of this browser only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from rag.app.chat_models import SERVICES, entered
from rag.errors import RagError
from rag.locales import say
from rag.ui.kit.escape import escape_line
from rag.ui.kit.session import browser, forget_chat, session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App, ChatOptions

_LONGEST = 2000
_MODELS = "chat-served"


def draw_chat_form(app: App, language: Language) -> None:
    """Fields for address, model and key, tested before they are kept for this browser; nothing where that is off."""
    if not app.chats.own_allowed:
        st.markdown(label("settings_chat_off", language))
        return
    st.markdown(label("settings_chat_lead", language))
    _draw_current(app, language)
    _draw_services(language)
    known = session().chat
    _fill("chat-base-url", known.base_url if known else app.settings.llm_base_url)
    _fill("chat-model", known.model if known else app.settings.llm_model)
    with st.form("chat-form"):
        base_url = _text("chat_base_url", "chat-base-url", language, placeholder="https://api.deepseek.com/v1")
        model = _text("chat_model_name", "chat-model", language, placeholder="deepseek-chat")
        key = st.text_input(
            label("chat_key", language),
            key=f"chat-key-{_round()}",
            type="password",
            placeholder=label("chat_key_hint", language),
            autocomplete="off",
            max_chars=_LONGEST,
        )
        fast, temperature = _draw_finer(app, language)
        with st.container(horizontal=True):
            use = st.form_submit_button(label("chat_use", language), type="primary", key="chat-use")
            look = st.form_submit_button(label("chat_list", language), key="chat-list")
    if use or look:
        options = _with_known_key(entered(model, base_url, key or "", fast, temperature))
        _connect(app, options, language) if use else _list(app, options, language)
    _draw_served(language)


def _fill(key: str, value: str) -> None:
    """Set a field's initial value in the session, because other choices fill it too."""
    st.session_state.setdefault(key, value)


def _text(name: str, key: str, language: Language, *, placeholder: str) -> str:
    return st.text_input(label(name, language), key=key, placeholder=placeholder, max_chars=_LONGEST) or ""


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
            max_chars=_LONGEST,
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
    return fast or "", temperature


def _draw_current(app: App, language: Language) -> None:
    chat = session().chat
    if chat is None:
        return
    st.success(label("chat_in_use", language, model=escape_line(chat.model)), icon=":material/check_circle:")
    if st.button(label("chat_disconnect", language), key="chat-disconnect"):
        forget_chat(app)
        st.rerun()


def _draw_services(language: Language) -> None:
    st.pills(label("chat_service", language), list(SERVICES), key="chat-service", on_change=_take_service)


def _take_service() -> None:
    if name := st.session_state["chat-service"]:
        st.session_state["chat-base-url"], st.session_state["chat-model"] = SERVICES[name]
        st.session_state.pop(_MODELS, None)


def _connect(app: App, options: ChatOptions, language: Language) -> None:
    """Test it and keep it; where only the model's name was wrong, what the service has is offered."""
    try:
        with st.spinner(label("chat_testing", language)):
            found = app.chats.connect(options, browser(), session().owner)
    except RagError as error:
        _say(error, language)
        if error.code in ("connect_no_model", "connect_unknown_model"):
            with suppress(RagError):
                st.session_state[_MODELS] = app.chats.served(options)
        return
    session().notes.append(found)
    st.session_state["chat-round"] = _round() + 1
    st.rerun()


def _list(app: App, options: ChatOptions, language: Language) -> None:
    try:
        with st.spinner(label("chat_testing", language)):
            st.session_state[_MODELS] = app.chats.served(options)
    except RagError as error:
        _say(error, language)


def _say(error: RagError, language: Language) -> None:
    st.session_state.pop(_MODELS, None)
    st.error(escape_line(say(error.notice, language)), icon=":material/error:")


def _draw_served(language: Language) -> None:
    """The models that the service named, to fill the form with."""
    if names := st.session_state.get(_MODELS):
        st.selectbox(
            label("chat_served", language, count=len(names)),
            names,
            index=None,
            key="chat-served-model",
            placeholder=label("chat_served_hint", language),
            on_change=_take_model,
        )


def _take_model() -> None:
    if name := st.session_state["chat-served-model"]:
        st.session_state["chat-model"] = name


def _round() -> int:
    """Being part of its key, it empties the key field once the key is taken: it is shown to nobody again."""
    return int(st.session_state.get("chat-round", 0))


def _with_known_key(typed: ChatOptions) -> ChatOptions:
    """The key field is never filled in again: an empty one keeps the key given before for the same service."""
    known = session().chat
    if typed.api_key or known is None or known.service != typed.service:
        return typed
    return replace(typed, api_key=known.api_key)
