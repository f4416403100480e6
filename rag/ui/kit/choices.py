"""The choices of one tab: the answer options, the search scope and the strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Final

from rag.reasoning.history import WINDOW, MemoryKind
from rag.runs.options import TreeOrder
from rag.store.values import Filters
from rag.types import RunMode

MODES: Final[tuple[RunMode, ...]] = ("fast", "deep", "research", "judge")
"""Modes that a person chooses from; the others come from the route of a message."""
NEED_MODEL: Final[tuple[RunMode, ...]] = ("deep", "judge")
"""Modes that do little more than the first without a chat model."""
_WIDE = ("strategy", "libraries", "weights")


@dataclass(frozen=True, slots=True)
class Choices:
    """Answer options; None and `auto` leave the choice to the mode and the settings."""

    compose: str = "auto"
    approve: bool = False
    judge_each: bool = False
    tree_order: TreeOrder = "breadth"
    memory: MemoryKind = "recent"
    window: int = WINDOW
    calls: int | None = None
    tokens: int | None = None
    seconds: int | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the chosen options as arguments of `RunOptions`."""
        standard = Choices()
        return {name: value for name, value in asdict(self).items() if value != getattr(standard, name)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Choices:
        """Return the choices in the settings of an earlier question."""
        values = {option.name: settings[option.name] for option in fields(cls) if option.name in settings}
        return cls(**values | {"stop": tuple(settings.get("stop", ()))})


@dataclass(frozen=True, slots=True)
class Scope:
    """The chosen scope; empty fields don't limit it. `pages` are url_hashes, dates the reader's days.

    `libraries` are searched besides the open one; `weights` are those of all libraries, 1 by default.
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
    def filter_count(self) -> int:
        """Number of active filters."""
        return sum(bool(getattr(self, one.name)) for one in fields(self) if one.name not in _WIDE)

    def without(self, name: str, value: str = "") -> Scope:
        """Return this scope without one filter, or without one of its several values."""
        current: Any = getattr(self, name)
        remaining: Any = getattr(Scope(), name)
        if isinstance(current, tuple) and value:
            remaining = tuple(item for item in current if item != value)
        return replace(self, **{name: remaining})

    def without_filters(self) -> Scope:
        """Return this scope without its filters; the strategy and the libraries stay."""
        return Scope(strategy=self.strategy, libraries=self.libraries, weights=self.weights)

    def filters_only(self) -> Scope:
        """Return this scope's filters alone."""
        return replace(self, strategy="", libraries=(), weights={})

    def plain(self) -> dict[str, Any]:
        """Return the chosen scope as JSON values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name)}
        return {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Scope:
        """Return the scope that `plain` returned, also after JSON."""
        values: dict[str, Any] = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        for name, value in values.items():
            if name in ("since", "until"):
                values[name] = date.fromisoformat(value)
            elif isinstance(value, list):
                values[name] = tuple(value)
        return cls(**values)

    def filters(self, minutes_behind: int = 0) -> Filters | None:
        """Return a search's filters, None for none. `minutes_behind` is how far the reader's clock is behind UTC."""
        if not self.filter_count:
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
        """Return the arguments for `App.search`; those not chosen are left to their defaults."""
        weights = dict(self.weights) if self.libraries else {}
        arguments = {
            "strategy": self.strategy,
            "filters": self.filters(minutes_behind),
            "others": self.libraries,
            "weights": weights,
        }
        return {name: value for name, value in arguments.items() if value}


def _moment(day: date | None, at: time, minutes_behind: int) -> str:
    """Return the time `at` on the reader's `day`, in ISO 8601 with its offset; empty for no day."""
    if day is None:
        return ""
    return datetime.combine(day, at, timezone(timedelta(minutes=-minutes_behind))).isoformat()
