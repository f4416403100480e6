"""Regenerate: ask a finished answer's question again, in another mode or with another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.ui.chat.asking import regenerate
from rag.ui.chat.options import list_models
from rag.ui.kit.choices import MODES, NEED_MODEL
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import close
from rag.ui.kit.session import chat_in_use
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App, ChatOptions
    from rag.conversations.conversations import TurnView

_MAX_MODELS = 8


def draw_regenerate(app: App, turn: TurnView, language: Language) -> None:
    """Draw a menu; the service's models are requested when it opens."""
    name, key = label("regenerate", language), f"regenerate-{turn.id}"
    menu = st.popover(name, icon=":material/replay:", type="tertiary", key=key, on_change="rerun")
    if not menu.open:
        return
    chat = chat_in_use(app)
    with menu, st.container(key=f"regenerate-choices-{turn.id}", gap=None):
        _draw_choice(app, turn, "same", "replay", label("regenerate_same", language))
        if turn.is_plain:
            for mode in MODES:
                if mode != turn.settings.get("mode") and (chat is not None or mode not in NEED_MODEL):
                    words = label("regenerate_mode", language, mode=label(f"mode_{mode}", language))
                    _draw_choice(app, turn, mode, "tune", words, mode=mode)
        for place, model in enumerate(_other_models(app, chat, language)):
            words = label("regenerate_model", language, model=escape_line(model))
            _draw_choice(app, turn, f"model-{place}", "smart_toy", words, model=model)


def _draw_choice(app: App, turn: TurnView, name: str, icon: str, words: str, **options: str) -> None:
    st.button(
        words,
        icon=f":material/{icon}:",
        type="tertiary",
        width="stretch",
        key=f"regenerate-{name}-{turn.id}",
        on_click=_choose,
        args=(app, turn),
        kwargs=options,
    )


def _choose(app: App, turn: TurnView, **options: str) -> None:
    close(f"regenerate-{turn.id}")
    regenerate(app, turn, **options)


def _other_models(app: App, chat: ChatOptions | None, language: Language) -> list[str]:
    """Return the other models of the service, if a person may choose one."""
    if chat is None or not app.chats.own_allowed:
        return []
    return [name for name in list_models(app, chat, language) if name != chat.model][:_MAX_MODELS]
