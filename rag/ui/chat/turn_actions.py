"""Actions on an answer: rate, ask again in another mode or with another model, correct a follow-up, pin, save."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from rag.conversations.export import plain_sources
from rag.conversations.feedback import REASONS
from rag.locales import Language, label, label_count
from rag.reasoning.questions import find_earlier_questions
from rag.types import Answer, Notice, Step
from rag.ui.chat.asking import ask, regenerate, start_answer
from rag.ui.chat.options import list_models
from rag.ui.chat.route import draw_route_menu
from rag.ui.kit.actions import attempt
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import close_popover, draw_button
from rag.ui.kit.session import MODES, NEED_MODEL, chat_in_use, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView

_LINKS = {"copy": "content_copy", "share": "link"}
_THUMBS = {1: 1, -1: 0, 0: None}
_DETAILS = ("reason", "comment", "correction")
_LONGEST_COMMENT = 4000
_MAX_MODELS = 8
_LONGEST_QUESTION, _PREVIEW = 600, 80


def _draw_thumbs(app: App, turn: TurnView, language: Language) -> None:
    """Draw two thumbs and, after a rating, a form for details."""
    key = f"thumbs-{turn.id}"
    st.session_state[key] = _THUMBS[turn.rating]
    st.feedback("thumbs", key=key, on_change=_rate, args=(app, turn))
    if not turn.rating:
        return
    more = st.popover(label("feedback_more", language), type="tertiary", key=f"more-{turn.id}", on_change="rerun")
    with more, st.container(key=f"feedback-{turn.id}"):
        if more.open:
            _draw_details(app, turn, language)


def _rate(app: App, turn: TurnView) -> None:
    thumb, owner = st.session_state[f"thumbs-{turn.id}"], session().owner
    if thumb is None:
        attempt(lambda: app.feedback.withdraw(turn.id, owner))
    else:
        attempt(lambda: app.feedback.rate(turn.id, 1 if thumb else -1, owner=owner))


def _draw_details(app: App, turn: TurnView, language: Language) -> None:
    feedback = app.feedback.details(turn.id, session().owner)
    with st.form(f"feedback-form-{turn.id}", border=False):
        if turn.rating < 0:
            reasons = ("", *REASONS)
            st.selectbox(
                label("feedback_reason", language),
                reasons,
                index=reasons.index(feedback["reason"]),
                format_func=lambda name: label(f"reason_{name or 'none'}", language),
                key=f"reason-{turn.id}",
            )
        for name in ("comment", "correction"):
            words, key = label(f"feedback_{name}", language), f"{name}-{turn.id}"
            st.text_area(words, value=feedback[name], key=key, max_chars=_LONGEST_COMMENT, height=70)
        text, key = label("feedback_send", language), f"feedback-go-{turn.id}"
        st.form_submit_button(text, type="primary", key=key, on_click=_send, args=(app, turn))


def _send(app: App, turn: TurnView) -> None:
    close_popover(f"more-{turn.id}")
    details = {name: str(st.session_state.get(f"{name}-{turn.id}") or "") for name in _DETAILS}
    rating: Literal[-1, 1] = 1 if turn.rating > 0 else -1
    owner, done = session().owner, Notice("feedback_sent")
    attempt(lambda: app.feedback.rate(turn.id, rating, owner=owner, **details), done)


def draw_feedback_export(app: App, library: str, language: Language) -> None:
    """Draw the number of rated answers, and downloads of test cases that are created on demand."""
    page_of, owner = app.page, session().owner
    rows = app.feedback.questions(library, page_of, owner)
    if not rows:
        st.caption(label("feedback_none", language))
        return
    good = sum(row["rating"] > 0 for row in rows)
    count = label_count("feedback_count_one", "feedback_count", len(rows), language)
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
            _draw_thumbs(app, turn, language)
        if turn.can_regenerate:
            _draw_regenerate(app, turn, language)
            if turn.answer is not None and turn.answer.citations:
                save = partial(app.save_note, turn.id, library=library, owner=session().owner, language=language)
                text, hint, done = label("note_save", language), label("note_save_hint", language), Notice("note_saved")
                draw_button(text, "bookmark_add", f"note-{turn.id}", attempt, save, done, type="tertiary", help=hint)
            pin = partial(app.conversations.pin_answer, turn.id, not turn.pinned, session().owner)
            name, icon = ("talk_unpin", "keep_off") if turn.pinned else ("talk_pin", "keep")
            text, hint = label(name, language), label("answer_pin_hint", language)
            draw_button(text, icon, f"pin-{turn.id}", attempt, pin, type="tertiary", help=hint)
        if not turn.route:
            draw_route_menu(app, library, turn, language)
        # page.js handles these two without a redraw.
        links = (f"[:material/{icon}: {label(name, language)}](#{name}-{turn.id})" for name, icon in _LINKS.items())
        st.markdown(" ".join(links), width="content")
        if turn.answer is not None and (sources := plain_sources(turn.answer, language)):
            st.html(f'<div class="copied-sources" id="sources-{turn.id}">{html.escape(sources)}</div>')


def draw_again(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw a button that asks again after an incomplete answer."""
    text = label("ask_again", language)
    draw_button(text, "replay", f"again-{turn.id}", start_answer, app, library, turn.question)


