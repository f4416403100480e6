"""Filtering and sorting of a library's pages, without widgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from rag.types import Page

State = Literal["all", "changed", "gone", "left_out"]
Age = Literal["any", "day", "week", "month", "older", "unchecked"]
Sort = Literal["newest", "oldest", "title", "site", "changed", "checked", "longest"]
STATES: tuple[State, ...] = get_args(State)
AGES: tuple[Age, ...] = get_args(Age)
SORTS: tuple[Sort, ...] = get_args(Sort)
RECENTLY = timedelta(days=7)
_LONG = timedelta(days=30)
_WITHIN: dict[str, timedelta] = {"day": timedelta(days=1), "week": timedelta(days=7), "month": _LONG}


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
    return "changed" if is_recently_changed(page, now) else "active"


def is_recently_changed(page: Page, now: datetime) -> bool:
    return page.version > 1 and _since(page.updated_at, now) <= RECENTLY


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
    return FilteredPages(selected, {state: counts[state] for state in STATES})


def _states(page: Page, excluded: Collection[str], now: datetime) -> list[State]:
    states: list[State] = ["all"]
    states += ["changed"] if is_recently_changed(page, now) else []
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
