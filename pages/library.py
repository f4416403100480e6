"""Library: the pages of a library, each with its text and its chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from rag.types import Page
from rag.ui.language import current_language
from rag.ui.navigation import go
from rag.ui.page_detail import draw_page
from rag.ui.parts import chunk_count, language_name, moment, page_head
from rag.ui.session import current_library, session
from rag.ui.shell import open_app
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App


def draw() -> None:
    language = current_language()
    app = open_app(language)
    library = current_library(app)
    pages = app.library(library).pages()
    with st.container(key="wide-page"):
        if not pages:
            _empty(language)
            return
        chunks = chunk_count(sum(page.chunks for page in pages), language)
        lead = counted("library_lead_one", "library_lead", len(pages), language, chunks=chunks)
        page_head(label("library_title", language), lead)
        chosen = _table(pages, language)
        if chosen is not None:
            draw_page(app, library, chosen, language)
        _clear_button(app, library, len(pages), language)


def _empty(language: Language) -> None:
    with st.container(key="empty", horizontal_alignment="center"):
        st.markdown(f"### {label('library_empty_title', language)}", anchors=False)
        st.markdown(label("library_empty_lead", language))
        if st.button(label("empty_add", language), type="primary", icon=":material/add:", key="empty-add"):
            go("add")


def _table(pages: list[Page], language: Language) -> Page | None:
    """Draw the table and return the page whose row is selected."""
    wanted = st.text_input(
        label("library_filter", language),
        key="library-filter",
        placeholder=label("library_filter", language),
        icon=":material/search:",
        label_visibility="collapsed",
        live=True,
    )
    shown = [page for page in pages if _matches(page, wanted or "")]
    if not shown:
        st.info(label("library_no_match", language, text=wanted), icon=":material/search_off:")
        return None
    state = st.dataframe(
        _rows(shown, language),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        # Rows are selected by their place: another filter or order is another table.
        key=f"table-{language}-{len(pages)}-{wanted}",
        column_config=_columns(language),
        height=min(35 * (len(shown) + 1) + 3, 460),
    )
    rows: list[int] = state["selection"]["rows"]
    if rows and rows[0] < len(shown):
        return shown[rows[0]]
    st.caption(label("library_pick", language))
    return None


def _matches(page: Page, wanted: str) -> bool:
    text = f"{page.title} {page.site} {page.url}".casefold()
    return all(part in text for part in wanted.casefold().split())


def _rows(pages: list[Page], language: Language) -> list[dict[str, object]]:
    return [
        {
            "title": page.title or page.url,
            "site": page.site,
            "language": language_name(page.language, language),
            "chunks": page.chunks,
            "added": moment(page.added_at),
        }
        for page in pages
    ]


def _columns(language: Language) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        "title": text(label("column_title", language), width="medium"),
        "site": text(label("column_site", language), width="small"),
        "language": text(label("column_language", language), width="small"),
        "chunks": number(label("column_chunks", language), width="small"),
        "added": text(label("column_added", language), width="small"),
    }


def _clear_button(app: App, library: str, count: int, language: Language) -> None:
    st.space("small")
    if st.button(label("library_clear", language), icon=":material/delete_sweep:", type="tertiary", key="clear"):
        _confirm_clear(app, library, count, language)


def _confirm_clear(app: App, library: str, count: int, language: Language) -> None:
    @st.dialog(label("library_clear_title", language))
    def ask() -> None:
        st.markdown(label("library_clear_sentence", language, count=count, library=library))
        sure = st.checkbox(label("library_clear_confirm", language), key="clear-sure")
        if st.button(label("library_clear", language), type="primary", disabled=not sure, key="clear-go"):
            app.library(library).clear()
            session().notes.append(label("page_removed", language))
            st.rerun()

    ask()


draw()
