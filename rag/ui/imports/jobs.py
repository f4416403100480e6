"""Imports: the open one with progress, actions and rows, earlier ones, and a compact view for the library page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, get_args

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count, say
from rag.types import SAVED, Decision, IngestResult, IngestStatus, Notice, Stage
from rag.ui.kit.actions import attempt_and_rerun, is_restore, none_if_unavailable
from rag.ui.kit.job_progress import draw_import_card, draw_progress, job_name, job_summary, kind_key, outcome_of
from rag.ui.kit.markdown import escape_line, is_web_url, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import chunk_count, draw_button, format_time, short_source
from rag.ui.kit.passages import passage_markdown, text_height
from rag.ui.kit.session import Scope, jobs_of, session, set_conversation, set_param
from rag.web.urls import mentions_any

if TYPE_CHECKING:
    from rag.app import App, JobItem, JobView

_POLL_SECONDS = 1.0
_MAX_SCOPE_PAGES = 1_000  # pages that questions can be limited to
_CARD_STATUSES = sorted(SAVED - {"duplicate"})  # outcomes of the pages on the card
Samples = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns sample questions about the pages with these url_hashes."""
_MORE_JOBS = 10
_STATE_ICONS = {"running": "sync", "paused": "pause_circle", "done": "check_circle", "cancelled": "stop_circle"}
_ICONS: dict[Decision, str] = {  # in display order
    "retry": "replay",
    "add_anyway": "check",
    "refresh": "sync",
    "keep_both": "content_copy",
    "skip": "do_not_disturb_on",
}
_PREVIEW_HEIGHT = 260, 400, 6
"""Height in pixels; maximum characters and lines of a short text."""
OUTCOME_ORDER = ("failed", "held", "gone", "duplicate", "", "updated", "added", "unchanged", "skipped")
"""The outcomes in display order; "" means none yet."""
PAGE = 12
_STAGES: tuple[Stage, ...] = get_args(Stage)
_CHIPS: dict[IngestStatus, tuple[str, str]] = {
    "added": ("green", "check"),
    "updated": ("green", "sync"),
    "unchanged": ("gray", "equal"),
    "duplicate": ("blue", "content_copy"),
    "held": ("orange", "front_hand"),
    "gone": ("orange", "link_off"),
    "skipped": ("gray", "skip_next"),
    "failed": ("red", "error"),
}
_LONGEST_NAME = 90


def draw_job(app: App, job_id: str, language: Language, ask: Callable[[str], object], samples: Samples) -> None:
    """Draw the import `job_id`, polling until it ends and then redrawing the page. Raises StoreError.

    Once it has ended, a card is drawn whose questions are passed to `ask` on a click.
    """
    job = jobs_of(app).job(job_id)
    if _is_live(job):
        st.fragment(_draw_live_job, run_every=_POLL_SECONDS)(app, job_id, language)
        return
    with st.container(border=True, key="job"):
        _draw_state(app, job, language)
        # None for re-checks, bulk imports or before the end.
        has_card = job.kind != "recheck" and not job.bulk and job.state in ("done", "cancelled")
        items = jobs_of(app).items(job.id, 0, _MAX_SCOPE_PAGES, _CARD_STATUSES) if has_card else []
        card = [url_hash for item in items if item.result and (url_hash := _page_of(item.result))]
        draw_import_card(app, job.library, card, ask, language, key="job", samples=samples(card))
        _draw_rows(app, job, language, aside=_CARD_STATUSES if card else ())


def _is_live(job: JobView) -> bool:
    """Return whether the import still changes: it runs, or is paused with pages in progress."""
    return job.state == "running" or (job.state == "paused" and bool(job.current))


def _draw_live_job(app: App, job_id: str, language: Language) -> None:
    job = jobs_of(app).job(job_id)
    if not _is_live(job):
        st.rerun()
    with st.container(border=True, key="job"):
        _draw_state(app, job, language)
        _draw_rows(app, job, language)


def _draw_state(app: App, job: JobView, language: Language) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", wrap=False, key="job-head"):
        with st.container(gap=None, width="stretch"):
            st.markdown(f"## {escape_line(job_name(job, language))}", anchors=False)
            st.caption(f"{label(kind_key(job), language)} · {format_time(job.created_at)}")
        if draw_button(label("job_close", language), "close", "job-close", type="tertiary"):
            set_param("job", "")
            st.rerun()
    draw_progress(app, job, language)
    if job.notice:
        st.warning(escape_line(say(job.notice, language)), icon=":material/info:")
    _draw_actions(app, job, language)


def _ask_about(app: App, job: JobView) -> None:
    """Start a conversation limited to the pages of this import, unless there are too many."""
    hashes = [_page_of(item.result) for item in jobs_of(app).items(job.id, limit=_MAX_SCOPE_PAGES + 1) if item.result]
    state, pages = session(), tuple(dict.fromkeys(filter(None, hashes)))
    state.library, state.scope = job.library, Scope(pages=pages if len(hashes) <= _MAX_SCOPE_PAGES else ())
    set_conversation("")
    go("chat", **({} if job.library == app.settings.rag_library else {"library": job.library}))


