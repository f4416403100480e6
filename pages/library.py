"""Library: its pages as a table or map, the details of one page, and maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, label_count
from rag.types import Notice, Page
from rag.ui.imports.jobs import follow_job
from rag.ui.kit.actions import draw_decision, draw_undo
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import current_language
from rag.ui.kit.parts import chunk_count, draw_empty_state, draw_page_head
from rag.ui.kit.session import current_library, session, set_param
from rag.ui.library.access import draw_access
from rag.ui.library.libraries import (
    draw_delete_library,
    draw_exchange,
    draw_import,
    draw_rename,
    draw_restorable_libraries,
    follow_transfer,
)
from rag.ui.library.map import draw_map, draw_view, map_of
from rag.ui.library.page_detail import draw_page
from rag.ui.library.page_list import (
    apply_subject,
    clear_selection,
    current_filter,
    draw_bulk,
    draw_page_table,
    draw_search,
    draw_states,
    draw_subjects,
    filter_pages,
    recheck,
    search_texts,
)
from rag.ui.library.upkeep import draw_move_buttons, draw_schedules, follow_move
from rag.ui.shell import open_app

if TYPE_CHECKING:
    from rag.app import App


def draw() -> None:
    language = current_language()
    app = open_app(language)
    library = current_library(app)
    with st.container(key="wide-page"):
        page = _load_page(app, library)
        if page is not None:
            follow_job(app, language)
            draw_page(app, library, page, language)
            return
        pages = app.library(library).pages()
        if pages:
            _draw_list(app, library, pages, language)
        else:
            _draw_empty(app, library, language)


def _load_page(app: App, library: str) -> Page | None:
    """Return the page selected in the URL, with its text; the hash of an alias selects it as well."""
    url_hash = st.query_params.get("page", "")
    if not url_hash:
        return None
    store = app.library(library)
    match = store.resolve([url_hash]).get(url_hash)
    page = store.page(match.url_hash) if match else None
    if page is None:
        set_param("page", "")
        session().notices.append(Notice("page_not_here"))
    return page


def _draw_empty(app: App, library: str, language: Language) -> None:
    draw_undo(app, library, language)
    follow_job(app, language)
    follow_transfer(app, language)
    draw_empty_state(label("library_empty_lead", language), language)
    with st.expander(label("import_title", language), icon=":material/unarchive:", type="compact"):
        draw_import(app, language)
    if app.roles.has(library, "editor"):
        with st.container(horizontal=True, gap="small", key="upkeep"):
            draw_rename(app, library, language)
            draw_access(app, library, language)
            draw_delete_library(app, library, language)
    draw_restorable_libraries(app, language)


def _draw_list(app: App, library: str, pages: list[Page], language: Language) -> None:
    draw_page_head(label("library_title", language), _lead(pages, language))
    _draw_actions(app, library, pages, language)
    draw_undo(app, library, language)
    follow_job(app, language)
    follow_transfer(app, language)
    follow_move(app, library, language)
    apply_subject()
    draw_search(pages, language)
    row = st.container(horizontal=True, gap="small", vertical_alignment="center", key="library-views")
    with row:
        colours = draw_view(language)
    page_map = (
        map_of(app, library, pages, language) if colours or current_filter().subject else app.page_maps.latest(library)
    )
    if page_map:
        draw_subjects(page_map.topics, language)
    criteria = current_filter()
    excluded = app.library(library).excluded_pages()
    matches = search_texts(app, library, criteria.words, language) if criteria.in_text and criteria.words else []
    within = page_map.pages_of(criteria.subject) if page_map and criteria.subject else None
    listed = filter_pages(pages, criteria, excluded, matches=matches, within=within)
    with row:
        draw_states(listed.counts, language)
    if colours:
        draw_map(page_map, pages, listed.pages, colours, language)
    elif listed.pages:
        is_editor = app.roles.has(library, "editor")
        st.caption(label("library_pick" if is_editor else "library_open", language))
        identity = f"{library}-{len(pages)}-{hash((criteria, tuple(matches)))}"
        opened, selected = draw_page_table(listed.pages, excluded, identity, language)
        if opened is not None:
            clear_selection()
            set_param("page", opened.url_hash)
            st.rerun()
        if is_editor and selected:
            draw_bulk(app, library, selected, excluded, language)
    else:
        text = label("library_no_match", language, text=escape_line(criteria.words)) if criteria.words else ""
        st.info(text or label("library_none_such", language), icon=":material/search_off:")


def _lead(pages: list[Page], language: Language) -> str:
    sites = len({page.site for page in pages if page.site})
    counts = {
        "chunks": chunk_count(sum(page.chunks for page in pages), language),
        "sites": label_count("library_site", "library_sites", sites, language),
    }
    return label_count("library_lead_one", "library_lead", len(pages), language, **counts)


def _draw_actions(app: App, library: str, pages: list[Page], language: Language) -> None:
    if not app.roles.has(library, "editor"):
        st.caption(f":material/visibility: {label('role_reads_only', language)}")
        return

    @st.dialog(label("library_clear_title", language))
    def confirm_clear() -> None:
        title = escape_line(app.libraries.title(library))
        st.markdown(label("library_clear_sentence", language, count=len(pages), library=title))
        sure = st.checkbox(label("library_clear_confirm", language), key="clear-sure")
        if draw_decision(label("library_clear", language), "clear-go", language, disabled=not sure):
            app.clear_library(library)
            session().notices.append(Notice("page_removed_done"))
            st.rerun()

    with st.container(horizontal=True, gap="small", key="upkeep"):
        web = any(page.source == "web" for page in pages)
        text = label("library_recheck_all", language)
        if st.button(text, icon=":material/sync:", key="recheck-all", disabled=not web):
            recheck(app, library, None)
        draw_schedules(app, library, pages, language)
        draw_exchange(app, library, language)
        draw_move_buttons(app, library, language)
        draw_rename(app, library, language)
        draw_access(app, library, language)
        if st.button(label("library_clear", language), icon=":material/delete_sweep:", type="tertiary", key="clear"):
            confirm_clear()
        draw_delete_library(app, library, language)
    draw_restorable_libraries(app, language)


draw()
