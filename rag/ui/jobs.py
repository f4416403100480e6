"""An import as it happens: one row for each source, moving through its stages to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

import streamlit as st

from rag.messages import say
from rag.types import IngestResult, IngestStatus, Notice, Stage
from rag.ui.escape import escape_line, shorten
from rag.ui.navigation import go
from rag.ui.parts import moment, short_source
from rag.ui.session import set_param
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App, JobItem, JobView

_STAGES: tuple[Stage, ...] = get_args(Stage)
_STATUSES: tuple[IngestStatus, ...] = get_args(IngestStatus)
_CHIPS: dict[IngestStatus, tuple[str, str]] = {
    "added": ("green", "check"),
    "updated": ("green", "sync"),
    "unchanged": ("gray", "equal"),
    "duplicate": ("gray", "content_copy"),
    "skipped": ("orange", "skip_next"),
    "failed": ("red", "error"),
}
_POLL_SECONDS = 0.5
_ROWS_BEFORE_SCROLLING = 12


def draw_job(app: App, job_id: str, language: Language) -> None:
    """The import `job_id`, redrawn by itself until it ends; then the page once more."""
    job = app.imports.job(job_id)
    every = _POLL_SECONDS if job.state == "running" else None
    st.fragment(_draw_live_job, run_every=every)(app, job_id, language, live=every is not None)


def _draw_live_job(app: App, job_id: str, language: Language, *, live: bool) -> None:
    job = app.imports.job(job_id)
    if live and job.state != "running":
        st.rerun()
    with st.container(border=True, key="job"):
        _draw_progress(app, job, language)
        tall = len(job.items) > _ROWS_BEFORE_SCROLLING
        with st.container(key="job-rows", height=560 if tall else "content", border=False):
            for item in job.items:
                st.markdown(row_markdown(item, job.state != "running", language))


def _draw_progress(app: App, job: JobView, language: Language) -> None:
    done = sum(item.result is not None for item in job.items)
    st.markdown(f"##### {label('job_title', language)}", anchors=False)
    if job.state == "running":
        share = sum(_share(item) for item in job.items) / max(1, len(job.items))
        st.progress(share, label("job_progress", language, done=done, count=len(job.items)))
        if st.button(label("job_cancel", language), icon=":material/stop_circle:", key="job-cancel"):
            app.imports.cancel(job.id)
            st.rerun(scope="fragment")
        return
    ended = "job_done" if job.state == "done" else "job_cancelled"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(label(ended, language, summary=summary(job.items, language)), width="content")
        if st.button(label("job_ask", language), icon=":material/forum:", key="job-ask"):
            go("chat")


def _share(item: JobItem) -> float:
    """How far a source has come, from 0 to 1."""
    return 1.0 if item.result else _STAGES.index(item.stage) / (len(_STAGES) - 1)


def row_markdown(item: JobItem, ended: bool, language: Language) -> str:
    """One source: its chip or its stage, its name, and the sentence about what became of it."""
    name = escape_line(shorten(short_source(item.source), 90))
    if item.result is None:
        return f"{_stage(item.stage, ended, language)} {name}"
    color, icon = _CHIPS[item.result.status]
    chip = f":{color}-badge[:material/{icon}: {label(f'status_{item.result.status}', language)}]"
    return f"{chip} {name}  \n:small[:gray[{_sentence(item.result, language)}]]"


def _stage(stage: Stage, ended: bool, language: Language) -> str:
    if ended:
        return f":gray-badge[{label('job_not_started', language)}]"
    place = _STAGES.index(stage)
    dots = f":primary[{'●' * place}]" if place else ""
    rest = len(_STAGES) - 1 - place
    return f"{dots}{f':gray[{chr(0x25CB) * rest}]' if rest else ''} :gray[{label(f'stage_{stage}', language)}]"


def _sentence(result: IngestResult, language: Language) -> str:
    return escape_line(say(Notice(result.reason, result.params), language))


def summary(items: Iterable[JobItem], language: Language) -> str:
    """ "11 added · 1 failed": how the sources that ended are spread."""
    counts = Counter(item.result.status for item in items if item.result)
    parts = [label(f"count_{status}", language, count=counts[status]) for status in _STATUSES if counts[status]]
    return " · ".join(parts) or label("count_nothing", language)


def draw_recent_jobs(app: App, library: str, shown: str, language: Language) -> None:
    """Earlier imports of this library, each a button that opens it."""
    others = [job for job in app.imports.jobs(library) if job.id != shown][:8]
    if not others:
        return
    with st.expander(label("jobs_recent", language), icon=":material/history:", type="compact"):
        for job in others:
            sources = counted("job_sources_one", "job_sources", len(job.items), language)
            text = f"{moment(job.created_at)} · {sources} · {summary(job.items, language)}"
            if st.button(text, key=f"job-{job.id}", type="tertiary"):
                set_param("job", job.id)
                st.rerun()
