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


def draw_used(live: LiveRun, language: Language) -> None:
    for column, unit in zip(st.columns(3), ("calls", "tokens", "seconds"), strict=True):
        used, most = live.used.get(unit, 0), live.most.get(unit, 0)
        if most:
            told = f"{label(f'research_used_{unit}', language)} {used:,.0f} / {most:,.0f}"
            column.progress(min(1.0, used / most), text=f":small[{told}]")


def draw_end_or_more(app: App, turn: TurnView, live: LiveRun, language: Language) -> None:
    with st.container(horizontal=True, key=f"controls-{turn.id}"):
        finish = (app, turn, Change("finish"))
        icon = ":material/flag:"
        st.button(label("research_finish", language), icon=icon, key=f"finish-{turn.id}", on_click=change, args=finish)
        if live.most:
            more = (app, turn, Change("budget", live.most))
            told, icon = label("research_more", language), ":material/more_time:"
            st.button(told, icon=icon, key=f"more-{turn.id}", on_click=change, args=more)


def change(app: App, turn: TurnView, wish: Change) -> None:
    """For callbacks: change a run in progress; an error is shown as a notice."""
    attempt(lambda: app.conversations.change(turn.id, wish, session().owner))
