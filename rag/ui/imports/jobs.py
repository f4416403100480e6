"""An import as it happens: how far it is, how fast, what a person can do with it, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.messages import say
from rag.ui.imports.job_rows import draw_rows
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.job_progress import draw_progress, job_name
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import moment
from rag.ui.kit.session import set_param
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App, JobView

_POLL_SECONDS = 1.0


def draw_job(app: App, job_id: str, language: Language) -> None:
    """The import `job_id`, redrawn by itself until it ends; then the page once more. Raises StoreError."""
    live = _is_live(app.imports.jobs.job(job_id))
    st.fragment(_draw_live_job, run_every=_POLL_SECONDS if live else None)(app, job_id, language, live=live)


def _is_live(job: JobView) -> bool:
    """Whether it changes by itself: it runs, or was paused and a page of it is still in hand."""
    return job.state == "running" or (job.state == "paused" and bool(job.current))


def _draw_live_job(app: App, job_id: str, language: Language, *, live: bool) -> None:
    job = app.imports.jobs.job(job_id)
    if live and not _is_live(job):
        st.rerun()
    with st.container(border=True, key="job"):
        _draw_head(job, language)
        draw_progress(app, job, language)
        if job.notice:
            st.warning(escape_line(say(job.notice, language)), icon=":material/info:")
        _draw_actions(app, job, language)
        draw_rows(app, job, language)


def _draw_head(job: JobView, language: Language) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", wrap=False, key="job-head"):
        with st.container(gap=None, width="stretch"):
            st.markdown(f"## {escape_line(job_name(job, language))}", anchors=False)
            st.caption(f"{label(f'job_kind_{job.kind}', language)} · {moment(job.created_at)}")
        if st.button(label("job_close", language), icon=":material/close:", type="tertiary", key="job-close"):
            set_param("job", "")
            st.rerun()


def _draw_actions(app: App, job: JobView, language: Language) -> None:
    jobs, failed = app.imports.jobs, job.counts.get("failed", 0)
    actions = []
    if job.state == "running":
        actions += [("pause", "pause", jobs.pause), ("cancel", "stop_circle", jobs.cancel)]
    elif job.state == "paused":
        actions += [("resume", "play_arrow", jobs.resume), ("cancel", "stop_circle", jobs.cancel)]
    with st.container(horizontal=True, key="job-actions", gap="small"):
        for name, icon, act in actions:
            if st.button(label(f"job_{name}", language), icon=f":material/{icon}:", key=f"job-{name}"):
                attempt(lambda act=act: act(job.id), language)  # type: ignore[misc]
                st.rerun()
        if failed or job.discovery == "failed":
            text = counted("job_retry_one", "job_retry", failed, language) if failed else label("retry", language)
            if st.button(text, icon=":material/replay:", key="job-retry"):
                attempt(lambda: jobs.retry_failed(job.id), language)
                st.rerun()
        ended = job.state in ("done", "cancelled")
        if (
            ended
            and job.kind != "recheck"
            and st.button(label("job_ask", language), icon=":material/forum:", key="job-ask")
        ):
            go("chat")
        if ended and st.button(label("job_library", language), icon=":material/menu_book:", key="job-library"):
            go("library")
