"""Earlier imports of a library, to reopen or to remove from the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.types import Notice
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.job_progress import job_name, kind_key, summary
from rag.ui.kit.parts import moment
from rag.ui.kit.session import jobs_of, set_param
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App, JobView

_STEP = 10
_STATES = {"running": "sync", "paused": "pause_circle", "done": "check_circle", "cancelled": "stop_circle"}


def draw_history(app: App, library: str, current: str, language: Language) -> None:
    """Draw the imports, newest first, each with buttons to open and to delete it."""
    limit = int(st.session_state.get("history-length", _STEP))
    jobs = jobs_of(app).jobs(library, limit + 1)
    others = [job for job in jobs[:limit] if job.id != current]
    if not others:
        return
    with st.expander(label("jobs_recent", language), icon=":material/history:", key="history", type="compact"):
        with st.container(key="job-history", gap="xsmall"):
            for job in others:
                _draw_job(app, job, language)
        if len(jobs) > limit and st.button(label("jobs_older", language), type="tertiary", key="history-older"):
            st.session_state["history-length"] = limit + _STEP
            st.rerun()


def _draw_job(app: App, job: JobView, language: Language) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"history-{job.id}", wrap=False):
        with st.container(gap=None, width="stretch"):
            name = escape_line(job_name(job, language))
            icon = f":material/{_STATES[job.state]}:"
            if st.button(name, key=f"job-{job.id}", type="tertiary", icon=icon, help=label("jobs_open", language)):
                set_param("job", job.id)
                st.rerun()
            kind = label(kind_key(job), language)
            st.caption(f"{moment(job.created_at)} · {kind} · {summary(job, language)}")
        text = label("jobs_delete_hint", language)
        if st.button("", icon=":material/delete:", type="tertiary", key=f"forget-{job.id}", help=text):
            attempt(lambda: jobs_of(app).delete(job.id), Notice("jobs_deleted"))
            st.rerun()
