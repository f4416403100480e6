"""Chat: a question, the steps as they happen, the answer, and where each sentence stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.conversations.conversations import TurnView
from rag.ingest.sources import FILE_TYPES
from rag.ui.chat.asking import start
from rag.ui.chat.composer import chosen, draw_options
from rag.ui.chat.conversation import draw_stop, draw_turns, show_place, watch
from rag.ui.chat.conversation_head import draw_head
from rag.ui.chat.conversations import current
from rag.ui.chat.examples import sample_questions
from rag.ui.chat.filters import draw_chips, draw_filters
from rag.ui.chat.start import draw_start
from rag.ui.kit.answers import answer_of
from rag.ui.kit.choices import MODES
from rag.ui.kit.escape import escape_line
from rag.ui.kit.language import current_language
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import empty_state, page_head
from rag.ui.kit.session import current_library, is_empty, session, whose
from rag.ui.kit.source_panel import draw_panel
from rag.ui.kit.strings import Language, label
from rag.ui.shell import open_app

if TYPE_CHECKING:
    from rag.app import App

_LONGEST_QUESTION = 10_000


def draw() -> None:
    language = current_language()
    app = open_app(language)
    library = current_library(app)
    conversation = current(app)
    turns = app.conversations.turns(conversation.id, session().owner) if conversation else []
    draw_panel(app, language)
    running = None
    if conversation and turns:
        show_place(conversation.id, turns)  # before there is anything to click on: a click lets go of the place
        draw_head(app, conversation, turns, language)
        newest = draw_turns(app, library, turns, language)
        if answer_of(app, library, newest) is None:
            running = newest  # its own looks see it end
        else:
            watch(app, newest)
    elif is_empty(app, library):
        _empty(app, library, language)
    else:
        _hero(app, library, language)
    _question_box(app, library, language, running)


def _empty(app: App, library: str, language: Language) -> None:
    with empty_state(label("empty_title", language), label("empty_lead", language)):
        with st.container(horizontal=True, horizontal_alignment="center"):
            if st.button(label("empty_add", language), type="primary", icon=":material/add:", key="empty-add"):
                go("add")
            if st.button(label("empty_samples", language), icon=":material/auto_stories:", key="empty-samples"):
                go("add", job=app.imports.add_examples(library=library, owner=whose()))
        asked = "  \n".join(f"“{escape_line(question)}”" for question in sample_questions(language))
        st.caption(f"{label('empty_then', language)}  \n{asked}")


def _hero(app: App, library: str, language: Language) -> None:
    with st.container(key="hero"):
        page_head(label("chat_title", language), label("chat_lead", language))
        draw_start(app, library, language)


def _question_box(app: App, library: str, language: Language, running: TurnView | None) -> None:
    """The box and how its question is to be answered; while one is answered, what stops that stands in their place."""
    with st.bottom:
        with st.container(horizontal=True, vertical_alignment="center", key="mode-row"):
            if running:
                draw_stop(app, running, language)
            else:
                _choices(app, library, language)
        draw_chips(app, library, language, disabled=running is not None)
        st.chat_input(
            label("chat_placeholder", language),
            key="question",
            max_chars=_LONGEST_QUESTION,
            disabled=running is not None,
            accept_file="multiple",
            file_type=[ending.lstrip(".") for ending in (*FILE_TYPES, ".zip")],
            on_submit=_ask_typed,
            args=(app, library),
        )


def _choices(app: App, library: str, language: Language) -> None:
    st.session_state["mode"] = session().mode
    st.segmented_control(
        label("chat_mode", language),
        MODES,
        key="mode",
        format_func=lambda mode: label(f"mode_{mode}", language),
        required=True,
        on_change=_choose_mode,
        label_visibility="collapsed",
    )
    draw_filters(app, library, language)
    draw_options(app, language)
    set_here = chosen(language)
    with st.container(key="mode-chosen" if set_here else "mode-hint", width="content"):
        st.caption(set_here or label(f"mode_{session().mode}_hint", language))


def _ask_typed(app: App, library: str) -> None:
    """Files alone are a message too: they are saved."""
    typed = st.session_state["question"]
    question = (typed.text or "").strip() if typed else ""
    files = [(file.name, file.getvalue()) for file in typed.files] if typed else []
    if not question and not files:
        return
    named = question or " ".join(name for name, _ in files)
    how: dict[str, Any] = {} if question else {"route": "save"}
    if not start(app, library, named, files=files, **how):
        st.session_state["question"] = question  # it was not asked, and is not to be typed again


def _choose_mode() -> None:
    session().mode = st.session_state["mode"]


draw()
