"""Values found in text, and their comparison."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from rag.patterns import lazy_regex
from rag.quantities.numerals import HAN_DIGITS, parse_chinese
from rag.quantities.units import Dimension

_TOLERANCE: Final = Decimal("0.02")  # max. relative error of a rounded or converted amount


_FAMILIES: Final = {"month": "date", "version": "code"} | {
    kind: kind for kind in ("date", "time", "weekday", "ratio", "code")
}


class Interpretation(NamedTuple):
    """One interpretation of a value. `kind` is that of its unit (see Measure), empty without one, or date, month,
    weekday, time, am, pm, ratio, version, code; `amount` is in base units, `size` is the unit's size as written."""

    kind: Dimension | str
    amount: Decimal | str
    size: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Value:
    """The value in `text[start:end]`: `interpretations`, likeliest first, and those `implied`, as the month by a date.

    `number` is as written, without a unit. `bound` is <, ≤, >, ≥ or empty; `is_range_end` marks either end of a range.
    `figures` counts significant digits, `is_approximate` allows rounding, and `is_explicit` marks an unmistakable
    number: digits, a number with a unit, or several Chinese numerals. `label` is the prefix of an identifier;
    `is_count` marks a number without a unit before a noun.
    """

    start: int
    end: int
    interpretations: tuple[Interpretation, ...]
    number: Decimal | None = None
    implied: tuple[Interpretation, ...] = ()
    bound: str = ""
    is_range_end: bool = False
    figures: int = 1
    is_approximate: bool = False
    is_explicit: bool = True
    label: str = ""
    is_count: bool = False

    @property
    def key(self) -> str:
        """A string that is the same for equal values."""
        kind, amount, _ = self.interpretations[0]
        number = amount if isinstance(amount, str) else f"{amount.normalize():f}"
        return f"#{self.label}{number}{kind or ''}{self.bound}"

    @property
    def has_unit(self) -> bool:
        """True for an amount with a unit."""
        return self.interpretations[0].kind != ""

    def matches(self, other: Value, *, is_quote: bool = False) -> bool:
        """Return whether `other` means the same: an equal amount, converted or rounded, without another unit or bound.

        A unit or bound that only one of them has is ignored unless `is_quote`: its text is repeated word for word.
        """
        if not self._has_same_bound(other, is_quote) or (self.label and other.label and self.label != other.label):
            return False
        theirs = (*other.interpretations, *other.implied)
        if any(self._equals(mine, their, other, is_quote) for mine in self.interpretations for their in theirs):
            return True
        if (self.has_unit and (other.has_unit or other.is_count)) or (self.is_count and other.has_unit):
            return False
        added = self.has_unit or other.interpretations[0].kind == "%"
        return not (is_quote and added and self.has_unit != other.has_unit) and self._has_same_number(other)

    def conflicts_with(self, other: Value) -> bool:
        """Return whether replacing `other` with this value would change the meaning."""
        kind, theirs = self.interpretations[0].kind, other.interpretations[0].kind
        if _FAMILIES.get(f"{kind}", "") != _FAMILIES.get(f"{theirs}", ""):
            return False
        return kind == theirs or not kind or not theirs or self.number == other.number

    def _has_same_bound(self, other: Value, is_quote: bool) -> bool:
        if self.bound == other.bound or is_quote:
            return self.bound == other.bound
        is_comparable = self.bound and other.bound and not (self.is_range_end or other.is_range_end)
        return not is_comparable or (self.bound in "<≤") == (other.bound in "<≤")

    def _equals(self, mine: Interpretation, their: Interpretation, other: Value, is_quote: bool) -> bool:
        if mine.kind != their.kind:
            return _is_rate_of(mine.kind, their.kind, is_quote) and self._has_same_number(other)
        if mine.amount == their.amount or isinstance(mine.amount, str) or isinstance(their.amount, str):
            return mine.amount == their.amount
        if mine.size == their.size:
            return self._can_round(other) and _are_close(mine.amount, their.amount, self._step * mine.size)
        return _are_close(mine.amount, their.amount, self._step * mine.size + other._step * their.size)

    def _has_same_number(self, other: Value) -> bool:
        if self.number is None or other.number is None:
            return False
        return self.number == other.number or (
            self._can_round(other) and _are_close(self.number, other.number, self._step)
        )

    def _can_round(self, other: Value) -> bool:
        """Return whether rounding is allowed; whole numbers need a word such as "about": 2024 and 2025 differ."""
        exact = other.number is not None and other.number == other.number.to_integral_value()
        return self.figures < other.figures and (self.is_approximate or other.is_approximate or not exact)

    @property
    def _step(self) -> Decimal:
        """The value of one unit in the last significant digit."""
        return Decimal(10) ** (self.number.adjusted() - self.figures + 1) if self.number else Decimal(1)


