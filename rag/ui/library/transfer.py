"""A library as one file: exported and downloaded, or uploaded and imported as a new library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, label_count
from rag.ui.kit.actions import attempt, attempt_here, draw_failure
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.session import session, set_param
from rag.ui.library.libraries import draw_title_field, use_library
from rag.ui.serving.uploads import release

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from rag.app import App
    from rag.app.transfer import Transfer

_POLL_SECONDS = 0.7
_SUFFIX = "pagelight"
_TYPES = (f".{_SUFFIX}", ".zip")
_BROWSER_BYTES = 400_000_000
"""A browser gets its file from memory; for a larger one the page shows its path."""


def draw_exchange(app: App, library: str, language: Language) -> None:
    """Draw the button that opens export and import."""
    with st.popover(label("exchange", language), icon=":material/swap_vert:", key=f"exchange-{_round()}"):
        st.markdown(f"**{label('export_title', language)}**")
        st.caption(label("export_lead", language))
        if st.button(label("export_go", language), icon=":material/archive:", key="export-go"):
            attempt(lambda: _follow(app.transfers.export(library, session().owner)))
            st.rerun()
        st.divider()
        draw_import(app, language)


def _round() -> int:
    """Return the number of transfers started in this tab, part of widget keys so that forms reset."""
    return int(st.session_state.get("exchange-round", 0))


def _follow(transfer_id: str) -> None:
    """Show the transfer's progress below the popover, which closes."""
    st.session_state["exchange-round"] = _round() + 1
    set_param("transfer", transfer_id)


def draw_import(app: App, language: Language) -> None:
    """Draw fields for a file and the title of the library to make from it."""
    st.markdown(f"**{label('import_title', language)}**")
    st.caption(label("import_lead", language))
    form_number = _round()
    file = st.file_uploader(
        label("import_file", language),
        key=f"import-file-{form_number}",
        label_visibility="collapsed",
    )
    st.caption(label("import_larger", language))
    title = draw_title_field(f"import-name-{form_number}", language).strip()
    submitted = st.button(label("import_go", language), icon=":material/unarchive:", key="import-go")
    if file is not None and not file.name.lower().endswith(_TYPES):
        st.error(label("import_type", language, name=escape_line(file.name)), icon=":material/error:")
    elif submitted and (file is None or not title):
        st.error(label("import_incomplete", language), icon=":material/error:")
    elif submitted and file is not None and attempt_here(lambda: _begin_import(app, file, title), language):
        st.rerun()


def _begin_import(app: App, file: UploadedFile, title: str) -> None:
    transfer = app.transfers.bring_in(file, file.name, title, session().owner)
    release([file])
    _follow(transfer)


def follow_transfer(app: App, language: Language) -> None:
    """Draw the progress of the transfer in the address, then its file or its library."""
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
            if st.button(text, icon=":material/close:", type="tertiary", key="transfer-close"):
                set_param("transfer", "")
                st.rerun()


def _draw_result(transfer: Transfer, language: Language) -> None:
    pages = label_count("in_use_page", "in_use_pages", transfer.pages, language)
    if transfer.path is None:
        st.markdown(label("import_done", language, pages=pages))
        if st.button(label("import_open", language), icon=":material/menu_book:", type="primary", key="import-open"):
            _open_library(transfer.library)
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


def _open_library(name: str) -> None:
    use_library(name)
    set_param("transfer", "")
    st.rerun()
