"""The usage of a running answer, with Finish and a larger budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.store.sql.conversation_table import Change
from rag.ui.kit.attempt import attempt
from rag.ui.kit.live import LiveRun
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView


def draw_usage(live: LiveRun, language: Language) -> None:
    for column, unit in zip(st.columns(3), ("calls", "tokens", "seconds"), strict=True):
        used, limit = live.used.get(unit, 0), live.most.get(unit, 0)
        if limit:
            text = f"{label(f'research_used_{unit}', language)} {used:,.0f} / {limit:,.0f}"
            column.progress(min(1.0, used / limit), text=f":small[{text}]")


def draw_run_controls(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    with st.container(horizontal=True, key=f"controls-{turn.id}"):
        finish = (app, turn, Change("finish"))
        icon = ":material/flag:"
        st.button(label("research_finish", language), icon=icon, key=f"finish-{turn.id}", on_click=change, args=finish)
        if live.most:
            more = (app, turn, Change("budget", live.most))
            text, icon = label("research_more", language), ":material/more_time:"
            st.button(text, icon=icon, key=f"more-{turn.id}", on_click=change, args=more)


def change(app: App, turn: TurnView, request: Change) -> None:
    """In a callback, change a run in progress; an error becomes a notice."""
    attempt(lambda: app.conversations.change(turn.id, request, session().owner))
