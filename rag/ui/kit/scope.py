"""The search scope and strategy chosen in one tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING, Any

from rag.store.values import Filters

if TYPE_CHECKING:
    from rag.store.values import Filters


_WIDE = ("strategy", "libraries", "weights")


@dataclass(frozen=True, slots=True)
class Scope:
    """The chosen scope; empty fields don't limit it. `pages` are url_hashes, dates the reader's days.

    `libraries` are searched beside the open one, and `weights` are theirs and its own, 1 where none is given.
    """

    pages: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    section: str = ""
    since: date | None = None
    until: date | None = None
    strategy: str = ""
    libraries: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def confines(self) -> int:
        """Return the number of active filters."""
        return sum(bool(getattr(self, one.name)) for one in fields(self) if one.name not in _WIDE)

    def without(self, name: str, value: str = "") -> Scope:
        """This scope without one filter, or without one of its several values."""
        held: Any = getattr(self, name)
        left: Any = getattr(Scope(), name)
        if isinstance(held, tuple) and value:
            left = tuple(one for one in held if one != value)
        return replace(self, **{name: left})

    def unconfined(self) -> Scope:
        """This scope without its filters; the strategy and the libraries stay."""
        return Scope(strategy=self.strategy, libraries=self.libraries, weights=self.weights)

    def unstrategic(self) -> Scope:
        """This scope's filters alone."""
        return replace(self, strategy="", libraries=(), weights={})

    def plain(self) -> dict[str, Any]:
        """Return the chosen scope as JSON values."""
        chosen = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name)}
        return {name: value.isoformat() if isinstance(value, date) else value for name, value in chosen.items()}

    @classmethod
    def revived(cls, kept: Mapping[str, Any]) -> Scope:
        """The scope that `plain` made, also after JSON."""
        chosen: dict[str, Any] = {one.name: kept[one.name] for one in fields(cls) if one.name in kept}
        for name, value in chosen.items():
            if name in ("since", "until"):
                chosen[name] = date.fromisoformat(value)
            elif isinstance(value, list):
                chosen[name] = tuple(value)
        return cls(**chosen)

    def filters(self, minutes_behind: int = 0) -> Filters | None:
        """The filters for a search, None for none. `minutes_behind` is how far the reader's clock is behind UTC."""
        if not self.confines:
            return None
        return Filters(
            pages=self.pages,
            sites=self.sites,
            languages=self.languages,
            sections=(self.section,) if self.section else (),
            since=_moment(self.since, time.min, minutes_behind),
            until=_moment(self.until, time(23, 59, 59), minutes_behind),
        )

    def options(self, minutes_behind: int = 0) -> dict[str, Any]:
        """The arguments for `App.search`; what was not chosen is left to their defaults."""
        weights = dict(self.weights) if self.libraries else {}
        chosen = {
            "strategy": self.strategy,
            "filters": self.filters(minutes_behind),
            "others": self.libraries,
            "weights": weights,
        }
        return {name: value for name, value in chosen.items() if value}


def _moment(day: date | None, at: time, minutes_behind: int) -> str:
    """The moment `at` on the reader's `day`, in ISO 8601 with its offset; empty for no day."""
    if day is None:
        return ""
    return datetime.combine(day, at, timezone(timedelta(minutes=-minutes_behind))).isoformat()
