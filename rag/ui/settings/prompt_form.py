"""The rules that chat models are given, read and replaced by whoever administers the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.prompts.texts import MAX_CHARACTERS, PromptText
from rag.types import Notice
from rag.ui.kit.attempt import attempt_here
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App


def draw_prompts(app: App, language: Language) -> None:
    """One text at a time, with its fields; for those who may change it."""
    st.markdown(f"## {label('settings_prompts', language)}", anchors=False)
    st.markdown(label("settings_prompts_lead", language))
    _draw_choice(app, language)


def _draw_choice(app: App, language: Language) -> None:
    names = sorted(app.chats.prompts.names(), key=lambda name: not name.endswith(f".{language}"))
    texts = {name: app.chats.prompts.text(name) for name in names}
    name = st.selectbox(
        label("prompt_choose", language),
        list(texts),
        format_func=lambda one: _named(texts[one], language),
        key="prompt-name",
    )
    _draw_text(app, texts[name], language)


def _named(text: PromptText, language: Language) -> str:
    job, _, written = text.name.partition(".")
    parts = [label(f"prompt_{job}", language), label(f"language_{written}", language)]
    return " · ".join([*parts, label("prompt_own", language)] if text.own else parts)


def _draw_text(app: App, text: PromptText, language: Language) -> None:
    with st.form(f"prompt-form-{text.version}", border=False):
        written = st.text_area(
            label("prompt_text", language),
            text.text,
            height=320,
            key=f"prompt-text-{text.version}",
            max_chars=MAX_CHARACTERS,
        )
        wrong = st.container(gap=None)
        fields = " ".join(f"`{{{one}}}`" for one in sorted(text.fields)) or "–"
        st.caption(label("prompt_needs", language, fields=fields))
        with st.container(horizontal=True):
            save = st.form_submit_button(label("prompt_save", language), type="primary", key="prompt-save")
            back = text.own and st.form_submit_button(label("prompt_back", language), key="prompt-back")
    with st.expander(label("details", language), icon=":material/info:", type="compact"):
        st.caption(label("prompt_version", language, version=text.version))
    prompts = app.chats.prompts
    with wrong:
        if save and attempt_here(lambda: prompts.replace(text.name, written or ""), language):
            session().notes.append(Notice("prompt_saved"))
        elif back and attempt_here(lambda: prompts.restore(text.name), language):
            session().notes.append(Notice("prompt_restored"))
        else:
            return
    st.rerun()
