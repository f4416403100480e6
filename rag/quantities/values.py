"""A value that a text says, and whether another one says the same."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from rag.quantities.units import Dimension

_NEAR: Final = Decimal("0.02")  # of its value: how far a rounded or converted amount may be off


_FAMILIES: Final = {"month": "date", "version": "code"} | {
    kind: kind for kind in ("date", "time", "weekday", "ratio", "code")
}


class Reading(NamedTuple):
    """`kind` is a unit's (see Measure), empty without one, or date, month, time, ratio, version, code; `amount` is in
    the kind's base, `size` that of the unit it was written in."""

    kind: Dimension | str
    amount: Decimal | str
    size: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Value:
    """The value in `text[start:end]`: one of `readings`, likeliest first, and what it `covers`, as a date its month.

    `number` is as written, without a unit. `bound` is <, ≤, >, ≥ or empty; `ranged` marks the end of a range. `figures`
    counts significant digits, `loose` allows for rounding, and `written` marks what is plainly a number: digits, a
    number with a unit, or several Chinese numerals. `label` is the prefix of an identifier; `counts` marks a number
    without a unit before a noun.
    """

    start: int
    end: int
    readings: tuple[Reading, ...]
    number: Decimal | None = None
    covers: tuple[Reading, ...] = ()
    bound: str = ""
    ranged: bool = False
    figures: int = 1
    loose: bool = False
    written: bool = True
    label: str = ""
    counts: bool = False

    @property
    def key(self) -> str:
        """A text that equal values share."""
        kind, amount, _ = self.readings[0]
        said = amount if isinstance(amount, str) else f"{amount.normalize():f}"
        return f"#{self.label}{said}{kind or ''}{self.bound}"

    @property
    def measured(self) -> bool:
        """True for an amount with a unit."""
        return self.readings[0].kind != ""

    def stands(self, other: Value, *, copied: bool = False) -> bool:
        """Return True if `other` says this: the same amount, converted or rounded, with no other unit, bound or label.

        A unit or bound that only one of them has is ignored unless the text around it was `copied`.
        """
        if not self._is_bound_as(other, copied) or (self.label and other.label and self.label != other.label):
            return False
        theirs = (*other.readings, *other.covers)
        if any(self._is(mine, their, other, copied) for mine in self.readings for their in theirs):
            return True
        if (self.measured and (other.measured or other.counts)) or (self.counts and other.measured):
            return False
        added = self.measured or other.readings[0].kind == "%"
        return not (copied and added and self.measured != other.measured) and self._same_number(other)

    def rivals(self, other: Value) -> bool:
        """Return True if it could replace the other and change the meaning."""
        kind, theirs = self.readings[0].kind, other.readings[0].kind
        if _FAMILIES.get(f"{kind}", "") != _FAMILIES.get(f"{theirs}", ""):
            return False
        return kind == theirs or not kind or not theirs or self.number == other.number

    def _is_bound_as(self, other: Value, copied: bool) -> bool:
        if self.bound == other.bound or copied:
            return self.bound == other.bound
        known = self.bound and other.bound and not (self.ranged or other.ranged)
        return not known or (self.bound in "<≤") == (other.bound in "<≤")

    def _is(self, mine: Reading, their: Reading, other: Value, copied: bool) -> bool:
        if mine.kind != their.kind:
            return _is_part(mine.kind, their.kind, copied) and self._same_number(other)
        if mine.amount == their.amount or isinstance(mine.amount, str) or isinstance(their.amount, str):
            return mine.amount == their.amount
        if mine.size == their.size:
            return self._may_round(other) and _close(mine.amount, their.amount, self._step * mine.size)
        return _close(mine.amount, their.amount, self._step * mine.size + other._step * their.size)

    def _same_number(self, other: Value) -> bool:
        if self.number is None or other.number is None:
            return False
        return self.number == other.number or (self._may_round(other) and _close(self.number, other.number, self._step))

    def _may_round(self, other: Value) -> bool:
        """Whole numbers are not rounded without a word that says so: a year and the next one are two."""
        exact = other.number is not None and other.number == other.number.to_integral_value()
        return self.figures < other.figures and (self.loose or other.loose or not exact)

    @property
    def _step(self) -> Decimal:
        """The worth of one in its last significant digit."""
        return Decimal(10) ** (self.number.adjusted() - self.figures + 1) if self.number else Decimal(1)


def _close(one: Decimal, other: Decimal, steps: Decimal) -> bool:
    return abs(one - other) <= min(steps / 2, _NEAR * abs(one))


def _is_part(kind: Dimension | str, other: Dimension | str, copied: bool) -> bool:
    """Return True if only one is counted per another unit: dollars, and dollars a night."""
    mine, theirs = f"{kind}", f"{other}"
    return bool(mine and theirs) and (theirs.startswith(f"{mine}/") or (not copied and mine.startswith(f"{theirs}/")))
