"""Actions on an answer: rate, edit the question, ask a follow-up, ask again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from rag.conversations.feedback import REASONS
from rag.types import Notice
from rag.ui.chat.asking import ask_first
from rag.ui.chat.regenerate import draw_regenerate
from rag.ui.chat.way import draw_route_menu
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import close
from rag.ui.kit.session import session
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LINKS = {"copy": "content_copy", "share": "link"}
_THUMBS = {1: 1, -1: 0, 0: None}
_DETAILS = ("reason", "comment", "correction")
_LONGEST = 4000


def draw_thumbs(app: App, turn: TurnView, language: Language) -> None:
    """Draw two thumbs and, after a rating, a form for details."""
    key = f"thumbs-{turn.id}"
    st.session_state[key] = _THUMBS[turn.rating]
    st.feedback("thumbs", key=key, on_change=_rate, args=(app, turn))
    if not turn.rating:
        return
    more = st.popover(label("feedback_more", language), type="tertiary", key=f"more-{turn.id}", on_change="rerun")
    with more, st.container(key=f"feedback-{turn.id}"):
        if more.open:
            _draw_form(app, turn, language)


def _rate(app: App, turn: TurnView) -> None:
    thumb = st.session_state[f"thumbs-{turn.id}"]
    owner = session().owner
    if thumb is None:
        attempt(lambda: app.feedback.withdraw(turn.id, owner))
    else:
        attempt(lambda: app.feedback.give(turn.id, 1 if thumb else -1, owner=owner))


def _draw_form(app: App, turn: TurnView, language: Language) -> None:
    feedback = app.feedback.given(turn.id, session().owner)
    with st.form(f"feedback-form-{turn.id}", border=False):
        if turn.rating < 0:
            st.selectbox(
                label("feedback_reason", language),
                ("", *REASONS),
                index=("", *REASONS).index(feedback["reason"]),
                format_func=lambda name: label(f"reason_{name or 'none'}", language),
                key=f"reason-{turn.id}",
            )
        for name in ("comment", "correction"):
            words, key = label(f"feedback_{name}", language), f"{name}-{turn.id}"
            st.text_area(words, value=feedback[name], key=key, max_chars=_LONGEST, height=70)
        st.form_submit_button(
            label("feedback_send", language),
            type="primary",
            key=f"feedback-go-{turn.id}",
            on_click=_send,
            args=(app, turn),
        )


def _send(app: App, turn: TurnView) -> None:
    close(f"more-{turn.id}")
    details = {name: str(st.session_state.get(f"{name}-{turn.id}") or "") for name in _DETAILS}
    rating: Literal[-1, 1] = 1 if turn.rating > 0 else -1
    owner, done = session().owner, Notice("feedback_sent")
    attempt(lambda: app.feedback.give(turn.id, rating, owner=owner, **details), done)


def draw_feedback_export(app: App, library: str, language: Language) -> None:
    """Draw the number of rated answers, and downloads of test cases that are created on demand."""
    page_of, owner = app.page, session().owner
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


def draw_actions(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw a row below the answer: rating, other actions, and its text and link to copy."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"actions-{turn.id}", gap="small"):
        if turn.state == "done":
            draw_thumbs(app, turn, language)
        if turn.can_regenerate:
            draw_regenerate(app, turn, language)
            if turn.answer is not None and turn.answer.citations:
                _draw_save(app, library, turn, language)
            _draw_pin(app, turn, language)
        if not turn.route:
            draw_route_menu(app, library, turn, language)
        # page.js handles these two without a redraw.
        links = (f"[:material/{icon}: {label(name, language)}](#{name}-{turn.id})" for name, icon in _LINKS.items())
        st.markdown(" ".join(links), width="content")


def _draw_pin(app: App, turn: TurnView, language: Language) -> None:
    st.button(
        label("talk_unpin" if turn.pinned else "talk_pin", language),
        icon=":material/keep_off:" if turn.pinned else ":material/keep:",
        type="tertiary",
        key=f"pin-{turn.id}",
        help=label("answer_pin_hint", language),
        on_click=_pin,
        args=(app, turn),
    )


def _pin(app: App, turn: TurnView) -> None:
    attempt(lambda: app.conversations.pin_answer(turn.id, not turn.pinned, session().owner))


def _draw_save(app: App, library: str, turn: TurnView, language: Language) -> None:
    st.button(
        label("note_save", language),
        icon=":material/bookmark_add:",
        type="tertiary",
        key=f"note-{turn.id}",
        help=label("note_save_hint", language),
        on_click=_save,
        args=(app, library, turn, language),
    )


def _save(app: App, library: str, turn: TurnView, language: Language) -> None:
    owner = session().owner
    attempt(lambda: app.save_note(turn.id, library=library, owner=owner, language=language), Notice("note_saved"))


def draw_again(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw a button that asks again after an incomplete answer."""
    key, icon = f"again-{turn.id}", ":material/replay:"
    st.button(label("ask_again", language), icon=icon, key=key, on_click=ask_first, args=(app, library, turn.question))


def draw_suggestions(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw follow-up questions as buttons; they arrive some time after the answer."""
    if not turn.suggestions:
        return
    st.markdown(f":gray[{label('next_questions', language)}]")
    with st.container(key="suggestions", gap="xsmall"):
        for place, question in enumerate(turn.suggestions):
            key, icon = f"suggestion-{place}-{turn.id}", ":material/arrow_outward:"
            st.button(escape_line(question), key=key, icon=icon, on_click=ask_first, args=(app, library, question))
