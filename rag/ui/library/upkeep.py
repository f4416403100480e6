"""Maintenance of a library: scheduled re-checks, and the move to another embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import Language, label, label_count, say
from rag.types import Notice, Page
from rag.ui.kit.actions import attempt_and_rerun, draw_failure
from rag.ui.kit.job_progress import job_summary
from rag.ui.kit.markdown import escape_line, shorten
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import draw_button, format_time

if TYPE_CHECKING:
    from rag.app import App
    from rag.ingest.schedule import ScheduleView

_DAY = 24
_UNITS = {"hours": 1, "days": _DAY}
_LIMITS = {"hours": 24 * 366, "days": 366}
_LONGEST_NAME = 40
_POLL_SECONDS = 0.7


def draw_schedules(app: App, library: str, pages: Sequence[Page], language: Language) -> None:
    """Draw the button that opens the schedules of a library and a form that adds one."""
    views = app.imports.schedules.schedules(library)
    text = label("schedules", language) + (f" ({len(views)})" if views else "")
    with st.popover(text, icon=":material/schedule:", key="schedules"), st.container(key="schedule-list"):
        for view in views:
            _draw_schedule(app, view, pages, language)
        st.markdown(f"**{label('schedule_new', language)}**")
        sites = sorted({page.site for page in pages if page.site and page.source == "web"})
        site = st.selectbox(
            label("schedule_pages", language),
            ["", *sites],
            format_func=lambda one: one or label("schedule_all", language),
            key="schedule-site",
        )
        _draw_period(app, library, "library", language, site=site or "")


def draw_page_schedule(app: App, library: str, page: Page, language: Language) -> None:
    """Draw the button that opens the schedule of one page."""
    views = [view for view in app.imports.schedules.schedules(library) if _covers(view, page)]
    own = any(view.schedule.scope == "pages" for view in views)
    text = label("schedule_page_on" if own else "schedule_page", language)
    with st.popover(text, icon=":material/schedule:", key="page-schedule"), st.container(key="schedule-list"):
        for view in views:
            _draw_schedule(app, view, [page], language)
        _draw_period(app, library, "page", language, url_hashes=(page.url_hash,))


def _covers(view: ScheduleView, page: Page) -> bool:
    schedule = view.schedule
    if schedule.scope == "pages":
        return page.url_hash in schedule.url_hashes
    return schedule.scope == "all" or schedule.site == page.site


def _draw_period(
    app: App, library: str, key: str, language: Language, *, site: str = "", url_hashes: Sequence[str] = ()
) -> None:
    number, unit = st.columns(2, vertical_alignment="bottom")
    with unit:
        name = st.selectbox(
            label("schedule_unit", language),
            list(_UNITS),
            index=1,
            format_func=lambda name: label(f"schedule_{name}", language),
            key=f"schedule-unit-{key}",
        )
    with number:
        count = st.number_input(label("schedule_every", language), 1, _LIMITS[name], 1, key=f"schedule-every-{key}")
    if draw_button(label("schedule_set", language), "check", f"schedule-set-{key}", type="primary"):
        hours = int(count) * _UNITS[name]
        done = Notice("schedule_is_set", {"period": asdict(_period(hours))})
        begin = partial(app.imports.schedules.set, library, every_hours=hours, site=site, url_hashes=url_hashes)
        attempt_and_rerun(begin, done)


def _period(hours: int) -> Notice:
    """Return "every 2 days" or "every 36 hours"."""
    unit, count = ("day", hours // _DAY) if hours % _DAY == 0 else ("hour", hours)
    return Notice(f"every_{unit}" if count == 1 else f"every_{unit}s", {"count": count})


def _draw_schedule(app: App, view: ScheduleView, pages: Sequence[Page], language: Language) -> None:
    schedule = view.schedule
    with st.container(horizontal=True, vertical_alignment="top", key=f"schedule-row-{schedule.id}", wrap=False):
        with st.container(gap=None, width="stretch"):
            name = escape_line(shorten(_schedule_name(view, pages, language), _LONGEST_NAME))
            st.markdown(f"**{name}** · {say(_period(schedule.every_hours), language)}")
            lines = [label("schedule_next", language, when=format_time(schedule.next_at))]
            if view.last:
                when, summary = format_time(view.last.created_at), job_summary(view.last, language)
                lines.append(label("schedule_last", language, when=when, summary=summary))
            st.caption("  \n".join(lines))
        key, hint = f"schedule-last-{schedule.id}", label("jobs_open", language)
        if view.last and draw_button("", "list", key, type="tertiary", help=hint):
            go("add", job=view.last.id)
        key, hint = f"schedule-remove-{schedule.id}", label("schedule_remove", language)
        if draw_button("", "delete", key, type="tertiary", help=hint):
            attempt_and_rerun(lambda: app.imports.schedules.remove(schedule.id), Notice("schedule_removed"))


def _schedule_name(view: ScheduleView, pages: Sequence[Page], language: Language) -> str:
    schedule = view.schedule
    if schedule.scope == "all":
        return label("schedule_all", language)
    if schedule.scope == "site":
        return schedule.site
    titles = [page.title for page in pages if page.url_hash in schedule.url_hashes and page.title]
    if len(schedule.url_hashes) == 1 and titles:
        return titles[0]
    return label_count("schedule_chosen_one", "schedule_chosen", len(schedule.url_hashes), language)


def draw_move_buttons(app: App, library: str, language: Language) -> None:
    """Draw the buttons that move the library to the app's model or back to its previous one; none during a move."""
    info = next((info for info in app.libraries.infos() if info.name == library and info.embedding_model), None)
    move = app.moves.move(library)
    if info is None or (move and move.is_running):
        return
    current = app.libraries.current_model()
    if current and info.embedding_model != current:
        text = label("move_go", language, model=current)
        if draw_button(text, "upgrade", "move-go", help=label("move_go_help", language)):
            attempt_and_rerun(lambda: app.moves.begin(library, current))
    until = info.revertible_until
    if until and datetime.now(UTC) < until and info.previous_model != current:
        text = label("move_back", language, model=info.previous_model)
        names = {"model": info.embedding_model, "previous": info.previous_model}
        hint = label("move_kept", language, until=format_time(until.isoformat()), **names)
        if draw_button(text, "undo", "move-back", type="tertiary", help=hint):
            attempt_and_rerun(lambda: app.moves.go_back(library))


def follow_move(app: App, library: str, language: Language) -> None:
    """Draw the progress of the library's move, then the comparison of the two models."""
    move = app.moves.move(library)
    if move is not None:
        every = _POLL_SECONDS if move.is_running else None
        st.fragment(_draw_move, run_every=every)(app, library, language, live=move.is_running)


def _draw_move(app: App, library: str, language: Language, *, live: bool) -> None:
    move = app.moves.move(library)
    if move is None or (live and not move.is_running):
        st.rerun()
    with st.container(border=True, key="move", gap="small"):
        title = "move_done" if move.state == "done" else "move_title"
        st.markdown(f"**{label(title, language, model=escape_line(move.model))}**")
        if move.is_running:
            text = label("move_building", language, done=f"{move.done:,}", total=f"{move.total:,}")
            if move.state == "comparing":
                text = label("move_comparing", language)
            elif not move.total:
                text = label("transfer_begins", language)
            st.progress(move.done / move.total if move.total else 0.0, text)
            return
        if move.notice:
            draw_failure(move.notice, language)
        if move.state == "done" and move.asked:
            st.markdown(label("move_compared", language, found=move.found, asked=move.asked))
        if draw_button(label("job_close", language), "close", "move-close", type="tertiary"):
            app.moves.forget(library)
            st.rerun()