def _are_close(first: Decimal, second: Decimal, step: Decimal) -> bool:
    return abs(first - second) <= min(step / 2, _TOLERANCE * abs(first))


def _is_rate_of(kind: Dimension | str, other: Dimension | str, is_quote: bool) -> bool:
    """Return whether only one of two kinds is a rate: dollars, and dollars a night."""
    mine, theirs = f"{kind}", f"{other}"
    return bool(mine and theirs) and (theirs.startswith(f"{mine}/") or (not is_quote and mine.startswith(f"{theirs}/")))


MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = (
    rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name[3:] else name for name in MONTHS)}|sept)\b\.?"
)
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?(?![.:]?\d|%)"
_NUM: Final = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_DATES: Final = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<y>\d{{4}}|[{HAN_DIGITS}]{{4}}) ?年 ?)?(?P<m>{_NUM}) ?月(?:份| ?(?P<d>{_NUM}) ?[日号])?",
        r"(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})(?![\d.-])",
        r"(?P<d>\d{1,2})(?P<by>[/.-])(?P<m>\d{1,2})(?P=by)(?P<y>\d{4})(?!\d)",
        rf"{_DAY},?(?: day)?(?: of)? {_MONTH}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? {_DAY}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? (?P<y>\d{{4}})\b",
        rf"(?P<month>{'|'.join(MONTHS)})\b",
    )
)
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY: Final = lazy_regex(
    rf"(?P<day>{'|'.join(name.title() for name in WEEKDAYS)})s?\b|(?:周|星期|礼拜)(?P<han>[一二三四五六日天])"
)
_HOURS: Final = "one two three four five six seven eight nine ten eleven twelve".split()
_MERIDIEM: Final = r"(?: (?:(?P<am>in the morning|a\.?m\b\.?)|(?P<pm>in the (?:afternoon|evening)|p\.?m\b\.?)))?"
_TIMES: Final = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<half>half)|(?:a )?quarter) (?P<past>past) (?P<h>\d{{1,2}}|{'|'.join(_HOURS)})\b{_MERIDIEM}",
        r"(?P<h>\d{1,2})(?:[:.](?P<m>[0-5]\d)(?::[0-5]\d)?)? ?(?:(?P<am>a)|(?P<pm>p))(?:m\b|\.m\b\.?)",
        rf"(?P<h>[01]?\d|2[0-4])[:h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:]){_MERIDIEM}",
        rf"(?P<h>\d{{1,2}}) o'?clock\b{_MERIDIEM}",
        rf"(?P<h>{_NUM}|两) ?[点时](?:(?P<m>零?{_NUM}) ?分|(?P<digits>[0-5]\d)(?!\d)|(?P<quarters>半|[一三]刻)|[整钟])",
        rf"(?P<h>{_NUM}|[两零]) ?[点时](?![{HAN_DIGITS}\d])",
    )
)
_PART_OF_DAY: Final = lazy_regex("(?:(?P<am>凌晨|清晨|早[上晨]?|上午)|(?P<pm>中午|下午|傍晚|晚上?|夜里|深夜)) ?$")
_LATE_HOURS: Final = frozenset(("中午11", "晚上12", "晚12", "深夜12", "夜里12"))
_DAY_SIZE: Final = Decimal(86_400)
_QUARTERS: Final = {"半": 30, "一刻": 15, "三刻": 45}