def _draw_actions(app: App, job: JobView, language: Language) -> None:
    jobs, failed = jobs_of(app), job.counts.get("failed", 0)
    cancel = ("cancel", "stop_circle", jobs.cancel)
    actions = {
        "running": (("pause", "pause", jobs.pause), cancel),
        "paused": (("resume", "play_arrow", jobs.resume), cancel),
    }
    with st.container(horizontal=True, key="job-actions", gap="small"):
        for name, icon, act in actions.get(job.state, ()):
            if draw_button(label(f"job_{name}", language), icon, f"job-{name}"):
                attempt_and_rerun(partial(act, job.id))
        if not job.bulk and (failed or job.discovery == "failed"):
            text = label_count("job_retry_one", "job_retry", failed, language) if failed else label("retry", language)
            if draw_button(text, "replay", "job-retry"):
                attempt_and_rerun(lambda: jobs.retry_failed(job.id))
        ended = job.state in ("done", "cancelled")
        can_ask = ended and job.kind != "recheck" and any(job.counts.get(status) for status in SAVED)
        if can_ask and draw_button(label("job_ask", language), "forum", "job-ask"):
            _ask_about(app, job)
        if ended and draw_button(label("job_library", language), "menu_book", "job-library"):
            go("library")


def draw_history(app: App, library: str, current: str, language: Language) -> None:
    """Draw earlier imports, newest first, each with buttons to open and to delete it."""
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
            icon, hint = _STATE_ICONS[job.state], label("jobs_open", language)
            if draw_button(name, icon, f"job-{job.id}", type="tertiary", help=hint):
                set_param("job", job.id)
                st.rerun()
            kind = label(kind_key(job), language)
            st.caption(f"{format_time(job.created_at)} · {kind} · {job_summary(job, language)}")
        text = label("jobs_delete_hint", language)
        if draw_button("", "delete", f"forget-{job.id}", type="tertiary", help=text):
            attempt_and_rerun(lambda: jobs_of(app).delete(job.id), Notice("jobs_deleted"))


def follow_job(app: App, language: Language) -> None:
    """Draw the job in the URL until the user closes it after its end; an unknown id is removed from the URL."""
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
        if is_restore(job_id) and job.state == "done" and job.counts.get("added", 0) == job.total:
            st.markdown(label_count("pages_restored_one", "pages_restored", job.total, language))
        else:
            draw_progress(app, job, language)
        with st.container(horizontal=True, gap="small"):
            if draw_button(label("follow_details", language), "list", "follow-details"):
                go("add", job=job_id)
            if job.state == "running":
                if draw_button(label("job_cancel", language), "stop_circle", "follow-cancel"):
                    attempt_and_rerun(lambda: jobs_of(app).cancel(job_id))
            elif draw_button(label("job_close", language), "close", "follow-close", type="tertiary"):
                set_param("job", "")
                st.rerun()


def choices_of(item: JobItem, result: IngestResult) -> list[Decision]:
    """Return the available actions in order: the result's choices, and Retry if that can help."""
    offered = set(result.choices)
    if result.status == "failed" and is_web_url(item.url):
        offered.add("retry")
    return [decision for decision in _ICONS if decision in offered]


def _draw_choices(app: App, job: JobView, item: JobItem, result: IngestResult, language: Language) -> None:
    """Draw the preview of the extracted text, and a button for each choice."""
    if result.preview:
        preview = st.expander(label("decide_preview", language), icon=":material/preview:", type="compact")
        key, height = f"page-text-preview-{item.position}", text_height(result.preview, *_PREVIEW_HEIGHT)
        with preview, st.container(key=key, height=height, border=False):
            st.markdown(passage_markdown(result.preview))
    choices, other = [] if job.bulk else choices_of(item, result), str(result.notice.params.get("url_hash", ""))
    if not choices and not (result.status == "duplicate" and other):
        return
    with st.container(horizontal=True, gap="small", key=f"job-choices-{item.position}"):
        for decision in choices:
            text = label(f"decide_{decision}", language)
            if draw_button(text, _ICONS[decision], f"decide-{decision}-{item.position}"):
                attempt_and_rerun(partial(jobs_of(app).decide, job.id, item.position, decision))
        if result.status == "duplicate" and other:
            text = label("decide_open", language)
            if draw_button(text, "menu_book", f"decide-open-{item.position}", type="tertiary"):
                go("library", page=other)


