"""Regular re-checks: their pages, interval, next time, and last result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import streamlit as st

from rag.locales import say
from rag.types import Notice, Page
from rag.ui.kit.attempt import attempt
from rag.ui.kit.escape import escape_line, shorten
from rag.ui.kit.job_progress import summary
from rag.ui.kit.navigation import go
from rag.ui.kit.parts import moment
from rag.ui.kit.strings import Language, counted, label

if TYPE_CHECKING:
    from rag.app import App
    from rag.ingest.schedule import ScheduleView

_DAY = 24
_UNITS = {"hours": 1, "days": _DAY}
_LIMITS = {"hours": 24 * 366, "days": 366}
_LONGEST = 40


def draw_schedules(app: App, library: str, pages: Sequence[Page], language: Language) -> None:
    """Draw the button that opens the schedules of a library and the form for another one."""
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
    if st.button(label("schedule_set", language), type="primary", icon=":material/check:", key=f"schedule-set-{key}"):
        hours = int(count) * _UNITS[name]
        done = Notice("schedule_is_set", {"period": asdict(period(hours))})

        def begin() -> None:
            app.imports.schedules.set(library, every_hours=hours, site=site, url_hashes=url_hashes)

        attempt(begin, done)
        st.rerun()


def period(hours: int) -> Notice:
    """Return "every 2 days" or "every 36 hours"."""
    unit, count = ("day", hours // _DAY) if hours % _DAY == 0 else ("hour", hours)
    return Notice(f"every_{unit}" if count == 1 else f"every_{unit}s", {"count": count})


def _draw_schedule(app: App, view: ScheduleView, pages: Sequence[Page], language: Language) -> None:
    schedule = view.schedule
    with st.container(horizontal=True, vertical_alignment="top", key=f"schedule-row-{schedule.id}", wrap=False):
        with st.container(gap=None, width="stretch"):
            name = escape_line(shorten(_name(view, pages, language), _LONGEST))
            st.markdown(f"**{name}** · {say(period(schedule.every_hours), language)}")
            st.caption("  \n".join(_describe(view, language)))
        if view.last and st.button(
            "",
            icon=":material/list:",
            key=f"schedule-last-{schedule.id}",
            type="tertiary",
            help=label("jobs_open", language),
        ):
            go("add", job=view.last.id)
        if st.button(
            "",
            icon=":material/delete:",
            key=f"schedule-remove-{schedule.id}",
            type="tertiary",
            help=label("schedule_remove", language),
        ):
            attempt(lambda: app.imports.schedules.remove(schedule.id), Notice("schedule_removed"))
            st.rerun()


def _name(view: ScheduleView, pages: Sequence[Page], language: Language) -> str:
    schedule = view.schedule
    if schedule.scope == "all":
        return label("schedule_all", language)
    if schedule.scope == "site":
        return schedule.site
    titles = [page.title for page in pages if page.url_hash in schedule.url_hashes and page.title]
    if len(schedule.url_hashes) == 1 and titles:
        return titles[0]
    return counted("schedule_chosen_one", "schedule_chosen", len(schedule.url_hashes), language)


def _describe(view: ScheduleView, language: Language) -> list[str]:
    lines = [label("schedule_next", language, when=moment(view.schedule.next_at))]
    if view.last:
        when = moment(view.last.created_at)
        lines.append(label("schedule_last", language, when=when, summary=summary(view.last, language)))
    return lines
