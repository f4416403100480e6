"""The list of a library's pages: filters and sorting, actions, and a table whose rows open a page or are selected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import streamlit as st

from rag.locales import Language, label, label_count, language_name
from rag.types import Notice, Page
from rag.ui.kit.actions import attempt_and_rerun, confirm_removal
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import draw_button, draw_field, draw_table, format_time, short_source
from rag.ui.kit.session import cached, person_id, reset_count, reset_widgets, set_param

if TYPE_CHECKING:
    from rag.app import App

State = Literal["all", "changed", "gone", "left_out"]
Age = Literal["any", "day", "week", "month", "older", "unchecked"]
Sort = Literal["newest", "oldest", "title", "site", "changed", "checked", "longest"]
_STATES: tuple[State, ...] = get_args(State)
AGES: tuple[Age, ...] = get_args(Age)
_SORT_KEYS: dict[Sort, tuple[Callable[[Page], Any], bool]] = {
    "newest": (lambda page: page.added_at, True),
    "oldest": (lambda page: page.added_at, False),
    "title": (lambda page: (page.title or page.url).casefold(), False),
    "site": (lambda page: (page.site, page.title.casefold()), False),
    "changed": (lambda page: page.updated_at, True),
    "checked": (lambda page: page.checked_at or page.added_at, False),
    "longest": (lambda page: page.characters, True),
}
"""The key of each order, and whether it is reversed."""
_RECENT = timedelta(days=7)
_MONTH = timedelta(days=30)
_AGE_LIMITS: dict[str, timedelta] = {"day": timedelta(days=1), "week": timedelta(days=7), "month": _MONTH}
_KEY = "page-filter"
_MAX_CANDIDATES = 300
_ROW, _HEIGHT = 35, 530


@dataclass(frozen=True, slots=True)
class PageFilter:
    """The selected filters; an empty string is no filter. With `in_text`, `words` are searched in the page texts."""

    words: str = ""
    in_text: bool = False
    site: str = ""
    language: str = ""
    state: State = "all"
    age: Age = "any"
    sort: Sort = "newest"
    subject: str = ""

    @property
    def filter_count(self) -> int:
        """Number of active filters besides words and status."""
        return sum((bool(self.site), bool(self.language), self.age != "any"))


@dataclass(frozen=True, slots=True)
class FilteredPages:
    """The pages to list, in order, and the number of matching pages per state, before the filter by state."""

    pages: list[Page]
    counts: Mapping[State, int]


def state_of(page: Page, excluded: Collection[str], now: datetime) -> State | Literal["active"]:
    """Return a page's most important status: gone, excluded or recently changed."""
    if page.status == "gone":
        return "gone"
    if page.url_hash in excluded:
        return "left_out"
    return "changed" if _is_recently_changed(page, now) else "active"


def _is_recently_changed(page: Page, now: datetime) -> bool:
    return page.version > 1 and _time_since(page.updated_at, now) <= _RECENT


def filter_pages(
    pages: Sequence[Page],
    criteria: PageFilter,
    excluded: Collection[str],
    *,
    matches: Sequence[str] = (),
    within: Collection[str] | None = None,
    now: datetime | None = None,
) -> FilteredPages:
    """Filter and sort pages.

    `matches` are the url_hashes that a full-text search found, best first; `within` those of the selected topic.
    """
    at = now or datetime.now(UTC)
    places = {url_hash: place for place, url_hash in enumerate(matches)}
    candidates = pages if within is None else [page for page in pages if page.url_hash in within]
    by_text, words = criteria.in_text and criteria.words, criteria.words.casefold().split()
    counts: Counter[State] = Counter()
    selected = []
    for page in candidates:
        text = f"{page.title} {page.site} {page.url} {' '.join(page.aliases)}".casefold()
        has_words = page.url_hash in places if by_text else all(word in text for word in words)
        if not has_words or not _matches_fields(page, criteria, at):
            continue
        states: list[State] = ["all"]
        states += ["changed"] if _is_recently_changed(page, at) else []
        states += ["gone"] if page.status == "gone" else []
        states += ["left_out"] if page.url_hash in excluded else []
        counts.update(states)
        if criteria.state in states:
            selected.append(page)
    if by_text:
        selected.sort(key=lambda page: places[page.url_hash])
    else:
        key, reverse = _SORT_KEYS[criteria.sort]
        selected.sort(key=key, reverse=reverse)
    return FilteredPages(selected, {state: counts[state] for state in _STATES})


