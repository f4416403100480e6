"""An import as it happens: how far it is, how fast, what a person can do with it, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

import streamlit as st

from rag.messages import say
from rag.types import IngestStatus, Stage
from rag.ui.doing import attempt
from rag.ui.escape import escape_line, shorten
from rag.ui.job_rows import draw_rows
from rag.ui.navigation import go
from rag.ui.parts import moment, short_source
from rag.ui.session import set_param
from rag.ui.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App, JobView

_STAGES: tuple[Stage, ...] = get_args(Stage)
_STATUSES: tuple[IngestStatus, ...] = get_args(IngestStatus)
_POLL_SECONDS = 1.0
_NAMED = 3
_LONGEST_NAME = 60


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


def job_name(job: JobView, language: Language) -> str:
    """What was imported, in words that are outside text still."""
    title = shorten(short_source(job.title), _LONGEST_NAME)
    if job.kind != "pages":
        return title or label("job_name_all" if job.kind == "recheck" else "job_title", language)
    if job.total > 1 and title:
        return label("job_name_more", language, name=title, count=f"{job.total - 1:,}")
    return title or label("job_title", language)


def draw_progress(app: App, job: JobView, language: Language) -> None:
    """A bar with the counts, the pace and what is being read; of a job that has ended, its summary."""
    if job.state in ("done", "cancelled"):
        st.markdown(label(f"job_{job.state}", language, summary=summary(job.counts, language)))
        return
    if job.state == "running" and not app.models.ready():
        st.progress(0.0, label("job_loading", language))
        return
    if job.discovery == "waiting" and not job.total:
        st.progress(0.0, label("job_finding", language))
        return
    begun = sum(_STAGES.index(item.stage) / (len(_STAGES) - 1) for item in job.current)
    share = min(1.0, (job.done + begun) / max(1, job.total))
    st.progress(share, _progress_words(job, language))
    told = [summary(job.counts, language)] if job.done else []
    names = [escape_line(shorten(short_source(item.source), _LONGEST_NAME)) for item in job.current[:_NAMED]]
    told += [label("job_current", language, names=" · ".join(names))] if names else []
    if told:
        st.caption("  \n".join(told))


def _progress_words(job: JobView, language: Language) -> str:
    key = "job_progress_found" if job.kind != "pages" and job.state == "running" else "job_progress"
    parts = [label(key, language, done=f"{job.done:,}", count=f"{job.total:,}")]
    if job.state == "paused":
        return " · ".join([*parts, label("job_paused", language)])
    if job.rate is not None:
        parts.append(label("job_rate", language, rate=f"{job.rate:,.0f}" if job.rate >= 1 else "<1"))
    if job.seconds_left is not None:
        parts.append(time_left(job.seconds_left, language))
    return " · ".join(parts)


def time_left(seconds: float, language: Language) -> str:
    """ "about 4 min left": no more exact than an estimate can be."""
    if seconds < 50:
        return label("job_left_seconds", language, count=max(5, 5 * round(seconds / 5)))
    if seconds < 3600:
        return label("job_left_minutes", language, count=max(1, round(seconds / 60)))
    return label("job_left_hours", language, count=f"{seconds / 3600:.1f}")


def summary(counts: Mapping[str, int], language: Language) -> str:
    """ "11 added · 1 failed": how the sources that ended are spread."""
    parts = [label(f"count_{one}", language, count=f"{counts[one]:,}") for one in _STATUSES if counts.get(one)]
    return " · ".join(parts) or label("count_nothing", language)


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
