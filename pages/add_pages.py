"""Add pages: from links, a website, files, samples or a web search, with the progress of the import."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from rag.config import CHUNKERS
from rag.errors import RagError
from rag.ingest.archives import FILE_TYPES
from rag.locales import Language, label, label_count, say
from rag.ui.chat.asking import start_answer
from rag.ui.chat.start import example_questions
from rag.ui.imports.forms import draw_site_form, draw_web_finds
from rag.ui.imports.jobs import draw_history, draw_job
from rag.ui.kit.actions import none_if_unavailable
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import SHARE_PARAMS, current_language, go, shared_links
from rag.ui.kit.parts import draw_page_head
from rag.ui.kit.session import current_library, jobs_of, person_id, reset_count, reset_widgets, session, set_param
from rag.ui.serving.uploads import release_uploads, upload_limits_text
from rag.ui.shell import open_app
from rag.web.url_finder import find_urls
from rag.web.urls import url_hash

if TYPE_CHECKING:
    from rag.app import App

_LIMIT = 200
_FILE_TYPES = [ending.lstrip(".") for ending in (*FILE_TYPES, ".zip")]
_TABS = ("links", "site", "files", "samples", "web")


class _Options(NamedTuple):
    chunker: str
    force: bool


def draw() -> None:
    language = current_language()
    draw_page_head(label("add_title", language), label("add_lead", language))
    app = open_app(language)
    library = current_library(app)
    if not app.roles.has(library, "editor"):
        st.info(label("role_adds_nothing", language), icon=":material/visibility:")
        return
    job_id = st.query_params.get("job", "")
    # Always drawn: uploads in progress are lost if an element above the uploader appears or disappears.
    with st.container(key="job-area"):
        if job_id:
            _draw_job(app, library, job_id, language)
    place = st.container()  # filled last: the tabs need the options, but appear above them
    options = _draw_options(app, language)
    tabs = _TABS if app.imports.web_search else _TABS[:-1]
    names = [label(f"add_tab_{name}", language) for name in tabs]
    # on_change keeps the selected tab on the server; otherwise an import that appears above resets it.
    links, site, files, samples, *web = place.tabs(names, key="add-tabs", on_change="rerun")
    with links:
        _draw_links(app, library, options, language)
    with site:
        _start(draw_site_form(app, library, options.chunker, options.force, language))
        st.caption(label("site_polite", language))
    with files:
        _draw_files(app, library, options, language)
    with samples:
        st.markdown(label("add_samples_lead", language))
        if st.button(label("add_samples_go", language), type="primary", icon=":material/auto_stories:", key="samples"):
            _start(app.imports.add_examples(library=library, owner=person_id(), chunker=options.chunker))
    for tab in web:
        with tab:
            _start(draw_web_finds(app, library, options.chunker, options.force, language))
    draw_history(app, library, job_id, language)


def _draw_job(app: App, library: str, job_id: str, language: Language) -> None:
    try:
        draw_job(
            app,
            job_id,
            language,
            lambda question: _ask(app, library, question),
            lambda pages: example_questions(app, library, language, among=pages),
        )
    except RagError as error:
        st.info(escape_line(say(error.notice, language)), icon=":material/history:")
    st.markdown(f"## {label('add_more', language)}", anchors=False)


def _ask(app: App, library: str, question: str) -> None:
    """Ask in a new conversation and open it."""
    if start_answer(app, library, question, conversation=""):
        go("chat", conversation=session().conversation)


def _draw_options(app: App, language: Language) -> _Options:
    with st.expander(label("add_advanced", language), icon=":material/tune:", type="compact"):
        chunker = st.selectbox(
            label("add_chunker", language),
            CHUNKERS,
            index=CHUNKERS.index(app.settings.chunker),
            format_func=lambda name: label(f"chunker_{name}", language),
            help=label("add_chunker_hint", language),
            key="chunker",
        )
        force = st.checkbox(label("add_force", language), key="force", help=label("add_force_hint", language))
    return _Options(chunker, force)


def _draw_links(app: App, library: str, options: _Options, language: Language) -> None:
    box, shared = f"pasted-{reset_count('add')}", shared_links()
    if shared:
        st.session_state.setdefault(box, "\n".join(find_urls(shared)[0]))
        st.caption(label("add_handed", language))
    pasted = st.text_area(
        label("add_paste", language),
        key=box,
        height=150,
        placeholder=label("add_paste_placeholder", language),
        label_visibility="collapsed",
    )
    urls, dropped = find_urls(pasted or "")
    add = st.button(label("add_go", language), type="primary", icon=":material/add:", key="add-links")
    if urls:
        text = label_count("add_found_one", "add_found", len(urls), language)
        known = none_if_unavailable(lambda: app.library(library).find_known([url_hash(url) for url in urls]))
        if known:
            text += f" · {label_count('add_known_one', 'add_known', len(known), language)}"
        if dropped:
            text += f" · {label('add_dropped', language, count=dropped, limit=_LIMIT)}"
        st.caption(text)
    elif (pasted or "").strip():
        st.caption(label("add_found_none", language))
    elif add:
        st.caption(label("add_empty", language))
    if add and urls:
        job_id = app.imports.add_urls(
            urls, library=library, owner=person_id(), force=options.force, chunker=options.chunker
        )
        _start(job_id)
    with st.expander(label("bookmarklet", language), icon=":material/bookmark_add:", type="compact"):
        # page.js turns this link into a bookmarklet with the app's URL.
        st.markdown(label("bookmarklet_lead", language, link=f"[{label('bookmarklet_name', language)}](#bookmarklet)"))


def _draw_files(app: App, library: str, options: _Options, language: Language) -> None:
    uploads = st.file_uploader(
        label("add_files", language), type=_FILE_TYPES, accept_multiple_files=True, key=f"files-{reset_count('add')}"
    )
    st.caption(f"{label('add_files_hint', language)}  \n{upload_limits_text(app, language)}")
    submitted = st.button(
        label("add_files_go", language),
        type="primary",
        icon=":material/upload_file:",
        key="add-files",
        disabled=not uploads,
    )
    if submitted and uploads:
        files = [(file.name, file.getvalue()) for file in uploads]
        job_id = app.imports.jobs.submit_files(files, library=library, owner=person_id(), chunker=options.chunker)
        release_uploads(uploads)
        _start(job_id)
    # Files that gave no page, but that this version reads differently.
    if count := jobs_of(app).count_unread_files(library):
        st.caption(label("add_files_kept", language))
        text = label_count("add_files_reread_one", "add_files_reread", count, language)
        if st.button(text, icon=":material/replay:", key="files-reread"):
            _start(next(iter(jobs_of(app).reread_files(library)), None))


def _start(job_id: str | None) -> None:
    """Show the import, if one was started, and reset the forms."""
    if job_id is None:
        return
    reset_widgets("add")
    for name in SHARE_PARAMS:
        set_param(name, "")
    set_param("job", job_id)
    st.rerun()


draw()