def _draw_rows(app: App, job: JobView, language: Language, aside: Sequence[str] = ()) -> None:
    """Draw one page of rows, loading only these. Rows with an outcome in `aside` are collapsed."""
    if not job.total:
        return
    first = [status for status in OUTCOME_ORDER if status not in aside]
    if any(job.counts.get(status) for status in first):
        _draw_part(app, job, first, language, "job-rows")
    count = sum(job.counts.get(status, 0) for status in aside)
    if count:
        text = label_count("job_rows_aside_one", "job_rows_aside", count, language)
        with st.expander(text, icon=":material/list:", type="compact", key="job-rows-aside"):
            _draw_part(app, job, [status for status in OUTCOME_ORDER if status in aside], language, "job-rows-saved")


def _draw_part(app: App, job: JobView, statuses: Sequence[str], language: Language, key: str) -> None:
    selected = _draw_filter(job, statuses, language, key)
    visible = statuses if selected == "all" else ("" if selected == "open" else selected,)
    count = sum(job.counts.get(status, 0) for status in visible)
    page = _draw_pages(job.id, f"{key}-{selected}", count)
    with st.container(key=key, border=False):
        for status, offset, limit in slices(job.counts, visible, PAGE * (page - 1), PAGE):
            items = jobs_of(app).items(job.id, offset, limit, [status])
            titles = _titles(app, job, items)
            for item in items:
                with st.container(key=f"job-row-{item.position}", gap="xsmall"):
                    st.markdown(row_markdown(job, item, titles.get(item.position, ""), language))
                    if item.result:
                        _draw_choices(app, job, item, item.result, language)


def _titles(app: App, job: JobView, items: Sequence[JobItem]) -> dict[int, str]:
    """Return the titles of the pages by position; the sentence about a duplicate has that of the page it repeats."""
    pages = {one.position: _page_of(one.result) for one in items if one.result and one.result.status != "duplicate"}
    hashes = [page for page in pages.values() if page]
    saved = none_if_unavailable(lambda: app.library(job.library).stored_pages(hashes)) or {}
    return {position: saved[page].title for position, page in pages.items() if page in saved}


def slices(
    counts: Mapping[str, int], statuses: Sequence[str], offset: int, limit: int
) -> Iterator[tuple[str, int, int]]:
    """Yield (status, offset, limit) slices for rows `offset` to `offset + limit` in the order of `statuses`."""
    for status in statuses:
        count = counts.get(status, 0)
        size = min(limit, count - offset)
        if size > 0:
            yield status, offset, size
            limit -= size
        offset = max(0, offset - count)
        if limit <= 0:
            return


def _draw_filter(job: JobView, statuses: Sequence[str], language: Language, key: str) -> str:
    counts = {status or "open": count for status in statuses if (count := job.counts.get(status, 0))}
    if len(counts) <= 1:
        return "all"

    def title(name: str) -> str:
        if name == "all":  # without a number, which would be that of this list, not of the import
            return label("filter_all", language)
        key = "filter_open" if name == "open" else f"status_{outcome_of(job, name)}"
        return f"{label(key, language)} {counts.get(name, 0):,}"

    selected = st.pills(
        label("job_filter", language),
        ["all", *counts],
        default="all",
        format_func=title,
        key=f"{key.replace('rows', 'filter')}-{job.id}",
        label_visibility="collapsed",
    )
    return selected or "all"


def _draw_pages(job_id: str, name: str, count: int) -> int:
    pages = -(-count // PAGE)
    if pages <= 1:
        return 1
    with st.container(key="job-pages"):
        return min(pages, st.pagination(pages, key=f"job-page-{job_id}-{name}"))


def row_markdown(job: JobView, item: JobItem, title: str, language: Language) -> str:
    """Return a source as one line: its outcome or stage, its page's title or else its name, and details."""
    name, result = escape_line(shorten(title or short_source(item.source), _LONGEST_NAME)), item.result
    if result is not None:
        color, icon = _CHIPS[result.status]
        chip = f":{color}-badge[:material/{icon}: {label(f'status_{outcome_of(job, result.status)}', language)}]"
        if result.notice.code == "page_added":  # the chip says the rest
            sentence = chunk_count(result.chunks, language)
        else:
            plain = say(result.notice, language)
            sentence = escape_line(plain)
            if not title and mentions_any(plain, item.source, result.url):
                name = ""
        return " ".join(filter(None, (chip, name, f":small[:gray[{sentence}]]")))
    if job.state in ("done", "cancelled"):
        return f":gray-badge[{label('job_not_started', language)}] {name}"
    place = _STAGES.index(item.stage)
    rest = len(_STAGES) - 1 - place
    dots = (f":primary[{'●' * place}]" if place else "") + (f":gray[{'○' * rest}]" if rest else "")
    return f"{dots} :gray[{label(f'stage_{item.stage}', language)}] {name}"


def _page_of(result: IngestResult) -> str:
    """Return the url_hash of the page that has the source's text; empty if there is none."""
    return result.page_hash if result.status in SAVED else ""
