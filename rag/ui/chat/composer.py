"""The question box: files, text, mode and model in one row, with filters and options as chips above."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.ingest.archives import FILE_TYPES
from rag.locales import Language, label
from rag.types import Notice
from rag.ui.chat.asking import start_answer
from rag.ui.chat.conversation import draw_stop
from rag.ui.chat.filters import draw_chips, draw_filters
from rag.ui.chat.options import (
    OPTIONS,
    draw_model_name,
    draw_options,
    draw_problem,
    forget_problem,
    list_models,
    request_model,
    try_model,
)
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import close_popover, draw_button
from rag.ui.kit.session import MODES, chat_in_use, is_empty, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.models.servers import ServerCapacity

_LONGEST_QUESTION, _LONGEST_MODEL = 10_000, 28
_CONNECT = "connect"
_ICONS = {"fast": "bolt", "deep": "manage_search", "research": "travel_explore", "judge": "account_tree"}
_MODE, _MODEL = "mode-menu", "model-menu"


def draw_composer(app: App, library: str, language: Language, running: TurnView | None) -> None:
    """Draw the box; Stop replaces the menus while a question is being answered."""
    if not st.session_state.get(OPTIONS) and not st.session_state.get(_MODEL):
        forget_problem()
    if try_model(app, language):
        close_popover(_MODEL)
    if not is_empty(app, library):
        with st.container(horizontal=True, vertical_alignment="center", key="scope-row", gap="xsmall"):
            draw_filters(app, library, language)
            draw_options(app, language)
            draw_chips(app, library, language, disabled=running is not None)
    with st.container(key="composer", gap=None):
        st.chat_input(
            label("chat_placeholder", language),
            key="question",
            max_chars=_LONGEST_QUESTION,
            accept_file="multiple",
            file_type=[ending.lstrip(".") for ending in (*FILE_TYPES, ".zip")],
            on_submit=_submit,
            args=(app, library, running),
        )
        with st.container(horizontal=True, vertical_alignment="center", key="composer-menus", gap=None):
            if running:
                draw_stop(app, running, language)
            else:
                _draw_modes(app, language)
                _draw_models(app, language)


def _draw_modes(app: App, language: Language) -> None:
    """Draw the modes as a menu, with a note on those that do little without a chat model, and a link to connect one."""
    without_model = chat_in_use(app) is None
    selected = session().mode if session().mode in MODES else MODES[0]

    def line(key: str) -> str:
        if key == _CONNECT:
            return f":material/add_link: {label('chat_connect', language)}"
        hint = "quoting" if without_model and key != MODES[0] else "hint"
        text = f":material/{_ICONS[key]}: **{label(f'mode_{key}', language)}** {label(f'mode_{key}_{hint}', language)}"
        return f"{text} :material/check:" if key == selected else text

    st.menu_button(
        label(f"mode_{selected}", language),
        [*MODES, _CONNECT] if without_model and app.chats.own_allowed else MODES,
        format_func=line,
        type="tertiary",
        icon=f":material/{_ICONS[selected]}:",
        key=_MODE,
        on_click=_choose_mode,
    )
    if st.session_state.pop(_CONNECT, False):
        go("settings")


def _choose_mode() -> None:
    mode = st.session_state[_MODE]
    if mode == _CONNECT:
        st.session_state[_CONNECT] = True  # a callback cannot switch pages
    elif mode:
        session().mode = mode


def _draw_models(app: App, language: Language) -> None:
    """Draw the models of the service, requested when the menu opens, or a button to connect one."""
    chat, allowed = chat_in_use(app), app.chats.own_allowed
    if chat is None:
        if allowed and draw_button(label("chat_connect", language), "add_link", "model-connect", type="tertiary"):
            go("settings")
        return
    menu = st.popover(
        escape_line(shorten(chat.model, _LONGEST_MODEL)),
        icon=":material/smart_toy:",
        type="tertiary",
        key=_MODEL,
        disabled=not allowed,
        on_change="rerun",
    )
    if menu.open:
        with menu, st.container(key="model-choices", gap="xsmall"):
            if names := list_models(app, chat, language):
                with st.container(key="model-list", gap=None):
                    for place, name in enumerate(names):
                        icon = "check" if name == chat.model else "smart_toy"
                        request = partial(request_model, replace(chat, model=name))
                        text, key = escape_line(name), f"model-{place}"
                        draw_button(text, icon, key, request, type="tertiary", width="stretch")
            else:
                st.caption(label("model_no_list", language))
            draw_model_name("model", chat.model, "", app, language)
            _draw_capacity(app.chats.capacity(chat), language)
            draw_problem(language)
            if draw_button(label("model_manage", language), "tune", "model-manage", type="tertiary"):
                go("settings")


def _draw_capacity(capacity: ServerCapacity, language: Language) -> None:
    """Draw the context window and speed of the model, as far as known from its calls."""
    parts = []
    if capacity.window:
        parts.append(label("model_window", language, count=f"{capacity.window:,}"))
    if capacity.write_speeds:
        parts.append(label("model_writes", language, count=round(mean(capacity.write_speeds))))
    if capacity.first_token_waits:
        parts.append(label("model_waits", language, seconds=f"{mean(capacity.first_token_waits):.1f}"))
    if parts:
        st.caption(" · ".join(parts))
    if capacity.is_slow():
        st.caption(label("model_slow_here", language))


def _submit(app: App, library: str, running: TurnView | None) -> None:
    """Send the message; files alone are saved. A message sent during an answer stays in the box."""
    submission = st.session_state["question"]
    question = (submission.text or "").strip() if submission else ""
    files = [(file.name, file.getvalue()) for file in submission.files] if submission else []
    if not question and not files:
        return
    if running and app.conversations.turn(running.id, session().owner).state == "running":
        session().notices.append(Notice("turn_running"))
        st.session_state["question"] = question
        return
    text = question or " ".join(name for name, _ in files)
    options: dict[str, Any] = {} if question else {"route": "save"}
    if not start_answer(app, library, text, files=files, **options):
        st.session_state["question"] = question  # keep the text after an error
