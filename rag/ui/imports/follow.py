"""The progress, in one line, of a job or transfer that was started on the library page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from rag.errors import RagError
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line
from rag.ui.kit.job_progress import draw_progress, job_name, kind_key
from rag.ui.kit.navigation import go
from rag.ui.kit.session import jobs_of, set_param
from rag.ui.kit.strings import Language, label

if TYPE_CHECKING:
    from rag.app import App

_POLL_SECONDS = 1.0


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
    st.fragment(_draw_job, run_every=_POLL_SECONDS if live else None)(app, job_id, language, live=live)


def _draw_job(app: App, job_id: str, language: Language, *, live: bool) -> None:
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