def _matches_fields(page: Page, criteria: PageFilter, now: datetime) -> bool:
    if (criteria.site and page.site != criteria.site) or (criteria.language and page.language != criteria.language):
        return False
    if criteria.age == "unchecked":
        return page.source == "web" and _time_since(page.checked_at or page.added_at, now) > _MONTH
    added = _time_since(page.added_at, now)
    if criteria.age == "older":
        return added > _MONTH
    return criteria.age == "any" or added <= _AGE_LIMITS[criteria.age]


def age_of(page: Page, now: datetime) -> Age:
    """Return the narrowest age range that includes the page."""
    return next(
        (age for age in AGES if age in (*_AGE_LIMITS, "older") and _matches_fields(page, PageFilter(age=age), now)),
        "older",
    )


def _time_since(iso: str, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(iso) if iso else timedelta.max


def current_filter() -> PageFilter:
    """Return this tab's choices, which persist across pages."""
    criteria: PageFilter = st.session_state.setdefault(_KEY, PageFilter())
    return criteria


def draw_search(pages: Sequence[Page], language: Language) -> None:
    """Draw the search box, the full-text switch, and the button that opens the filters."""
    criteria = current_filter()
    with st.container(horizontal=True, vertical_alignment="center", key="page-filter-search", gap="small"):
        _draw_field(
            st.text_input,
            "words",
            criteria.words,
            label("library_filter", language),
            placeholder=label("library_filter_text" if criteria.in_text else "library_filter", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=not criteria.in_text,
        )
        text, hint = label("library_in_text", language), label("library_in_text_hint", language)
        _draw_field(st.toggle, "in_text", criteria.in_text, text, help=hint)
        text = label("library_filters", language)
        text += f" ({criteria.filter_count})" if criteria.filter_count else ""
        with st.popover(text, icon=":material/tune:", key="page-filter-menu"):
            _draw_choice("sort", list(_SORT_KEYS), lambda one: label(f"sort_{one}", language), language)
            sites = ["", *sorted({page.site for page in pages} - {""})]
            every = label("filters_any", language)
            _draw_choice("site", sites, lambda one: one or every, language)
            tags = ["", *sorted({page.language for page in pages} - {""})]
            _draw_choice("language", tags, lambda one: language_name(one, language) if one else every, language)
            _draw_choice("age", AGES, lambda one: label(f"age_{one}", language), language)
            if criteria != PageFilter():
                text, key = label("filters_clear", language), "page-filter-clear"
                st.button(text, key=key, type="tertiary", on_click=_set_filter, args=(PageFilter(),))


def _draw_choice(name: str, options: Sequence[str], name_of: Callable[[str], str], language: Language) -> None:
    value = getattr(current_filter(), name)
    value, text = value if value in options else options[0], label(f"shelf_{name}", language)
    _draw_field(st.selectbox, name, value, text, options=options, format_func=name_of)


def draw_states(counts: Mapping[State, int], language: Language) -> None:
    """Draw the status filter: all pages, recently changed, gone, excluded, each with its count."""
    criteria = current_filter()
    states = [state for state in _STATES if counts[state] or state in ("all", criteria.state)]
    if states == ["all"]:
        return
    _draw_field(
        st.pills,
        "state",
        criteria.state,
        label("library_state", language),
        options=states,
        required=True,
        format_func=lambda state: f"{label(f'state_{state}', language)} {counts.get(state, 0):,}",
        label_visibility="collapsed",
    )


def draw_subjects(subjects: Sequence[str], language: Language) -> None:
    """Draw the topics as filters; a topic that no longer exists is cleared."""
    if current_filter().subject not in subjects:
        _set_filter(replace(current_filter(), subject=""))
    if subjects:
        value, text = current_filter().subject or None, label("library_subjects", language)
        options: dict[str, Any] = {"format_func": escape_line, "label_visibility": "collapsed"}
        _draw_field(st.pills, "subject", value, text, options=subjects, **options)


def apply_subject() -> None:
    """Select the topic in the URL and remove it from there."""
    if subject := st.query_params.get("subject", ""):
        _set_filter(PageFilter(subject=subject))
        set_param("subject", "")


def search_texts(app: App, library: str, words: str, language: Language) -> list[str]:
    """Return the url_hashes of pages that a keyword search finds, best first; cached until words or pages change."""

    def find() -> list[str]:
        with st.spinner(label("library_searching", language)):
            result = app.search(words, library=library, strategy="keyword", fetch_k=_MAX_CANDIDATES)
        return list(dict.fromkeys(candidate.passage.url_hash for candidate in result.candidates))

    return cached("page-filter-matches", (library, words, app.library(library).page_count()), find)


def _draw_field(draw: Callable[..., Any], name: str, value: object, text: str, **options: Any) -> None:
    draw_field(draw, f"library-{name}", value, text, _store, name, **options)


def _store(name: str) -> None:
    value = st.session_state[f"library-{name}"]
    _set_filter(replace(current_filter(), **{name: value if value is not None else getattr(PageFilter(), name)}))


def _set_filter(criteria: PageFilter) -> None:
    st.session_state[_KEY] = criteria


def draw_page_table(
    pages: Sequence[Page], excluded: Collection[str], identity: str, language: Language
) -> tuple[Page | None, list[Page]]:
    """Draw the table; return the page whose cell was clicked, and the selected pages.

    `identity` must differ between lists of pages, since rows are selected by position.
    """
    now = datetime.now(UTC)
    rows = [
        {
            "title": page.title or short_source(page.url),
            "state": label(f"row_{state_of(page, excluded, now)}", language),
            "site": page.site,
            "language": language_name(page.language, language),
            "chunks": page.chunks,
            "added": _day(page.added_at),
            "changed": _day(page.updated_at) if page.version > 1 else "",
            "checked": _day(page.checked_at),
        }
        for page in pages
    ]
    values = {name: {row[name] for row in rows} for name in rows[0]}
    columns = [  # the title, and those whose values differ between pages
        name for name, data in values.items() if name == "title" or len(data) > 1 or (len(rows) == 1 and "" not in data)
    ]
    state = draw_table(
        rows,
        hide_index=True,
        column_order=columns,
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        key=f"table-{language}-{reset_count('table')}-{identity}",
        column_config=_columns(language),
        height=min(_ROW * (len(pages) + 1) + 3, _HEIGHT),
        row_height=_ROW,
        placeholder="",
    )
    selection = state["selection"]
    cells = [row for row, _ in selection["cells"] if row < len(pages)]
    selected = [pages[row] for row in selection["rows"] if row < len(pages)]
    return pages[cells[0]] if cells else None, selected


def clear_selection() -> None:
    """Clear the selection before the table is drawn next."""
    reset_widgets("table")


def _day(iso: str) -> str:
    return format_time(iso)[:10]


def _columns(language: Language) -> dict[str, Any]:
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    widths = {"title": 320, "state": 80, "site": 120, "language": 70, "added": 88, "changed": 88, "checked": 88}
    return {
        "chunks": number(label("column_chunks", language), width=75),
        **{name: text(label(f"column_{name}", language), width=width) for name, width in widths.items()},
    }


def draw_bulk(app: App, library: str, selected: Sequence[Page], excluded: Collection[str], language: Language) -> None:
    """Draw buttons for the selected pages."""
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="bulk", gap="small"):
        st.markdown(f"**{label_count('bulk_one', 'bulk', len(selected), language)}**", width="content")
        draw_page_actions(app, library, selected, excluded, language, key="bulk")


def draw_page_actions(
    app: App, library: str, pages: Sequence[Page], excluded: Collection[str], language: Language, *, key: str
) -> None:
    """Draw the buttons for these pages into the current container: re-check, exclude or include, delete."""
    hashes = [page.url_hash for page in pages]
    web = [page.url_hash for page in pages if page.source == "web"]
    text = label("page_recheck", language)
    hint = None if web else label("page_recheck_no", language)
    if draw_button(text, "sync", f"{key}-recheck", disabled=not web, help=hint):
        recheck(app, library, web, title=pages[0].title if len(pages) == 1 else "")
    if any(url_hash not in excluded for url_hash in hashes):
        text, hint = label("page_leave_out", language), label("page_leave_out_hint", language)
        if draw_button(text, "visibility_off", f"{key}-leave-out", help=hint):
            _set_excluded(app, library, hashes, True)
    if any(url_hash in excluded for url_hash in hashes):
        text = label("page_let_in", language)
        if draw_button(text, "visibility", f"{key}-let-in"):
            _set_excluded(app, library, hashes, False)
    if draw_button(label("library_remove_go", language), "delete", f"{key}-remove"):
        confirm_removal(app, library, pages, language, key, _close_page)


def recheck(app: App, library: str, hashes: Sequence[str] | None, *, site: str = "", title: str = "") -> None:
    """Start a re-check of these pages, or of all, and show its progress."""
    begin = partial(app.imports.jobs.recheck, library, hashes, site or None, owner=person_id(), title=title)
    attempt_and_rerun(lambda: set_param("job", begin()))


def _set_excluded(app: App, library: str, hashes: Sequence[str], excluded: bool) -> None:
    done = Notice("pages_left_out" if excluded else "pages_let_in")
    attempt_and_rerun(lambda: app.set_excluded(library, hashes, excluded), done)


def _close_page() -> None:
    clear_selection()
    set_param("page", "")
