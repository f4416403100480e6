"""Memory notes: shown with their message, and listed, edited and deleted in Settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.conversations.remembered import LONGEST, Note
from rag.locales import Language, label
from rag.ui.kit.actions import attempt
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.session import person_id, session

if TYPE_CHECKING:
    from rag.app import App
    from rag.conversations.conversations import TurnView


def draw_saved_note(app: App, turn: TurnView, language: Language) -> None:
    """Draw the note that a message saved to memory, with Undo; nothing for other messages."""
    note_id = turn.settings.get("remembered")
    if not note_id:
        return
    note = next((one for one in app.remembered.notes(person_id()) if one.id == note_id), None)
    with st.container(horizontal=True, vertical_alignment="center", key=f"remembered-{turn.id}", gap="small"):
        text = label("remembered_kept", language, note=escape_line(note.text)) if note else ""
        st.caption(f":material/bookmark: {text or label('remembered_gone', language)}", width="content")
        if note:
            undo, key = label("remembered_undo", language), f"remembered-undo-{turn.id}"
            st.button(undo, type="tertiary", key=key, on_click=_forget, args=(app, note))


def draw_memory(app: App, language: Language) -> None:
    """Draw all of this person's notes, each in a separate form."""
    st.markdown(f"## {label('settings_remembered', language)}", anchors=False)
    st.markdown(label("settings_remembered_lead", language))
    notes = app.remembered.notes(person_id())
    if not notes:
        st.caption(label("remembered_none", language))
        return
    if not session().owner:
        st.caption(label("remembered_browser", language))
    if not session().chat and not app.settings.has_chat_model:
        st.caption(label("remembered_no_model", language))
    for number, note in enumerate(notes, 1):
        _draw_note(app, note, number, language)


def _draw_note(app: App, note: Note, number: int, language: Language) -> None:
    key = f"note-{note.id}"
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"row-{key}", gap="small"):
        st.text_input(label("remembered_note", language, number=number), note.text, key=key, max_chars=LONGEST)
        save, forget = label("remembered_save", language), label("remembered_forget", language)
        st.button(save, key=f"save-{key}", on_click=_save, args=(app, note))
        st.button(forget, type="tertiary", key=f"forget-{key}", on_click=_forget, args=(app, note))


def _save(app: App, note: Note) -> None:
    text, lasting = str(st.session_state[f"note-{note.id}"] or ""), bool(session().owner)
    attempt(lambda: app.remembered.change(person_id(), note.id, text, lasting=lasting))


def _forget(app: App, note: Note) -> None:
    attempt(lambda: app.remembered.forget(person_id(), note.id))
