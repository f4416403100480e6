"""Add pages: links, files or the sample pages, and the import that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.config import CHUNKERS
from rag.errors import RagError
from rag.messages import say
from rag.ui.escape import escape_line
from rag.ui.jobs import draw_job, draw_recent_jobs
from rag.ui.language import current_language
from rag.ui.parts import page_head
from rag.ui.session import current_library, set_param
from rag.ui.shell import open_app
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App

_LIMIT = 200
_FILE_TYPES = ["html", "htm", "md", "txt", "jsonl"]


def draw() -> None:
    language = current_language()
    page_head(label("add_title", language), label("add_lead", language))
    app = open_app(language)
    library = current_library(app)
    place = st.container()  # the tabs stand above what they need to know
    chunker = _chunker(app, language)
    names = [label(f"add_tab_{name}", language) for name in ("links", "files", "samples")]
    links, files, samples = place.tabs(names)
    with links:
        _links(app, library, chunker, language)
    with files:
        _files(app, library, chunker, language)
    with samples:
        _samples(app, library, chunker, language)
    _imports(app, library, language)


def _chunker(app: App, language: Language) -> str:
    with st.expander(label("add_advanced", language), icon=":material/tune:", type="compact"):
        return st.selectbox(
            label("add_chunker", language),
            CHUNKERS,
            index=CHUNKERS.index(app.settings.chunker),
            format_func=lambda name: label(f"chunker_{name}", language),
            help=label("add_chunker_hint", language),
            key="chunker",
        )


def _links(app: App, library: str, chunker: str, language: Language) -> None:
    pasted = st.text_area(
        label("add_paste", language),
        key=f"pasted-{_round()}",
        height=150,
        placeholder=label("add_paste_placeholder", language),
        label_visibility="collapsed",
    )
    urls, dropped = app.imports.find_urls(pasted or "")
    with st.container(horizontal=True, vertical_alignment="center"):
        add = st.button(label("add_go", language), type="primary", icon=":material/add:", key="add-links")
        force = st.checkbox(label("add_force", language), key="force")
    _found(urls, dropped, pasted or "", language)
    if add and urls:
        _start(app.imports.add_urls(urls, library=library, force=force, chunker=chunker))


def _found(urls: list[str], dropped: int, pasted: str, language: Language) -> None:
    if not pasted.strip():
        return
    if not urls:
        st.caption(label("add_found_none", language))
        return
    told = counted("add_found_one", "add_found", len(urls), language)
    if dropped:
        told += f" · {label('add_dropped', language, count=dropped, limit=_LIMIT)}"
    st.caption(told)


def _files(app: App, library: str, chunker: str, language: Language) -> None:
    uploaded = st.file_uploader(
        label("add_files", language),
        type=_FILE_TYPES,
        accept_multiple_files=True,
        key=f"files-{_round()}",
        help=label("add_files_hint", language),
    )
    go_on = st.button(
        label("add_files_go", language),
        type="primary",
        icon=":material/upload_file:",
        key="add-files",
        disabled=not uploaded,
    )
    if go_on and uploaded:
        files = [(file.name, file.getvalue()) for file in uploaded]
        _start(app.imports.add_files(files, library=library, chunker=chunker))


def _samples(app: App, library: str, chunker: str, language: Language) -> None:
    st.markdown(label("add_samples_lead", language))
    if st.button(label("add_samples_go", language), type="primary", icon=":material/auto_stories:", key="samples"):
        _start(app.imports.add_examples(library=library, chunker=chunker))


def _round() -> int:
    """How many imports this tab has started; being part of their keys, it empties box and uploader."""
    return int(st.session_state.get("add-round", 0))


def _start(job_id: str) -> None:
    st.session_state["add-round"] = _round() + 1
    set_param("job", job_id)
    st.rerun()


def _imports(app: App, library: str, language: Language) -> None:
    job_id = st.query_params.get("job", "")
    if job_id:
        try:
            draw_job(app, job_id, language)
        except RagError as error:
            st.info(escape_line(say(error.notice, language)), icon=":material/history:")
    draw_recent_jobs(app, library, job_id, language)


draw()
