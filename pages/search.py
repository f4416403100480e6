"""Search: the passages that a question finds, and why, without asking a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, label_count, say
from rag.types import Notice, Retrieval
from rag.ui.chat.asking import start_answer
from rag.ui.chat.filters import draw_chips, draw_filters, draw_strategy, search_options
from rag.ui.chat.search_explanation import draw_explanation
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import current_language, go
from rag.ui.kit.parts import draw_empty_state, draw_page_head, duration
from rag.ui.kit.session import Search, current_library, is_empty, session, set_param
from rag.ui.kit.sources import draw_panel, draw_passage
from rag.ui.shell import open_app

if TYPE_CHECKING:
    from rag.app import App

_LONGEST_QUESTION = 2_000


def draw() -> None:
    language = current_language()
    app = open_app(language)
    library = current_library(app)
    if is_empty(app, library):
        draw_empty_state(label("search_empty", language), language)
        return
    draw_page_head(label("search_title", language), label("search_lead", language))
    question = _draw_box(language)
    with st.container(horizontal=True, vertical_alignment="center", key="scope-row"):
        draw_filters(app, library, language)
        with st.popover(label("strategy", language), icon=":material/tune:", key="strategy-menu"):
            draw_strategy(app, language)
        draw_chips(app, library, language)
    if question:
        _draw_results(app, library, _search(app, library, question, language), language)


def _draw_box(language: Language) -> str:
    """Draw the search box and its button; return the query, which is kept in the URL."""
    if st.session_state.get("searched") != (find := st.query_params.get("find", "")):
        st.session_state["searched"] = st.session_state["search-text"] = find
    with (
        st.form("search-form", border=False, enter_to_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        text = st.text_input(
            label("search_placeholder", language),
            key="search-text",
            type="search",
            max_chars=_LONGEST_QUESTION,
            placeholder=label("search_placeholder", language),
            label_visibility="collapsed",
        )
        submitted = st.form_submit_button(
            label("search_go", language), type="primary", icon=":material/search:", key="search-go"
        )
    if submitted:
        session().search = None
        st.session_state["searched"] = " ".join((text or "").split())  # else the next run would restore this query
        set_param("find", st.session_state["searched"])
    return st.query_params.get("find", "")


def _search(app: App, library: str, question: str, language: Language) -> Retrieval:
    """Search, or return the current result if nothing has changed."""
    state = session()
    current = state.search
    if current is None or (current.library, current.question, current.scope) != (library, question, state.scope):
        with st.spinner(label("search_searching", language), show_time=False):
            result = app.search(question, library=library, chat=state.chat, **search_options())
        current = state.search = Search(library, question, state.scope, result)
    return current.result


def _draw_results(app: App, library: str, result: Retrieval, language: Language) -> None:
    if result.passages:
        time = duration(sum(result.ms.values()), language)
        summary = label_count("search_count_one", "search_count", len(result.passages), language, time=time)
    else:
        summary = label("search_found_none_filtered" if session().scope.filter_count else "search_found_none", language)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(summary, width="content")
        if st.button(
            label("search_ask", language), icon=":material/forum:", type="tertiary", key="search-ask"
        ) and start_answer(app, library, result.question, conversation=""):
            go("chat", conversation=session().conversation)
    if result.damaged:
        titles = ", ".join(f"“{title}”" for title in result.damaged)
        st.warning(escape_line(say(Notice("pages_damaged", {"titles": titles}), language)), icon=":material/build:")
    if not result.candidates:
        return
    draw_panel(app, language)
    passages, explanation = st.tabs([label("search_passages", language), label("why_title", language)])
    with passages:
        for number, passage in enumerate(result.passages, start=1):
            draw_passage(app, library, passage, result.question, language, key=f"found-{number}", number=number)
    with explanation:
        draw_explanation(result, language, key="found")


draw()
