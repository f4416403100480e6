"""A question in its bubble, with editing, and the branches that start from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.ui.chat.asking import branch
from rag.ui.chat.conversations import open_conversation
from rag.ui.kit.escape import escape, escape_line, shorten
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView
    from rag.store.sql.conversation_table import Conversation

_LONGEST, _PREVIEW = 10_000, 40
_EDITING, _BRANCH = "question-edited", ":material/call_split:"


def draw_question(
    app: App,
    library: str,
    turn: TurnView,
    language: Language,
    *,
    first: bool,
    branches: Sequence[Conversation] = (),
) -> None:
    """Draw the question and below it the `branches` from here. `first`: no question precedes it."""
    if st.session_state.get(_EDITING) == turn.id:
        _draw_form(app, library, turn, language, first=first)
        return
    if turn.pinned:  # static markup with an id made of letters and digits only
        st.html(f'<span class="place" id="{pin_of(turn.id)}"></span>')
    with st.container(key=f"question-{turn.id}"):
        st.markdown(escape(turn.question))
    with st.container(horizontal=True, horizontal_alignment="right", key=f"asked-{turn.id}", gap="small"):
        for item in branches:
            title, key = escape_line(shorten(item.title, _PREVIEW)), f"to-branch-{item.id}"
            st.button(title, icon=_BRANCH, type="tertiary", key=key, on_click=open_conversation, args=(app, item.id))
        text, key = label("branch", language), f"branch-{turn.id}"
        st.button(text, icon=":material/edit:", type="tertiary", key=key, on_click=_edit, args=(turn.id,))


def pin_of(turn_id: str) -> str:
    """Return the anchor of a pinned answer in its page."""
    return f"pinned-{turn_id}"


def _edit(turn_id: str) -> None:
    """In a callback, start editing; an empty id ends it."""
    st.session_state[_EDITING] = turn_id


def _draw_form(app: App, library: str, turn: TurnView, language: Language, *, first: bool) -> None:
    with st.form(f"branch-form-{turn.id}", border=False):
        question = st.text_area(
            label("branch_question", language),
            value=turn.question,
            key=f"branch-question-{turn.id}",
            max_chars=_LONGEST,
            height="content",
            label_visibility="collapsed",
        )
        st.caption(label("branch_lead", language))
        with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            st.form_submit_button(
                label("branch_not", language), key=f"branch-not-{turn.id}", on_click=_edit, args=("",)
            )
            submitted = st.form_submit_button(label("branch_go", language), type="primary", key=f"branch-go-{turn.id}")
    if submitted and question and question.strip():
        _edit("")
        branch(app, library, turn.conversation_id, turn.id, question.strip(), first=first)
