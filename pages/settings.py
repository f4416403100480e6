"""Settings: the chat model of this browser, memory, prompts, and the components in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, say
from rag.ui.chat.turn_actions import draw_feedback_export
from rag.ui.kit.actions import attempt_here
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import current_language
from rag.ui.kit.parts import draw_page_head
from rag.ui.kit.session import current_library
from rag.ui.settings.chat_form import draw_chat_form
from rag.ui.settings.sign_in import is_administrator
from rag.ui.settings.tabs import draw_in_use, draw_memory, draw_prompts, draw_reranker
from rag.ui.shell import open_app

if TYPE_CHECKING:
    from rag.app import App


def draw() -> None:
    language = current_language()
    draw_page_head(label("settings_title", language), label("settings_lead", language))
    app = open_app(language)
    tabs = {"model": draw_chat_form, "memory": draw_memory, "prompts": draw_prompts, "system": _draw_system}
    if not is_administrator(app):
        del tabs["prompts"]
    names = [label(f"settings_tab_{name}", language) for name in tabs]
    for tab, draw_tab in zip(st.tabs(names, key="settings-tabs"), tabs.values(), strict=True):
        with tab:
            draw_tab(app, language)


def _draw_system(app: App, language: Language) -> None:
    library = current_library(app)
    st.markdown(f"## {label('settings_in_use', language)}", anchors=False)
    draw_in_use(app, library, language)
    if st.button(label("database_test", language), icon=":material/network_check:", key="database-test"):
        with st.spinner(label("database_testing", language)):
            icon = ":material/check_circle:"
            attempt_here(lambda: st.success(escape_line(say(app.test_database(), language)), icon=icon), language)
    if is_administrator(app):
        draw_reranker(app, library, language)
    st.markdown(f"## {label('settings_feedback', language)}", anchors=False)
    st.markdown(label("settings_feedback_lead", language))
    draw_feedback_export(app, library, language)


draw()
