"""Thumbs under an answer, and behind them a reason, a remark and the right answer; and all of it as test cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from rag.conversations.feedback import REASONS
from rag.ui.doing import attempt
from rag.ui.parts import close
from rag.ui.session import session
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_THUMBS = {1: 1, -1: 0, 0: None}
_DETAILS = ("reason", "comment", "correction")
_LONGEST = 4000


def draw_thumbs(app: App, turn: TurnView, language: Language) -> None:
    """Two thumbs; once one is given, a form for more."""
    key = f"thumbs-{turn.id}"
    st.session_state[key] = _THUMBS[turn.rating]
    st.feedback("thumbs", key=key, on_change=_take, args=(app, turn, language))
    if not turn.rating:
        return
    more = st.popover(label("feedback_more", language), type="tertiary", key=f"more-{turn.id}", on_change="rerun")
    with more, st.container(key=f"feedback-{turn.id}"):
        if more.open:
            _draw_form(app, turn, language)


def _take(app: App, turn: TurnView, language: Language) -> None:
    thumb = st.session_state[f"thumbs-{turn.id}"]
    owner = session().owner
    if thumb is None:
        attempt(lambda: app.feedback.withdraw(turn.id, owner), language)
    else:
        attempt(lambda: app.feedback.give(turn.id, 1 if thumb else -1, owner=owner), language)


def _draw_form(app: App, turn: TurnView, language: Language) -> None:
    said = app.feedback.given(turn.id, session().owner)
    with st.form(f"feedback-form-{turn.id}", border=False):
        if turn.rating < 0:
            st.selectbox(
                label("feedback_reason", language),
                ("", *REASONS),
                index=("", *REASONS).index(said["reason"]),
                format_func=lambda name: label(f"reason_{name or 'none'}", language),
                key=f"reason-{turn.id}",
            )
        for name in ("comment", "correction"):
            words, key = label(f"feedback_{name}", language), f"{name}-{turn.id}"
            st.text_area(words, value=said[name], key=key, max_chars=_LONGEST, height=70)
        st.form_submit_button(
            label("feedback_send", language),
            type="primary",
            key=f"feedback-go-{turn.id}",
            on_click=_send,
            args=(app, turn, language),
        )


def _send(app: App, turn: TurnView, language: Language) -> None:
    close(f"more-{turn.id}")
    entered = {name: str(st.session_state.get(f"{name}-{turn.id}") or "") for name in _DETAILS}
    rating: Literal[-1, 1] = 1 if turn.rating > 0 else -1
    owner, done = session().owner, label("feedback_sent", language)
    attempt(lambda: app.feedback.give(turn.id, rating, owner=owner, **entered), language, done)


def draw_feedback_export(app: App, library: str, language: Language) -> None:
    """How many answers this person judged, and two files of test cases, made only once asked for."""
    page_of, owner = app.library(library).page, session().owner
    rows = app.feedback.questions(library, page_of, owner)
    if not rows:
        st.caption(label("feedback_none", language))
        return
    good = sum(row["rating"] > 0 for row in rows)
    count = counted("feedback_count_one", "feedback_count", len(rows), language)
    st.markdown(f"{count} · :material/thumb_up: {good} · :material/thumb_down: {len(rows) - good}")
    files = st.expander(
        label("feedback_files", language), icon=":material/download:", type="compact", key="feedback-files",
        on_change="rerun",
    )  # fmt: skip
    if files.open:
        with files, st.container(horizontal=True, gap="small"):
            _draw_download("questions", rows)
            _draw_download("pages", app.feedback.pages(library, page_of, owner))


def _draw_download(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file = f"{name}.jsonl"
    st.download_button(
        file, text, file_name=file, mime="application/jsonl", icon=":material/download:", on_click="ignore", key=file
    )
