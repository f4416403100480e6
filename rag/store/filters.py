"""Which part of a library a search is confined to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rag.types import Page

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Filters:
    """Each field that is not empty confines the search; several values of one field are alternatives.

    `pages` are url_hashes, `sections` headings anywhere on the path, `since` and `until` ISO 8601 dates or
    moments that the page was added between; a date means the whole day in UTC. `without` are url_hashes of pages
    that are left aside.
    """

    pages: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.pages, self.sites, self.languages, self.sections, self.since, self.until, self.without))

    def holds(self, page: Page, *, dated: bool = True) -> bool:
        """Whether a page is within it, `dated` also when it was added; headings are not looked at."""
        chosen = ((self.pages, page.url_hash), (self.sites, page.site), (self.languages, page.language))
        if page.url_hash in self.without or any(wanted and own not in wanted for wanted, own in chosen):
            return False
        return not dated or between(page.added_at, self.since, self.until)

    def within(self, other: Filters) -> Filters:
        """Both at once. Where no value of a field stands in both, this one's count."""

        def both(mine: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(value for value in mine if value in theirs) or mine or theirs

        return Filters(
            both(self.pages, other.pages),
            both(self.sites, other.sites),
            both(self.languages, other.languages),
            both(self.sections, other.sections),
            self.since or other.since,
            self.until or other.until,
            tuple(dict.fromkeys((*self.without, *other.without))),
        )


def between(moment: str, since: str, until: str) -> bool:
    """Whether a moment (ISO 8601) lies between two others, or dates, each of which may be empty."""
    at = _utc(moment) if moment else None
    after = at is not None and (not since or at >= _utc(since))
    end = _utc(until) + timedelta(days=bool(DATE.fullmatch(until))) if until else None
    return after and (end is None or (at is not None and at <= end))


def _utc(moment: str) -> datetime:
    read = datetime.fromisoformat(moment)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
