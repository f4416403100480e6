"""The move of a library to another embedding model: the buttons for both directions, and the progress."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import say
from rag.models.model_files import model_of_library
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.parts import moment
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.app.moves import LibraryMove

_POLL_SECONDS = 0.7


def draw_move_buttons(app: App, library: str, language: Language) -> None:
    """Draw the buttons; none while the library moves, or if it has the app's model and no earlier one."""
    info = next((info for info in app.libraries.infos() if info.name == library and info.embedding_model), None)
    move = app.moves.move(library)
    if info is None or (move and move.is_running):
        return
    current = app.libraries.current_model()
    if current and info.embedding_model != current:
        text = label("move_go", language, model=model_of_library(current))
        if st.button(text, icon=":material/upgrade:", key="move-go", help=label("move_go_help", language)):
            attempt(lambda: app.moves.begin(library, current))
            st.rerun()
    until = info.revertible_until
    if until and datetime.now(UTC) < until and info.previous_model != current:
        text = label("move_back", language, model=model_of_library(info.previous_model))
        names = {"model": model_of_library(info.embedding_model), "previous": model_of_library(info.previous_model)}
        hint = label("move_kept", language, until=moment(until.isoformat()), **names)
        if st.button(text, icon=":material/undo:", type="tertiary", key="move-back", help=hint):
            attempt(lambda: app.moves.go_back(library))
            st.rerun()


def follow_move(app: App, library: str, language: Language) -> None:
    """Draw the progress of the library's move, then the comparison of the two models."""
    move = app.moves.move(library)
    if move is not None:
        every = _POLL_SECONDS if move.is_running else None
        st.fragment(_draw_move, run_every=every)(app, library, language, live=move.is_running)


def _draw_move(app: App, library: str, language: Language, *, live: bool) -> None:
    move = app.moves.move(library)
    if move is None or (live and not move.is_running):
        st.rerun()
    with st.container(border=True, key="move", gap="small"):
        title = "move_done" if move.state == "done" else "move_title"
        st.markdown(f"**{label(title, language, model=escape_line(model_of_library(move.model)))}**")
        if move.is_running:
            st.progress(move.done / move.total if move.total else 0.0, _progress(move, language))
            return
        if move.notice:
            st.error(escape_line(say(move.notice, language)), icon=":material/error:")
        if move.state == "done" and move.asked:
            st.markdown(label("move_compared", language, found=move.found, asked=move.asked))
        if st.button(label("job_close", language), icon=":material/close:", type="tertiary", key="move-close"):
            app.moves.forget(library)
            st.rerun()


def _progress(move: LibraryMove, language: Language) -> str:
    if move.state == "comparing":
        return label("move_comparing", language)
    if not move.total:
        return label("transfer_begins", language)
    return label("move_building", language, done=f"{move.done:,}", total=f"{move.total:,}")
