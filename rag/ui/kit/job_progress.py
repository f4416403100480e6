"""The progress of an import, and the card after it: its pages, a quote from each, and questions they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, get_args

import streamlit as st

from rag.errors import RagError
from rag.locales import Language, label, label_count
from rag.types import IngestStatus, Page, Stage
from rag.ui.kit.actions import none_if_unavailable
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button, short_source
from rag.ui.kit.session import session

if TYPE_CHECKING:
    from rag.app import App, JobView
    from rag.app.overviews import Overview
    from rag.store.sql.job_table import Job

_STAGES: tuple[Stage, ...] = get_args(Stage)
_STATUSES: tuple[IngestStatus, ...] = get_args(IngestStatus)
_MAX_NAMES = 3
_LONGEST_NAME = 60
_CARD_PAGES: Final = 5  # the others are collapsed
_CARD_SUMMARIES: Final = 3  # page summaries to offer if there are no questions
_LONGEST_TITLE, _LONGEST_SENTENCE = 90, 260
_POLL_SECONDS: Final = 0.5


def job_name(job: JobView, language: Language) -> str:
    """Return the name of an import, unescaped."""
    title = shorten(short_source(job.title), _LONGEST_NAME)
    if job.kind != "pages" or job.bulk:
        return title or label("job_name_all" if job.kind == "recheck" else "job_title", language)
    if job.total > 1 and title:
        return label("job_name_more", language, name=title, count=f"{job.total - 1:,}")
    return title or label("job_title", language)


def kind_key(job: Job) -> str:
    """Return the label key of the kind of import."""
    return "job_kind_bulk" if job.bulk else f"job_kind_{job.kind}"


def draw_progress(app: App, job: JobView, language: Language) -> None:
    """Draw a progress bar with counts, rate and current sources, or the summary of a job that has ended."""
    if job.state in ("done", "cancelled"):
        st.markdown(label(f"job_{job.state}", language, summary=job_summary(job, language)))
        return
    if job.state == "running" and (outage := app.outage()):
        st.progress(job.done / max(1, job.total), label("job_away", language, since=str(outage.params["since"])))
        return
    if job.state == "running" and not job.bulk and not app.models.ready():
        st.progress(0.0, label("job_loading", language))
        return
    if job.discovery == "waiting" and not job.total:
        st.progress(0.0, label("job_finding", language))
        return
    started = sum(_STAGES.index(item.stage) / (len(_STAGES) - 1) for item in job.current)
    share = min(1.0, (job.done + started) / max(1, job.total))
    st.progress(share, _progress_words(job, language))
    lines = [job_summary(job, language)] if job.done else []
    lines += [label("job_bulk_hint", language)] if job.bulk and job.state == "running" else []
    names = [escape_line(shorten(short_source(item.source), _LONGEST_NAME)) for item in job.current[:_MAX_NAMES]]
    lines += [label("job_current", language, names=" · ".join(names))] if names else []
    if lines:
        st.caption("  \n".join(lines))


def _progress_words(job: JobView, language: Language) -> str:
    key = "job_progress_found" if job.kind != "pages" and job.state == "running" else "job_progress"
    key = "job_progress_bulk" if job.bulk else key
    rows = job.pages.get("failed", 0) + job.pages.get("held", 0)  # items of single pages; a bulk job counts batches
    parts = [label(key, language, done=f"{job.done - rows:,}", count=f"{job.total - rows:,}")]
    if job.state == "paused":
        return " · ".join([*parts, label("job_paused", language)])
    if job.rate is not None:
        parts.append(label("job_rate", language, rate=f"{job.rate:,.0f}" if job.rate >= 1 else "<1"))
    if job.seconds_left is not None:
        parts.append(time_left(job.seconds_left, language))
    return " · ".join(parts)


def time_left(seconds: float, language: Language) -> str:
    """Return a text like "about 4 min left", rounded, since it is an estimate."""
    if seconds < 50:
        return label("job_left_seconds", language, count=max(5, 5 * round(seconds / 5)))
    if seconds < 3600:
        return label("job_left_minutes", language, count=max(1, round(seconds / 60)))
    return label("job_left_hours", language, count=f"{seconds / 3600:.1f}")


def outcome_of(job: Job, status: str) -> str:
    """Return an outcome's name for labels: an unchanged page is `here`, except in a re-check."""
    return "here" if status == "unchanged" and job.kind != "recheck" else status


