"""The dialog that confirms deleting pages from a library, and Undo after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, label_count
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.session import person_id, set_param

if TYPE_CHECKING:
    from rag.app import App
    from rag.types import Page

_MAX_NAMES = 5
_UNDO = "removal"


def confirm_removal(
    app: App, library: str, pages: Sequence[Page], language: Language, key: str, after: Callable[[], object] = bool
) -> None:
    """Draw a dialog with the pages and a button that deletes them; then `after` is called."""

    @st.dialog(label_count("page_remove_title", "pages_remove_title", len(pages), language))
    def ask() -> None:
        names = [f"- {escape_line(page.title or page.url)}" for page in pages[:_MAX_NAMES]]
        if len(pages) > _MAX_NAMES:
            names.append(f"- {label('pages_remove_more', language, count=len(pages) - _MAX_NAMES)}")
        st.markdown("\n".join(names))
        st.markdown(label("page_remove_sentence", language))
        if draw_decision(label("library_remove_go", language), f"{key}-remove-go", language):
            delete_pages(app, library, [page.url_hash for page in pages])
            after()
            st.rerun()

    ask()


def draw_decision(words: str, key: str, language: Language, *, disabled: bool = False) -> bool:
    """Draw Cancel and the red button of a dialog that deletes; return whether the latter was clicked."""
    with st.container(horizontal=True, horizontal_alignment="right", key=f"danger-{key}", gap="small"):
        if st.button(label("dialog_cancel", language), key=f"cancel-{key}"):
            st.rerun()
        return st.button(words, type="primary", key=key, disabled=disabled)


def delete_pages(app: App, library: str, url_hashes: Sequence[str]) -> None:
    """Delete pages, and offer Undo when the page is drawn next."""
    token = app.removals.remember(library, url_hashes)
    app.remove_pages(library, url_hashes)
    st.session_state[_UNDO] = (token, library, len(url_hashes))


def draw_undo(app: App, library: str, language: Language) -> None:
    """Draw the last deletion in this library with Undo; nothing once it is closed."""
    token, home, count = st.session_state.get(_UNDO, ("", "", 0))
    if home != library:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="removal-undo", gap="small"):
        st.markdown(
            f":material/delete: {label_count('pages_removed_one', 'pages_removed', count, language)}", width="content"
        )
        if token and st.button(label("remembered_undo", language), icon=":material/undo:", key="removal-undo-go"):
            st.session_state.pop(_UNDO)
            attempt(lambda: set_param("job", app.removals.undo(token, person_id())))
            st.rerun()
        if st.button(label("job_close", language), icon=":material/close:", type="tertiary", key="removal-undo-close"):
            st.session_state.pop(_UNDO)
            st.rerun()
