"""What a follow-up was understood as, or searched with, and the way to put that right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.reasoning.history import searched_with
from rag.types import Answer, Step
from rag.ui.chat.asking import ask
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.parts import close
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LONGEST, _SHOWN = 600, 80


def followup_line(question: str, standalone: str, steps: Sequence[Step], language: Language) -> str:
    """What was searched for where that is not the question alone; else empty."""
    if standalone:
        return label("understood", language, question=escape_line(standalone)) if standalone != question else ""
    before = reversed(searched_with(steps))
    told = " · ".join(escape_line(shorten(" ".join(earlier.split()), _SHOWN)) for earlier in before)
    return label("searched_with", language, questions=told) if told else ""


def draw_followup(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """One line above the answer with a small form behind it; nothing for a question that stood by itself."""
    line = followup_line(turn.question, answer.standalone, answer.steps, language)
    if not line:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"understood-{turn.id}", gap="small"):
        st.caption(line, width="content")
        popover = st.popover(
            label("understood_wrong", language), type="tertiary", key=f"correct-{turn.id}", on_change="rerun"
        )
        with popover:
            _draw_form(app, library, turn, answer, language)


def _draw_form(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    with st.form(f"correct-form-{turn.id}", border=False):
        meant = st.text_area(
            label("understood_meant", language),
            value=answer.standalone or turn.question,
            key=f"meant-{turn.id}",
            max_chars=_LONGEST,
            height="content",
        )
        again = st.form_submit_button(
            label("understood_again", language),
            type="primary",
            key=f"meant-go-{turn.id}",
            on_click=close,
            args=(f"correct-{turn.id}",),
        )
    if again and meant and meant.strip():
        ask(app, library, turn.question, standalone=" ".join(meant.split()))