def draw_suggestions(app: App, library: str, turn: TurnView, language: Language) -> None:
    """Draw follow-up questions as buttons; they arrive some time after the answer."""
    if not turn.suggestions:
        return
    st.markdown(f":gray[{label('next_questions', language)}]")
    with st.container(key="suggestions", gap="xsmall"):
        for place, question in enumerate(turn.suggestions):
            key = f"suggestion-{place}-{turn.id}"
            draw_button(escape_line(question), "arrow_outward", key, start_answer, app, library, question)


def _draw_regenerate(app: App, turn: TurnView, language: Language) -> None:
    """Draw the menu of modes and models; the service's models are requested when it opens."""
    name, key = label("regenerate", language), f"regenerate-{turn.id}"
    menu = st.popover(name, icon=":material/replay:", type="tertiary", key=key, on_change="rerun")
    if not menu.open:
        return
    chat = chat_in_use(app)
    with menu, st.container(key=f"regenerate-choices-{turn.id}", gap=None):
        _draw_regenerate_choice(app, turn, "same", "replay", label("regenerate_same", language))
        if turn.is_plain:
            for mode in MODES:
                if mode != turn.settings.get("mode") and (chat is not None or mode not in NEED_MODEL):
                    words = label("regenerate_mode", language, mode=label(f"mode_{mode}", language))
                    _draw_regenerate_choice(app, turn, mode, "tune", words, mode=mode)
        models = list_models(app, chat, language) if chat and app.chats.own_allowed else []
        others = [model for model in models if chat and model != chat.model]
        for place, model in enumerate(others[:_MAX_MODELS]):
            words = label("regenerate_model", language, model=escape_line(model))
            _draw_regenerate_choice(app, turn, f"model-{place}", "smart_toy", words, model=model)


def _draw_regenerate_choice(app: App, turn: TurnView, name: str, icon: str, words: str, **options: str) -> None:
    choose = partial(_regenerate, app, turn, **options)
    draw_button(words, icon, f"regenerate-{name}-{turn.id}", choose, type="tertiary", width="stretch")


def _regenerate(app: App, turn: TurnView, **options: str) -> None:
    close_popover(f"regenerate-{turn.id}")
    regenerate(app, turn, **options)


def followup_line(question: str, standalone: str, steps: Sequence[Step], language: Language) -> str:
    """Return a line on how a follow-up was searched: rewritten or with earlier questions; empty for other questions."""
    if standalone:
        return label("understood", language, question=escape_line(standalone)) if standalone != question else ""
    previous = reversed(find_earlier_questions(steps))
    questions = " · ".join(escape_line(shorten(" ".join(earlier.split()), _PREVIEW)) for earlier in previous)
    return label("searched_with", language, questions=questions) if questions else ""


def draw_followup(app: App, library: str, turn: TurnView, answer: Answer, language: Language) -> None:
    """Draw a popover with the follow-up as searched and a form that corrects it; nothing for a complete question."""
    line = followup_line(turn.question, answer.standalone, answer.steps, language)
    if not line:
        return
    key, icon = f"correct-{turn.id}", ":material/subdirectory_arrow_right:"
    with (
        st.container(key=f"understood-{turn.id}"),
        st.popover(label("followup", language), icon=icon, type="tertiary", key=key, on_change="rerun"),
    ):
        st.caption(line)
        with st.form(f"correct-form-{turn.id}", border=False):
            correction = st.text_area(
                label("understood_meant", language),
                value=answer.standalone or turn.question,
                key=f"meant-{turn.id}",
                max_chars=_LONGEST_QUESTION,
                height="content",
            )
            text, go = label("understood_again", language), f"meant-go-{turn.id}"
            submitted = st.form_submit_button(text, type="primary", key=go, on_click=close_popover, args=(key,))
        if submitted and correction and correction.strip():
            ask(app, library, turn.question, standalone=" ".join(correction.split()))
