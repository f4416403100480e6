"""Actions and checks that show a failure as one sentence on the page, and deletions with undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import streamlit as st

from rag.errors import RagError, StoreUnavailableError
from rag.locales import Language, label, label_count, say
from rag.types import Notice, Page
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.parts import draw_button
from rag.ui.kit.session import person_id, session, set_param

if TYPE_CHECKING:
    from rag.app import App

T = TypeVar("T")

_MAX_NAMES, _LONGEST = 5, 60
_UNDO, _RESTORING = "removal", "restoring"


def attempt(action: Callable[[], object], done: Notice | None = None) -> bool:
    """Run `action` and return whether it succeeded; the next draw of the page shows its error, or else `done`."""
    try:
        action()
    except RagError as error:
        session().notices.append(error.notice)
        return False
    if done:
        session().notices.append(done)
    return True


def attempt_and_rerun(action: Callable[[], object], done: Notice | None = None) -> NoReturn:
    """Run `action` like `attempt`, and redraw the page."""
    attempt(action, done)
    st.rerun()


def attempt_here(action: Callable[[], object], language: Language) -> bool:
    """Run `action` and return whether it succeeded; an error is shown in place, such as below an invalid field."""
    try:
        action()
    except RagError as error:
        draw_failure(error.notice, language)
        return False
    return True


def draw_failure(notice: Notice, language: Language) -> None:
    """Show an error's sentence in place."""
    st.error(escape_line(say(notice, language)), icon=":material/error:")


def none_if_unavailable(ask: Callable[[], T]) -> T | None:
    """Return the result of `ask`; None while the database is unreachable, which the top of the page shows."""
    try:
        return ask()
    except StoreUnavailableError:
        return None


def confirm_removal(
    app: App, library: str, pages: Sequence[Page], language: Language, key: str, after: Callable[[], object] = bool
) -> None:
    """Draw a dialog that lists the pages and, once confirmed, deletes them, offers Undo and calls `after`."""

    @st.dialog(label_count("page_remove_title", "pages_remove_title", len(pages), language))
    def ask() -> None:
        names = [f"- {escape_line(page.title or page.url)}" for page in pages[:_MAX_NAMES]]
        if len(pages) > _MAX_NAMES:
            names.append(f"- {label('pages_remove_more', language, count=len(pages) - _MAX_NAMES)}")
        st.markdown("\n".join(names))
        st.markdown(label("page_remove_sentence", language))
        if draw_decision(label("library_remove_go", language), f"{key}-remove-go", language):
            url_hashes = [page.url_hash for page in pages]
            token = app.deletions.record(library, url_hashes)
            app.remove_pages(library, url_hashes)
            st.session_state[_UNDO] = (token, library, len(url_hashes), pages[0].title or pages[0].url)
            after()
            st.rerun()

    ask()


def draw_decision(words: str, key: str, language: Language, *, disabled: bool = False) -> bool:
    """Draw Cancel and the red button of a delete dialog; return whether the red one was clicked."""
    with st.container(horizontal=True, horizontal_alignment="right", key=f"danger-{key}", gap="small"):
        if st.button(label("dialog_cancel", language), key=f"cancel-{key}"):
            st.rerun()
        return st.button(words, type="primary", key=key, disabled=disabled)


def draw_undo(app: App, library: str, language: Language) -> None:
    """Draw the last deletion in this library with Undo; nothing once it is closed."""
    token, undo_library, count, first = st.session_state.get(_UNDO, ("", "", 0, ""))
    if undo_library != library:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="removal-undo", gap="small"):
        title = escape_line(shorten(first, _LONGEST))
        text = label_count("pages_removed_one", "pages_removed", count, language, title=title)
        st.markdown(f":material/delete: {text}", width="content")
        if token and draw_button(label("remembered_undo", language), "undo", "removal-undo-go"):
            st.session_state.pop(_UNDO)
            attempt_and_rerun(lambda: _restore(app, token))
        if draw_button(label("job_close", language), "close", "removal-undo-close", type="tertiary"):
            st.session_state.pop(_UNDO)
            st.rerun()


def _restore(app: App, token: str) -> None:
    """Re-import the deleted pages and follow the import. Raises StoreError."""
    job_id = app.deletions.undo(token, person_id())
    st.session_state[_RESTORING] = job_id
    set_param("job", job_id)


def is_restore(job_id: str) -> bool:
    """Return whether an import undoes this tab's last deletion."""
    return bool(job_id) and st.session_state.get(_RESTORING) == job_id
