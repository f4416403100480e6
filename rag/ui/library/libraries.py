"""The selected library, and actions on libraries: create, rename, delete, restore, export and import as a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError, StoreUnavailableError
from rag.locales import Language, label, say
from rag.types import Notice
from rag.ui.kit.actions import attempt, attempt_and_rerun, attempt_here, draw_decision, draw_failure
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import draw_button, format_time, page_count
from rag.ui.kit.session import (
    Scope,
    Session,
    count_pages,
    current_library,
    mark_click,
    reset_count,
    reset_widgets,
    session,
    set_conversation,
    set_param,
)
from rag.ui.serving.uploads import release_uploads

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from rag.app import App
    from rag.app.transfer import Transfer

_LONGEST_TITLE = 60
_POLL_SECONDS = 0.7
_SUFFIX = "pagelight"
_TYPES = (f".{_SUFFIX}", ".zip")
_BROWSER_BYTES = 400_000_000
"""Downloads are served from memory; for a larger file the page shows its path."""


def select_existing_library(app: App, language: Language) -> None:
    """Select a library that exists: if the tab's does not, say so and switch to the default, or else the first."""
    state = session()
    try:
        app.libraries.check(current_library(app))
    except StoreUnavailableError:
        return
    except RagError as error:
        others = [info.name for info in app.libraries.infos()]
        default = app.settings.rag_library
        _use_library(others[0] if others and default not in others else default)
        state.missing_library_notice = error.notice
    if state.missing_library_notice:
        st.warning(escape_line(say(state.missing_library_notice, language)), icon=":material/info:")


def _use_library(name: str) -> None:
    """Switch this tab to another library, and reset its state of the previous one."""
    _select(session(), name)
    set_conversation("")
    for param in ("job", "find", "page"):
        set_param(param, "")


def _select(state: Session, name: str) -> None:
    state.library, state.scope, state.conversation = name, Scope(), ""
    state.search = state.missing_library_notice = None


def draw_library_picker(app: App, language: Language) -> None:
    """Draw the choice of libraries, and the button that creates one."""
    current = current_library(app)
    titles = {info.name: info.display_name for info in app.libraries.infos()}
    titles.setdefault(current, current)  # not listed while the database is unreachable
    # Widget keys contain the library, so that a late click changes nothing in another one.
    picker = f"library-picker-{current}"
    st.selectbox(
        label("library", language),
        list(titles),
        list(titles).index(current),
        key=picker,
        format_func=lambda name: titles.get(name, name),
        help=label("library_help", language),
        on_change=lambda: _use_library(st.session_state[picker]),
    )
    set_param("library", "" if current == app.settings.rag_library else current)
    with (
        st.popover(label("library_new", language), icon=":material/add:", type="tertiary", key=f"new-beside-{current}"),
        st.form(f"library-new-{current}", border=False),
    ):
        title = _draw_title_field(f"library-name-{current}", language)
        if st.form_submit_button(
            label("library_create", language), type="primary", key="library-create", on_click=mark_click
        ):
            _create(app, title, language)
        else:
            session().created_title = None


def _draw_title_field(key: str, language: Language, title: str = "") -> str:
    hint = label("library_new_hint", language)
    name = label("library_new_name", language)
    return st.text_input(name, title, key=key, placeholder=hint, max_chars=_LONGEST_TITLE) or ""


def _create(app: App, title: str, language: Language) -> None:
    """Create a library and switch to it, only once if the form is sent twice.

    Streamlit may end this run for the next click wherever session state is read, but not before `made` is set.
    """
    state = session()
    try:
        if state.created_title != title:
            _select(state, app.libraries.create(title))
            state.created_title = title
    except RagError as error:
        draw_failure(error.notice, language)
        return
    _use_library(state.library)
    st.rerun()


def draw_rename(app: App, library: str, language: Language) -> None:
    title = app.libraries.title(library)
    with st.popover(label("library_rename", language), icon=":material/edit:", key=f"rename-{library}-{title}"):
        new_title = _draw_title_field(f"rename-title-{library}", language, title)
        submitted = st.button(label("library_rename_go", language), type="primary", key="library-rename")
        if submitted and attempt_here(lambda: app.libraries.rename(library, new_title), language):
            st.rerun()


def draw_delete_library(app: App, library: str, language: Language) -> None:
    """Draw the button that deletes a library; the default library has none."""

    @st.dialog(label("library_remove_title", language))
    def ask() -> None:
        title, pages = app.libraries.title(library), page_count(count_pages(app, library), language)
        st.markdown(label("library_remove_sentence", language, title=escape_line(title), pages=pages))
        if draw_decision(label("library_remove_go", language), "library-remove-go", language):
            done = Notice("library_removed_done", {"title": title})
            if attempt(lambda: app.remove_library(library), done):
                _use_library(app.settings.rag_library)
            st.rerun()

    text = label("library_remove", language)
    if library != app.settings.rag_library and draw_button(text, "delete", "library-remove", type="tertiary"):
        ask()