def find_date(text: str, at: int) -> list[Value]:
    """Return the day or month that begins at `at`, followed by its year, if any; [] if there is none."""
    for pattern in _DATES:
        match = pattern.match(text, at)
        groups = match.groupdict() if match else {}
        if match and (month := _parse_month(groups)) and (date := _build_date(month, _to_int(groups.get("d")), match)):
            year = _to_int(groups.get("y"))
            return [date, _build_year(year, match.end())] if year else [date]
    return []


def find_weekday(text: str, at: int) -> Value | None:
    """Return the day of the week that begins at `at`, or None."""
    if match := _WEEKDAY.match(text, at):
        han = (match["han"] or "").replace("天", "日")
        place = "一二三四五六日".index(han) if han else WEEKDAYS.index(match["day"].lower())
        return Value(*match.span(), (Interpretation("weekday", Decimal(place + 1)),))
    return None


def read_day(number: Value, date: Value) -> Value | None:
    """Return a number as a day in the month of `date`, as in 5–7 March, or None."""
    counts_days = number.interpretations[0].size == _DAY_SIZE
    if (
        number.number is None
        or (number.has_unit and not counts_days)
        or not (1 <= number.number <= 31 and date.implied)
    ):
        return None
    month = date.implied[0].amount
    amount = Decimal(month) * 100 + number.number
    return Value(number.start, number.end, (Interpretation("date", amount),), implied=date.implied[:1])


def _parse_month(groups: dict[str, str | None]) -> int:
    if (name := groups.get("month")) is None:
        return _to_int(groups.get("m"))
    return [month[:3] for month in MONTHS].index(name[:3].lower()) + 1


def _build_date(month: int, day: int, match: re.Match[str]) -> Value | None:
    """Return a date, with two interpretations if either number may be the month (05/03/2024); None if invalid."""
    is_ambiguous = match.groupdict().get("by") and match.start("d") < match.start("m")
    orders = [(month, day), (day, month)] if is_ambiguous else [(month, day)]
    valid = [(m, d) for m, d in orders if 1 <= m <= 12 and d <= 31]
    name = match.groupdict().get("month")
    if not valid or name in ("may", "march"):
        return None
    implied = tuple(Interpretation("month", Decimal(m)) for m, _ in valid)
    if not day:
        return Value(*match.span(), implied[:1], is_explicit=name != match[0])
    return Value(*match.span(), tuple(Interpretation("date", Decimal(m * 100 + d)) for m, d in valid), implied=implied)


def _build_year(year: int, end: int) -> Value:
    return Value(end, end, (Interpretation("", Decimal(year)),), Decimal(year), figures=4)


def find_time(text: str, at: int, before: str) -> Value | None:
    """Return the time of day that begins at `at`, or None; the text `before` it may name the half of the day."""
    for pattern in _TIMES:
        if match := pattern.match(text, at):
            return _build_time(match, before)
    return None


def _build_time(match: re.Match[str], before: str) -> Value | None:
    groups = match.groupdict()
    hour = _HOURS.index(groups["h"].lower()) + 1 if groups["h"].lower() in _HOURS else _to_int(groups["h"])
    minute = _to_int(groups.get("m") or groups.get("digits")) + _QUARTERS.get(groups.get("quarters") or "", 0)
    if groups.get("past"):
        minute = 30 if groups["half"] else 15
    part = _PART_OF_DAY.search(before)
    meridiems = [meridiem for meridiem in ("am", "pm") if groups.get(meridiem) or (part and part[meridiem])]
    if hour > 24 or minute > 59:
        return None
    amount = Decimal(hour % 12 * 60 + minute)
    if not meridiems:  # a 12-hour clock: either half is possible
        meridiems = ["am", "pm"] if 1 <= hour <= 12 else []
    elif meridiems == ["pm"] and hour <= 12 and not (part and f"{part[0].strip()}{hour}" in _LATE_HOURS):
        hour = hour % 12 + 12
    elif hour == 12:
        hour = 0
    time = Interpretation("time", Decimal(hour % 24 * 60 + minute))
    start = match.start() - (len(before) - part.start() if part else 0)
    return Value(start, match.end(), (time, *(Interpretation(meridiem, amount) for meridiem in meridiems)))


def _to_int(text: str | None) -> int:
    return int(parse_chinese(text)) if text else 0
