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
LATELY = timedelta(days=7)
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
    def narrowed(self) -> int:
        """Return the number of active filters besides words and status."""
        return sum((bool(self.site), bool(self.language), self.age != "any"))


@dataclass(frozen=True, slots=True)
class Shown:
    """The pages to list in order, and how many there are in each state among those that fit all else."""

    pages: list[Page]
    counts: Mapping[State, int]


def state_of(page: Page, left_out: Collection[str], now: datetime) -> State | Literal["active"]:
    """Return a page's most important status: gone, excluded or recently changed."""
    if page.status == "gone":
        return "gone"
    if page.url_hash in left_out:
        return "left_out"
    return "changed" if changed_lately(page, now) else "active"


def changed_lately(page: Page, now: datetime) -> bool:
    return page.version > 1 and _since(page.updated_at, now) <= LATELY


def arrange(
    pages: Sequence[Page],
    wanted: PageFilter,
    left_out: Collection[str],
    *,
    found: Sequence[str] = (),
    within: Collection[str] | None = None,
    now: datetime | None = None,
) -> Shown:
    """`found` are the hashes of the pages whose texts hold the words, the best first, if those were looked for.

    `within` are those of the subject that is chosen, if one is.
    """
    moment = now or datetime.now(UTC)
    places = {url_hash: place for place, url_hash in enumerate(found)}
    among = pages if within is None else [page for page in pages if page.url_hash in within]
    fitting = [page for page in among if _fits(page, wanted, moment) and _named(page, wanted, places)]
    counts: Counter[State] = Counter()
    kept = []
    for page in fitting:
        states = _states(page, left_out, moment)
        counts.update(states)
        if wanted.state in states:
            kept.append(page)
    if wanted.in_text and wanted.words:
        kept.sort(key=lambda page: places[page.url_hash])
    else:
        _sort(kept, wanted.sort)
    return Shown(kept, {state: counts[state] for state in STATES})


def _states(page: Page, left_out: Collection[str], now: datetime) -> list[State]:
    states: list[State] = ["all"]
    states += ["changed"] if changed_lately(page, now) else []
    states += ["gone"] if page.status == "gone" else []
    states += ["left_out"] if page.url_hash in left_out else []
    return states


def _named(page: Page, wanted: PageFilter, places: Mapping[str, int]) -> bool:
    if wanted.in_text and wanted.words:
        return page.url_hash in places
    text = f"{page.title} {page.site} {page.url} {' '.join(page.aliases)}".casefold()
    return all(part in text for part in wanted.words.casefold().split())


def _fits(page: Page, wanted: PageFilter, now: datetime) -> bool:
    if (wanted.site and page.site != wanted.site) or (wanted.language and page.language != wanted.language):
        return False
    if wanted.age == "unchecked":
        return page.source == "web" and _since(page.checked_at or page.added_at, now) > _LONG
    added = _since(page.added_at, now)
    if wanted.age == "older":
        return added > _LONG
    return wanted.age == "any" or added <= _WITHIN[wanted.age]


def age_of(page: Page, now: datetime) -> Age:
    """The narrowest of the ages that the page fits."""
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