def draw_restorable_libraries(app: App, language: Language) -> None:
    """Draw the deleted libraries that can be restored."""
    for info in app.libraries.removed_libraries():
        until = format_time(info.restorable_until.isoformat())
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"removed-{info.name}"):
            st.caption(label("library_kept", language, title=escape_line(info.display_name), until=until))
            if draw_button(label("library_restore", language), "undo", f"restore-{info.name}"):
                if attempt(partial(app.libraries.restore, info.name)):
                    _use_library(info.name)
                st.rerun()


def draw_exchange(app: App, library: str, language: Language) -> None:
    """Draw the button that opens export and import."""
    key = f"exchange-{reset_count('exchange')}"
    with st.popover(label("exchange", language), icon=":material/swap_vert:", key=key):
        st.markdown(f"**{label('export_title', language)}**")
        st.caption(label("export_lead", language))
        if draw_button(label("export_go", language), "archive", "export-go"):
            attempt_and_rerun(lambda: _follow(app.transfers.export(library, session().owner)))
        st.divider()
        draw_import(app, language)


def _follow(transfer_id: str) -> None:
    """Close the popover and show the transfer's progress on the page."""
    reset_widgets("exchange")
    set_param("transfer", transfer_id)


def draw_import(app: App, language: Language) -> None:
    """Draw the fields for a file and for the title of the library to create from it."""
    st.markdown(f"**{label('import_title', language)}**")
    st.caption(label("import_lead", language))
    form_number = reset_count("exchange")
    file = st.file_uploader(
        label("import_file", language), key=f"import-file-{form_number}", label_visibility="collapsed"
    )
    st.caption(label("import_larger", language))
    title = _draw_title_field(f"import-name-{form_number}", language).strip()
    submitted = draw_button(label("import_go", language), "unarchive", "import-go")
    if file is not None and not file.name.lower().endswith(_TYPES):
        st.error(label("import_type", language, name=escape_line(file.name)), icon=":material/error:")
    elif submitted and (file is None or not title):
        st.error(label("import_incomplete", language), icon=":material/error:")
    elif submitted and file is not None and attempt_here(lambda: _begin_import(app, file, title), language):
        st.rerun()


def _begin_import(app: App, file: UploadedFile, title: str) -> None:
    transfer = app.transfers.import_file(file, file.name, title, session().owner)
    release_uploads([file])
    _follow(transfer)


def follow_transfer(app: App, language: Language) -> None:
    """Draw the progress of the transfer in the URL, then its download or a link to its library."""
    transfer_id = st.query_params.get("transfer", "")
    if not transfer_id:
        return
    transfer = app.transfers.transfer(transfer_id, session().owner)
    if transfer is None:
        set_param("transfer", "")
        return
    live = transfer.state == "running"
    st.fragment(_draw_transfer, run_every=_POLL_SECONDS if live else None)(app, transfer_id, language, live=live)


def _draw_transfer(app: App, transfer_id: str, language: Language, *, live: bool) -> None:
    transfer = app.transfers.transfer(transfer_id, session().owner)
    if transfer is None or (live and transfer.state != "running"):
        st.rerun()
    with st.container(border=True, key="transfer", gap="small"):
        title = escape_line(transfer.title or transfer.library)
        st.markdown(f"**{label(f'transfer_{transfer.kind}', language, library=title)}**")
        if transfer.state == "running":
            share = transfer.done / transfer.total if transfer.total else 0.0
            progress = label("job_progress", language, done=f"{transfer.done:,}", count=f"{transfer.total:,}")
            st.progress(min(1.0, share), progress if transfer.total else label("transfer_begins", language))
            return
        if transfer.notice:
            draw_failure(transfer.notice, language)
        with st.container(horizontal=True, gap="small"):
            if transfer.state == "done":
                _draw_result(transfer, language)
            text = label("job_close", language)
            if draw_button(text, "close", "transfer-close", type="tertiary"):
                set_param("transfer", "")
                st.rerun()


def _draw_result(transfer: Transfer, language: Language) -> None:
    pages = page_count(transfer.pages, language)
    if transfer.path is None:
        st.markdown(label("import_done", language, pages=pages))
        if draw_button(label("import_open", language), "menu_book", "import-open", type="primary"):
            _use_library(transfer.library)
            set_param("transfer", "")
            st.rerun()
        return
    size = label("export_size", language, size=f"{transfer.size / 1e6:,.1f}", pages=pages)
    if transfer.size > _BROWSER_BYTES:
        st.markdown(label("export_large", language, size=size, path=escape_line(str(transfer.path))))
        return
    path = transfer.path
    st.download_button(
        label("export_download", language, size=size),
        data=lambda: path.open("rb"),
        file_name=f"{transfer.library}.{_SUFFIX}",
        mime="application/zip",
        icon=":material/download:",
        type="primary",
        key="export-download",
        on_click="ignore",
    )
