"""The prompts of chat models, read and replaced by administrators of the app."""

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
    """Draw one prompt at a time, with its placeholders, for those who may change it."""
    st.markdown(f"## {label('settings_prompts', language)}", anchors=False)
    st.markdown(label("settings_prompts_lead", language))
    _draw_choice(app, language)


def _draw_choice(app: App, language: Language) -> None:
    names = sorted(app.chats.prompts.names(), key=lambda name: not name.endswith(f".{language}"))
    texts = {name: app.chats.prompts.text(name) for name in names}
    name = st.selectbox(
        label("prompt_choose", language),
        list(texts),
        format_func=lambda one: _prompt_name(texts[one], language),
        key="prompt-name",
    )
    _draw_text(app, texts[name], language)


def _prompt_name(text: PromptText, language: Language) -> str:
    job, _, tag = text.name.partition(".")
    parts = [label(f"prompt_{job}", language), label(f"language_{tag}", language)]
    return " · ".join([*parts, label("prompt_own", language)] if text.own else parts)


def _draw_text(app: App, text: PromptText, language: Language) -> None:
    with st.form(f"prompt-form-{text.version}", border=False):
        new_text = st.text_area(
            label("prompt_text", language),
            text.text,
            height=320,
            key=f"prompt-text-{text.version}",
            max_chars=MAX_CHARACTERS,
        )
        errors = st.container(gap=None)
        fields = " ".join(f"`{{{field}}}`" for field in sorted(text.fields)) or "–"
        st.caption(label("prompt_needs", language, fields=fields))
        with st.container(horizontal=True):
            save = st.form_submit_button(label("prompt_save", language), type="primary", key="prompt-save")
            reset = text.own and st.form_submit_button(label("prompt_back", language), key="prompt-back")
    with st.expander(label("details", language), icon=":material/info:", type="compact"):
        st.caption(label("prompt_version", language, version=text.version))
    prompts = app.chats.prompts
    with errors:
        if save and attempt_here(lambda: prompts.replace(text.name, new_text or ""), language):
            session().notes.append(Notice("prompt_saved"))
        elif reset and attempt_here(lambda: prompts.restore(text.name), language):
            session().notes.append(Notice("prompt_restored"))
        else:
            return
    st.rerun()