def job_summary(job: Job, language: Language) -> str:
    """Return the counts by outcome, like "11 added · 1 failed"."""
    totals = job.pages if job.bulk else job.counts
    counts = {outcome_of(job, status): totals[status] for status in _STATUSES if totals.get(status)}
    parts = [label(f"count_{status}", language, count=f"{count:,}") for status, count in counts.items()]
    nothing = "count_none" if job.state in ("done", "cancelled") else "count_nothing"
    return " · ".join(parts) or label(nothing, language)


def draw_import_card(
    app: App,
    library: str,
    url_hashes: Sequence[str],
    ask: Callable[[str], object],
    language: Language,
    *,
    key: str,
    samples: Sequence[str] = (),
) -> None:
    """Draw the card of these pages, nothing if all are deleted; a click on a question calls `ask` with it.

    `samples` are questions that these pages are known to answer.
    """
    pages = none_if_unavailable(lambda: app.library(library).stored_pages(url_hashes)) if url_hashes else None
    existing = [url_hash for url_hash in dict.fromkeys(url_hashes) if url_hash in pages] if pages else []
    if not existing:
        return
    future = app.overviews.get(library, existing, app.reasoner(library, session().chat), language)
    if not future.done():
        st.fragment(_wait_for_card, run_every=_POLL_SECONDS)(app, library, existing, language)
        return
    try:
        overview = future.result()
    except RagError:
        return
    with st.container(key=f"import-card-{key}", gap="small"):
        _draw_card_pages(overview, len(existing), language, key)
        summaries = [
            label("near_page", language, title=page.title) for page, _ in overview.pages[:_CARD_SUMMARIES] if page.title
        ]
        questions = samples or overview.questions or summaries
        if questions:
            st.markdown(f":gray[{label('chat_examples', language)}]")
            with st.container(key=f"card-questions-{key}", gap="xsmall"):
                for place, question in enumerate(questions):
                    if draw_button(escape_line(question), "arrow_outward", f"card-ask-{place}-{key}"):
                        ask(question)


def _wait_for_card(app: App, library: str, url_hashes: Sequence[str], language: Language) -> None:
    if app.overviews.get(library, url_hashes, app.reasoner(library, session().chat), language).done():
        st.rerun()
    st.caption(f":material/progress_activity: {label('card_waiting', language)}")


def _draw_card_pages(overview: Overview, count: int, language: Language, key: str) -> None:
    first, rest = overview.pages[:_CARD_PAGES], overview.pages[_CARD_PAGES:]
    for page, sentence in first:
        _draw_card_page(page, sentence, key)
    if rest:
        text = label_count("card_more_one", "card_more", count - _CARD_PAGES, language)
        with st.expander(text, type="compact", key=f"card-more-{key}"):
            for page, sentence in rest:
                _draw_card_page(page, sentence, key)
            if count > len(overview.pages):
                st.caption(label("card_in_library", language))


def _draw_card_page(page: Page, sentence: str, key: str) -> None:
    title = escape_line(shorten(page.title or short_source(page.url), _LONGEST_TITLE))
    with st.container(key=f"card-page-{key}-{page.url_hash}", gap=None):
        if draw_button(title, "article", f"card-open-{key}-{page.url_hash}", type="tertiary"):
            go("library", page=page.url_hash)
        if sentence:
            quote = escape_line(shorten(sentence, _LONGEST_SENTENCE))
            st.caption(f"“{quote}”")
