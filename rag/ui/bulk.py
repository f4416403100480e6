"""What is done with several pages at once: looked at again, left out of answers or let in, removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Page
from rag.ui.doing import attempt
from rag.ui.escape import escape_line
from rag.ui.library_table import forget_picks
from rag.ui.session import session, set_param, whose
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App

_NAMED = 5


def draw_bulk(app: App, library: str, ticked: Sequence[Page], left_out: Collection[str], language: Language) -> None:
    """Buttons for the ticked pages."""
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="bulk", gap="small"):
        st.markdown(f"**{counted('bulk_one', 'bulk', len(ticked), language)}**", width="content")
        draw_page_actions(app, library, ticked, left_out, language, key="bulk")


def draw_page_actions(
    app: App, library: str, pages: Sequence[Page], left_out: Collection[str], language: Language, *, key: str
) -> None:
    """Look again, leave out or let in, remove: for these pages, within the row that is open."""
    hashes = [page.url_hash for page in pages]
    web = [page.url_hash for page in pages if page.source == "web"]
    text = label("page_recheck", language)
    hint = None if web else label("page_recheck_no", language)
    if st.button(text, icon=":material/sync:", key=f"{key}-recheck", disabled=not web, help=hint):
        recheck(app, library, web, language, title=pages[0].title if len(pages) == 1 else "")
    if any(one not in left_out for one in hashes):
        text, hint = label("page_leave_out", language), label("page_leave_out_hint", language)
        if st.button(text, icon=":material/visibility_off:", key=f"{key}-leave-out", help=hint):
            _leave_out(app, library, hashes, True, language)
    if any(one in left_out for one in hashes):
        text = label("page_let_in", language)
        if st.button(text, icon=":material/visibility:", key=f"{key}-let-in"):
            _leave_out(app, library, hashes, False, language)
    if st.button(label("library_remove_go", language), icon=":material/delete:", key=f"{key}-remove"):
        _confirm_remove(app, library, pages, language, key)


def recheck(
    app: App, library: str, hashes: Sequence[str] | None, language: Language, *, site: str = "", title: str = ""
) -> None:
    """Start another look at these pages, or at all, and show how it goes."""

    def begin() -> None:
        set_param("job", app.imports.jobs.recheck(library, hashes, site or None, owner=whose(), title=title))

    attempt(begin, language)
    st.rerun()


def _leave_out(app: App, library: str, hashes: Sequence[str], out: bool, language: Language) -> None:
    done = label("pages_left_out" if out else "pages_let_in", language)
    attempt(lambda: app.library(library).set_left_out(hashes, out), language, done)
    st.rerun()


def _confirm_remove(app: App, library: str, pages: Sequence[Page], language: Language, key: str) -> None:
    @st.dialog(counted("page_remove_title", "pages_remove_title", len(pages), language))
    def ask() -> None:
        names = [f"- {escape_line(page.title or page.url)}" for page in pages[:_NAMED]]
        if len(pages) > _NAMED:
            names.append(f"- {label('pages_remove_more', language, count=len(pages) - _NAMED)}")
        st.markdown("\n".join(names))
        st.markdown(label("page_remove_sentence", language))
        if st.button(label("library_remove_go", language), type="primary", key=f"{key}-remove-go"):
            app.library(library).remove([page.url_hash for page in pages])
            forget_picks()
            set_param("page", "")
            session().notes.append(label("page_removed", language))
            st.rerun()

    ask()
