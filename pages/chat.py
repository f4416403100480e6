"""Chat: a question, the steps in progress, the answer, and the source of each sentence."""

from __future__ import annotations

import streamlit as st

from rag.ui.chat.composer import draw_composer
from rag.ui.chat.conversation import (
    LINK,
    draw_head,
    draw_shared_conversation,
    draw_turns,
    scroll_to_newest,
    watch_newest,
)
from rag.ui.chat.conversations import current_conversation
from rag.ui.chat.filters import draw_page_picker, draw_page_picker_button
from rag.ui.chat.start import draw_start
from rag.ui.kit.navigation import current_language
from rag.ui.kit.session import current_library, session
from rag.ui.kit.sources import answer_of, draw_panel
from rag.ui.shell import open_app


def draw() -> None:
    language = current_language()
    app = open_app(language)
    if link := st.query_params.get(LINK, ""):
        draw_panel(app, language)
        draw_shared_conversation(app, link, language)
        return
    library = current_library(app)
    conversation = current_conversation(app)
    turns = app.conversations.turns(conversation.id, session().owner) if conversation else []
    if session().shown_conversation != (conversation.id if conversation else ""):
        session().sources = {}  # closes the panel with a source of another conversation
    draw_panel(app, language)
    draw_page_picker(app, library, language)
    if not conversation or not turns:
        with st.container(horizontal=True, horizontal_alignment="right", key="page-picker-row"):
            draw_page_picker_button(app, library, language)
        draw_start(app, library, language)
        return
    scroll_to_newest(conversation.id, turns)  # before there is anything to click: a click stops the scrolling
    draw_head(app, library, conversation, turns, language)
    newest = draw_turns(app, library, turns, language)
    running = newest if answer_of(app, library, newest) is None else None  # polls for its own end
    if running is None:
        watch_newest(app, newest)
    with st.bottom:
        draw_composer(app, library, language, running)


draw()
