"""Filtering and sorting of a library's pages, and the controls for it above the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import streamlit as st

from rag.locales import Language, label
from rag.types import Page
from rag.ui.kit.markdown import escape_line
from rag.ui.kit.parts import language_name
from rag.ui.kit.session import set_param

if TYPE_CHECKING:
    from rag.app import App

State = Literal["all", "changed", "gone", "left_out"]
Age = Literal["any", "day", "week", "month", "older", "unchecked"]
Sort = Literal["newest", "oldest", "title", "site", "changed", "checked", "longest"]
_STATES: tuple[State, ...] = get_args(State)
AGES: tuple[Age, ...] = get_args(Age)
_SORTS: tuple[Sort, ...] = get_args(Sort)
_RECENTLY = timedelta(days=7)
_LONG = timedelta(days=30)
_WITHIN: dict[str, timedelta] = {"day": timedelta(days=1), "week": timedelta(days=7), "month": _LONG}
_KEY = "shelf"
_MAX_CANDIDATES = 300


@dataclass(frozen=True, slots=True)
class PageFilter:
    """The chosen filters; an empty string is no filter. With `in_text`, `words` are searched in the texts."""

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
    """The pages to list, in order, and the number of pages in each state among those that match all else."""

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
    return page.version > 1 and _since(page.updated_at, now) <= _RECENTLY


def arrange(
    pages: Sequence[Page],
    criteria: PageFilter,
    excluded: Collection[str],
    *,
    matches: Sequence[str] = (),
    within: Collection[str] | None = None,
    now: datetime | None = None,
) -> FilteredPages:
    """Filter and sort pages.

    `matches` has the hashes that a search of the texts found, best first; `within` those of the selected topic.
    """
    moment = now or datetime.now(UTC)
    places = {url_hash: place for place, url_hash in enumerate(matches)}
    candidates = pages if within is None else [page for page in pages if page.url_hash in within]
    matching = [page for page in candidates if _fits(page, criteria, moment) and _has_words(page, criteria, places)]
    counts: Counter[State] = Counter()
    selected = []
    for page in matching:
        states = _states(page, excluded, moment)
        counts.update(states)
        if criteria.state in states:
            selected.append(page)
    if criteria.in_text and criteria.words:
        selected.sort(key=lambda page: places[page.url_hash])
    else:
        _sort(selected, criteria.sort)
    return FilteredPages(selected, {state: counts[state] for state in _STATES})


def _states(page: Page, excluded: Collection[str], now: datetime) -> list[State]:
    states: list[State] = ["all"]
    states += ["changed"] if _is_recently_changed(page, now) else []
    states += ["gone"] if page.status == "gone" else []
    states += ["left_out"] if page.url_hash in excluded else []
    return states


def _has_words(page: Page, criteria: PageFilter, places: Mapping[str, int]) -> bool:
    if criteria.in_text and criteria.words:
        return page.url_hash in places
    text = f"{page.title} {page.site} {page.url} {' '.join(page.aliases)}".casefold()
    return all(part in text for part in criteria.words.casefold().split())


def _fits(page: Page, criteria: PageFilter, now: datetime) -> bool:
    if (criteria.site and page.site != criteria.site) or (criteria.language and page.language != criteria.language):
        return False
    if criteria.age == "unchecked":
        return page.source == "web" and _since(page.checked_at or page.added_at, now) > _LONG
    added = _since(page.added_at, now)
    if criteria.age == "older":
        return added > _LONG
    return criteria.age == "any" or added <= _WITHIN[criteria.age]


def age_of(page: Page, now: datetime) -> Age:
    """Return the narrowest age that the page fits."""
    return next((age for age in AGES if age in (*_WITHIN, "older") and _fits(page, PageFilter(age=age), now)), "older")


def _since(iso: str, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(iso) if iso else timedelta.max


def _sort(pages: list[Page], sort: Sort) -> None:
    if sort in ("newest", "oldest"):
        pages.sort(key=lambda page: page.added_at, reverse=sort == "newest")
    elif sort == "changed":
        pages.sort(key=lambda page: page.updated_at, reverse=True)
    elif sort == "checked":
        pages.sort(key=lambda page: page.checked_at or page.added_at)
    elif sort == "longest":
        pages.sort(key=lambda page: page.characters, reverse=True)
    elif sort == "site":
        pages.sort(key=lambda page: (page.site, page.title.casefold()))
    else:
        pages.sort(key=lambda page: (page.title or page.url).casefold())


def current_filter() -> PageFilter:
    """Return this tab's choices, which persist across pages."""
    criteria: PageFilter = st.session_state.setdefault(_KEY, PageFilter())
    return criteria


