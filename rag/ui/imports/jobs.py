"""Imports: the open one with its progress, pace, actions and rows; earlier ones; one in a line on the library page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count, say
from rag.types import SAVED, Notice
from rag.ui.imports.job_rows import draw_rows, page_of
from rag.ui.kit.actions import attempt
from rag.ui.kit.choices import Scope
from rag.ui.kit.job_progress import draw_import_card, draw_progress, job_name, kind_key, summary
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import moment
from rag.ui.kit.session import jobs_of, session, set_param, show

if TYPE_CHECKING:
    from rag.app import App, JobView

_POLL_SECONDS = 1.0
_MAX_SCOPE_PAGES = 1_000  # pages that questions can be limited to
_CARD_STATUSES = sorted(SAVED - {"duplicate"})  # outcomes of the pages on the card
Samples = Callable[[Sequence[str]], Sequence[str]]
"""Returns sample questions that the pages with these hashes answer."""
_MORE_JOBS = 10
_STATE_ICONS = {"running": "sync", "paused": "pause_circle", "done": "check_circle", "cancelled": "stop_circle"}


def draw_job(app: App, job_id: str, language: Language, ask: Callable[[str], object], samples: Samples) -> None:
    """Draw the import `job_id`, updated until it ends; then the page is redrawn. Raises StoreError.

    `ask` asks a question from the card, which is drawn once the import has ended.
    """
    live = _is_live(jobs_of(app).job(job_id))
    if live:
        st.fragment(_draw_live_job, run_every=_POLL_SECONDS)(app, job_id, language)
        return
    job = jobs_of(app).job(job_id)
    with st.container(border=True, key="job"):
        _draw_state(app, job, language)
        card = _pages_on_card(app, job)
        draw_import_card(app, job.library, card, ask, language, key="job", samples=samples(card))
        draw_rows(app, job, language, aside=_CARD_STATUSES if card else ())


def _is_live(job: JobView) -> bool:
    """Return whether the import still changes: it runs, or is paused with pages in progress."""
    return job.state == "running" or (job.state == "paused" and bool(job.current))


def _draw_live_job(app: App, job_id: str, language: Language) -> None:
    job = jobs_of(app).job(job_id)
    if not _is_live(job):
        st.rerun()
    with st.container(border=True, key="job"):
        _draw_state(app, job, language)
        draw_rows(app, job, language)


def _draw_state(app: App, job: JobView, language: Language) -> None:
    _draw_head(job, language)
    draw_progress(app, job, language)
    if job.notice:
        st.warning(escape_line(say(job.notice, language)), icon=":material/info:")
    _draw_actions(app, job, language)


def _pages_on_card(app: App, job: JobView) -> list[str]:
    """Return the pages that an import saved, as many as one overview has; none for a re-check or before its end."""
    if job.kind == "recheck" or job.bulk or job.state not in ("done", "cancelled"):
        return []
    items = jobs_of(app).items(job.id, 0, _MAX_SCOPE_PAGES, _CARD_STATUSES)
    return [url_hash for item in items if item.result and (url_hash := page_of(item.result))]


def _draw_head(job: JobView, language: Language) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", wrap=False, key="job-head"):
        with st.container(gap=None, width="stretch"):
            st.markdown(f"## {escape_line(job_name(job, language))}", anchors=False)
            st.caption(f"{label(kind_key(job), language)} · {moment(job.created_at)}")
        if st.button(label("job_close", language), icon=":material/close:", type="tertiary", key="job-close"):
            set_param("job", "")
            st.rerun()


def _ask_about(app: App, job: JobView) -> None:
    """Start a conversation limited to the pages of this import."""
    hashes = [page_of(item.result) for item in jobs_of(app).items(job.id, limit=_MAX_SCOPE_PAGES + 1) if item.result]
    state, pages = session(), tuple(dict.fromkeys(filter(None, hashes)))
    state.library, state.scope = job.library, Scope(pages=pages if len(hashes) <= _MAX_SCOPE_PAGES else ())
    show("")
    go("chat", **({} if job.library == app.settings.rag_library else {"library": job.library}))


def _draw_actions(app: App, job: JobView, language: Language) -> None:
    jobs, failed = jobs_of(app), job.counts.get("failed", 0)
    actions = []
    if job.state == "running":
        actions += [("pause", "pause", jobs.pause), ("cancel", "stop_circle", jobs.cancel)]
    elif job.state == "paused":
        actions += [("resume", "play_arrow", jobs.resume), ("cancel", "stop_circle", jobs.cancel)]
    with st.container(horizontal=True, key="job-actions", gap="small"):
        for name, icon, act in actions:
            if st.button(label(f"job_{name}", language), icon=f":material/{icon}:", key=f"job-{name}"):
                attempt(lambda act=act: act(job.id))  # type: ignore[misc]
                st.rerun()
        if not job.bulk and (failed or job.discovery == "failed"):
            text = label_count("job_retry_one", "job_retry", failed, language) if failed else label("retry", language)
            if st.button(text, icon=":material/replay:", key="job-retry"):
                attempt(lambda: jobs.retry_failed(job.id))
                st.rerun()
        ended = job.state in ("done", "cancelled")
        if (
            ended
            and job.kind != "recheck"
            and st.button(label("job_ask", language), icon=":material/forum:", key="job-ask")
        ):
            _ask_about(app, job)
        if ended and st.button(label("job_library", language), icon=":material/menu_book:", key="job-library"):
            go("library")


def draw_history(app: App, library: str, current: str, language: Language) -> None:
    """Draw the imports, newest first, each with buttons to open and to delete it."""
    limit = int(st.session_state.get("history-length", _MORE_JOBS))
    jobs = jobs_of(app).jobs(library, limit + 1)
    others = [job for job in jobs[:limit] if job.id != current]
    if not others:
        return
    with st.expander(label("jobs_recent", language), icon=":material/history:", key="history", type="compact"):
        with st.container(key="job-history", gap="xsmall"):
            for job in others:
                _draw_earlier(app, job, language)
        if len(jobs) > limit and st.button(label("jobs_older", language), type="tertiary", key="history-older"):
            st.session_state["history-length"] = limit + _MORE_JOBS
            st.rerun()


def _draw_earlier(app: App, job: JobView, language: Language) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"history-{job.id}", wrap=False):
        with st.container(gap=None, width="stretch"):
            name = escape_line(job_name(job, language))
            icon = f":material/{_STATE_ICONS[job.state]}:"
            if st.button(name, key=f"job-{job.id}", type="tertiary", icon=icon, help=label("jobs_open", language)):
                set_param("job", job.id)
                st.rerun()
            kind = label(kind_key(job), language)
            st.caption(f"{moment(job.created_at)} · {kind} · {summary(job, language)}")
        text = label("jobs_delete_hint", language)
        if st.button("", icon=":material/delete:", type="tertiary", key=f"forget-{job.id}", help=text):
            attempt(lambda: jobs_of(app).delete(job.id), Notice("jobs_deleted"))
            st.rerun()


def follow_job(app: App, language: Language) -> None:
    """Draw the job in the address until it has ended and is closed; an unknown one is dropped."""
    job_id = st.query_params.get("job", "")
    if not job_id:
        return
    try:
        live = jobs_of(app).job(job_id).state == "running"
    except RagError:
        set_param("job", "")
        return
    st.fragment(_draw_followed, run_every=_POLL_SECONDS if live else None)(app, job_id, language, live=live)


def _draw_followed(app: App, job_id: str, language: Language, *, live: bool) -> None:
    job = jobs_of(app).job(job_id)
    if live and job.state != "running":
        st.rerun()
    with st.container(border=True, key="follow", gap="small"):
        kind = label(kind_key(job), language)
        st.markdown(f"**{kind}** · {escape_line(job_name(job, language))}")
        draw_progress(app, job, language)
        with st.container(horizontal=True, gap="small"):
            if st.button(label("follow_details", language), icon=":material/list:", key="follow-details"):
                go("add", job=job_id)
            if job.state == "running":
                if st.button(label("job_cancel", language), icon=":material/stop_circle:", key="follow-cancel"):
                    attempt(lambda: jobs_of(app).cancel(job_id))
                    st.rerun()
            elif st.button(label("job_close", language), icon=":material/close:", type="tertiary", key="follow-close"):
                set_param("job", "")
                st.rerun()
