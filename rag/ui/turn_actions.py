"""What can be done with an answer: judge it, ask differently from there, ask on, ask again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Answer
from rag.ui.asking import ask_first, branch
from rag.ui.escape import escape_line
from rag.ui.feedback import draw_thumbs
from rag.ui.parts import close
from rag.ui.strings import Language, label
from rag.ui.usage import usage_line

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LONGEST_QUESTION = 10_000


def draw_actions(app: App, library: str, turn: TurnView, answer: Answer, language: Language, *, first: bool) -> None:
    """A quiet row under the answer: thumbs, another way to ask, and what the answer used."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"actions-{turn.id}", gap="small"):
        if turn.state == "done":
            draw_thumbs(app, turn, language)
        popover = st.popover(
            label("branch", language),
            icon=":material/call_split:",
            type="tertiary",
            key=f"branch-{turn.id}",
            on_change="rerun",
        )
        with popover:
            _draw_branch(app, library, turn, language, first=first)
        if used := usage_line(answer, language):
            st.caption(used, width="content")


def _draw_branch(app: App, library: str, turn: TurnView, language: Language, *, first: bool) -> None:
    with st.form(f"branch-form-{turn.id}", border=False):
        st.caption(label("branch_lead", language))
        question = st.text_area(
            label("branch_question", language),
            value=turn.question,
            key=f"branch-question-{turn.id}",
            max_chars=_LONGEST_QUESTION,
            height="content",
        )
        go_on = st.form_submit_button(
            label("branch_go", language),
            type="primary",
            key=f"branch-go-{turn.id}",
            on_click=close,
            args=(f"branch-{turn.id}",),
        )
    if go_on and question and question.strip():
        branch(app, library, turn.conversation_id, turn.id, question.strip(), first=first)


def draw_again(app: App, library: str, turn: TurnView, language: Language) -> None:
    """For an answer that was cut off."""
    key, icon = f"again-{turn.id}", ":material/replay:"
    st.button(label("ask_again", language), icon=icon, key=key, on_click=ask_first, args=(app, library, turn.question))


def draw_suggestions(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Questions to ask next, as buttons; they come some time after the answer."""
    if not turn.suggestions:
        return
    st.markdown(f":gray[{label('next_questions', language)}]")
    with st.container(key="suggestions", gap="xsmall"):
        for place, question in enumerate(turn.suggestions):
            key, icon = f"suggestion-{place}-{turn.id}", ":material/arrow_outward:"
            st.button(escape_line(question), key=key, icon=icon, on_click=ask_first, args=(app, library, question))
