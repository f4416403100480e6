"""The parameters of a search: its scope, and the fusion of its legs into one ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from rag.types import Page, SparseVector

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
Legs = Mapping[str, Mapping[str, float]]  # leg -> point id -> score
Fusion = Callable[[Legs], Mapping[str, float]]  # the legs' answers -> point id -> fused score
Query = tuple[NDArray[np.float32] | None, SparseVector | None]  # what the dense and the sparse leg are asked

RRF_K = 2  # Qdrant's default; ranks count from 0


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
        """Return whether a page matches, with `dated` also by the date it was added; headings are ignored."""
        chosen = ((self.pages, page.url_hash), (self.sites, page.site), (self.languages, page.language))
        if page.url_hash in self.without or any(wanted and own not in wanted for wanted, own in chosen):
            return False
        return not dated or between(page.added_at, self.since, self.until)

    def within(self, other: Filters) -> Filters:
        """Combine both filters. If a field's values have none in common, this one's count."""

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
    """Return whether a moment (ISO 8601) is between two moments or dates, each of which may be empty."""
    at = _utc(moment) if moment else None
    after = at is not None and (not since or at >= _utc(since))
    end = _utc(until) + timedelta(days=bool(DATE.fullmatch(until))) if until else None
    return after and (end is None or (at is not None and at <= end))


def _utc(moment: str) -> datetime:
    read = datetime.fromisoformat(moment)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def reciprocal_rank_fusion(legs: Legs, k: float = RRF_K) -> dict[str, float]:
    """The sum of 1 / (k + rank), ranks from 0 (Cormack et al., SIGIR 2009). One leg keeps its own scores."""
    if len(legs) == 1:
        return dict(next(iter(legs.values())))
    fused: dict[str, float] = {}
    for scores in legs.values():
        for rank, found in enumerate(best_first(scores)):
            fused[found] = fused.get(found, 0.0) + 1.0 / (k + rank)
    return fused


def best_first(scores: Mapping[str, float]) -> list[str]:
    """The ids, those of equal scores by themselves."""
    by_id = sorted(scores)
    by_id.sort(key=scores.__getitem__, reverse=True)  # stable: equal scores stay in the order of their ids
    return by_id
