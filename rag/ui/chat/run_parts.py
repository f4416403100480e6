"""Parts of runs with a plan or a tree: usage, budget, controls and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.locales import Language, label, label_count, say, sentences
from rag.store.sql.conversation_table import Change
from rag.types import Notice, Usage
from rag.ui.kit.actions import attempt
from rag.ui.kit.live import LiveRun
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.session import session

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


def usage_parts(usage: Usage, language: Language) -> list[str]:
    """Return `3 calls`, `1,240 tokens`, and the price if there is one; empty if no model was called."""
    if not usage.calls:
        return []
    tokens = usage.tokens_in + usage.tokens_out
    key = "usage_tokens_about" if usage.estimated else "usage_tokens"
    parts = [
        label_count("usage_call", "usage_calls", usage.calls, language),
        label(key, language, count=f"{tokens:,}"),
    ]
    return parts if usage.money is None else [*parts, label("usage_money", language, money=_format_price(usage.money))]


def _format_price(money: float) -> str:
    """Return an amount with two decimals, or with two significant digits if it is below 1."""
    if money >= 1 or money <= 0:
        return f"{money:.2f}"
    text = f"{money:.2g}"
    return text if "e" not in text else "< 0.0001"


def note_text(note: Mapping[str, Any], language: Language) -> str:
    """Return the sentence of a note, escaped; empty if its code has none."""
    has_text = note["code"] in sentences("en")
    return escape_line(say(Notice(note["code"], note.get("params", {})), language)) if has_text else ""