def draw_search(pages: Sequence[Page], language: Language) -> None:
    """Draw the search box, the full-text switch, and the button that opens the filters."""
    criteria = current_filter()
    with st.container(horizontal=True, vertical_alignment="center", key="shelf-search", gap="small"):
        _set_widget("words", criteria.words)
        st.text_input(
            label("library_filter", language),
            key="library-words",
            placeholder=label("library_filter_text" if criteria.in_text else "library_filter", language),
            icon=":material/search:",
            label_visibility="collapsed",
            live=not criteria.in_text,
            on_change=_store,
            args=("words",),
        )
        _set_widget("in_text", criteria.in_text)
        st.toggle(
            label("library_in_text", language),
            key="library-in_text",
            help=label("library_in_text_hint", language),
            on_change=_store,
            args=("in_text",),
        )
        _draw_filters(pages, criteria, language)


def _draw_filters(pages: Sequence[Page], criteria: PageFilter, language: Language) -> None:
    text = label("library_filters", language)
    text += f" ({criteria.filter_count})" if criteria.filter_count else ""
    with st.popover(text, icon=":material/tune:", key="shelf-filters"):
        _draw_choice("sort", _SORTS, lambda one: label(f"sort_{one}", language), language)
        sites = ["", *sorted({page.site for page in pages} - {""})]
        every = label("filters_any", language)
        _draw_choice("site", sites, lambda one: one or every, language)
        tags = ["", *sorted({page.language for page in pages} - {""})]
        _draw_choice("language", tags, lambda one: language_name(one, language) if one else every, language)
        _draw_choice("age", AGES, lambda one: label(f"age_{one}", language), language)
        if criteria != PageFilter():
            st.button(label("filters_clear", language), key="shelf-clear", type="tertiary", on_click=_clear)


def _draw_choice(name: str, options: Sequence[str], name_of: Callable[[str], str], language: Language) -> None:
    value = getattr(current_filter(), name)
    _set_widget(name, value if value in options else options[0])
    st.selectbox(
        label(f"shelf_{name}", language),
        options,
        key=f"library-{name}",
        format_func=name_of,
        on_change=_store,
        args=(name,),
    )


def draw_states(counts: Mapping[State, int], language: Language) -> None:
    """Draw the status filter: all pages, recently changed, gone, excluded, each with its number."""
    criteria = current_filter()
    states = [state for state in _STATES if counts[state] or state in ("all", criteria.state)]
    if states == ["all"]:
        return
    _set_widget("state", criteria.state)
    st.pills(
        label("library_state", language),
        states,
        required=True,
        format_func=lambda state: f"{label(f'state_{state}', language)} {counts.get(state, 0):,}",
        key="library-state",
        label_visibility="collapsed",
        on_change=_store,
        args=("state",),
    )


def draw_subjects(subjects: Sequence[str], language: Language) -> None:
    """Draw the topics as filters; a topic that no longer exists is cleared."""
    if current_filter().subject not in subjects:
        _set_filter(replace(current_filter(), subject=""))
    if subjects:
        _set_widget("subject", current_filter().subject or None)
        st.pills(
            label("library_subjects", language),
            subjects,
            format_func=escape_line,
            key="library-subject",
            label_visibility="collapsed",
            on_change=_store,
            args=("subject",),
        )


def apply_subject() -> None:
    """Select the topic in the address, and remove it from there."""
    if subject := st.query_params.get("subject", ""):
        _set_filter(PageFilter(subject=subject))
        set_param("subject", "")


def search_texts(app: App, library: str, words: str, language: Language) -> list[str]:
    """Return hashes of the pages whose texts the keyword search finds, best first; cached until the words change."""
    key = (library, words, app.library(library).page_count())
    cached: Any = st.session_state.get("shelf-found")
    if cached is None or cached[0] != key:
        with st.spinner(label("library_searching", language)):
            result = app.search(words, library=library, strategy="keyword", fetch_k=_MAX_CANDIDATES)
        hashes = list(dict.fromkeys(candidate.passage.url_hash for candidate in result.candidates))
        st.session_state["shelf-found"] = cached = (key, hashes)
    hits: list[str] = cached[1]
    return hits


def _set_widget(name: str, value: object) -> None:
    """Set a widget's value, which Streamlit forgets while another page is shown."""
    st.session_state[f"library-{name}"] = value


def _store(name: str) -> None:
    value = st.session_state[f"library-{name}"]
    _set_filter(replace(current_filter(), **{name: value if value is not None else getattr(PageFilter(), name)}))


def _clear() -> None:
    _set_filter(PageFilter())


def _set_filter(criteria: PageFilter) -> None:
    st.session_state[_KEY] = criteria
