"""The menu of a follow-up: the question as searched, and its correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.reasoning.history import find_earlier_questions
from rag.types import Answer, Step
from rag.ui.chat.asking import ask
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import close
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LONGEST, _PREVIEW = 600, 80


def followup_line(question: str, standalone: str, steps: Sequence[Step], language: Language) -> str:
    """Return the earlier questions that the search included; empty if there are none."""
    if standalone:
        return label("understood", language, question=escape_line(standalone)) if standalone != question else ""
    previous = reversed(find_earlier_questions(steps))
    questions = " · ".join(escape_line(shorten(" ".join(earlier.split()), _PREVIEW)) for earlier in previous)
    return label("searched_with", language, questions=questions) if questions else ""


def draw_followup(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw a menu above the answer with the searched question and its correction; nothing for a complete question."""
    line = followup_line(turn.question, answer.standalone, answer.steps, language)
    if not line:
        return
    key, icon = f"correct-{turn.id}", ":material/subdirectory_arrow_right:"
    with (
        st.container(key=f"understood-{turn.id}"),
        st.popover(label("followup", language), icon=icon, type="tertiary", key=key, on_change="rerun"),
    ):
        st.caption(line)
        _draw_form(app, library, turn, answer, language)


def _draw_form(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    with st.form(f"correct-form-{turn.id}", border=False):
        correction = st.text_area(
            label("understood_meant", language),
            value=answer.standalone or turn.question,
            key=f"meant-{turn.id}",
            max_chars=_LONGEST,
            height="content",
        )
        submitted = st.form_submit_button(
            label("understood_again", language),
            type="primary",
            key=f"meant-go-{turn.id}",
            on_click=close,
            args=(f"correct-{turn.id}",),
        )
    if submitted and correction and correction.strip():
        ask(app, library, turn.question, standalone=" ".join(correction.split()))
