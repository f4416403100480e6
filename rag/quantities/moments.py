"""Dates and times of day as they are written, in English and Chinese; what they mean from today is `rag.dates`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from rag.quantities.numerals import HAN_DIGITS, chinese_number
from rag.quantities.values import Reading, Value

MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = (
    rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name[3:] else name for name in MONTHS)}|sept)\b\.?"
)
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?(?![.:]?\d|%)"
_TWO: Final = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_DATES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<y>\d{{4}}|[{HAN_DIGITS}]{{4}}) ?年 ?)?(?P<m>{_TWO}) ?月(?:份| ?(?P<d>{_TWO}) ?[日号])?",
        r"(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})(?![\d.-])",
        r"(?P<d>\d{1,2})(?P<by>[/.-])(?P<m>\d{1,2})(?P=by)(?P<y>\d{4})(?!\d)",
        rf"{_DAY},?(?: day)?(?: of)? {_MONTH}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? {_DAY}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? (?P<y>\d{{4}})\b",
        rf"(?P<month>{'|'.join(MONTHS)})\b",
    )
)
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY: Final = re.compile(
    rf"(?P<day>{'|'.join(name.title() for name in WEEKDAYS)})s?\b|(?:周|星期|礼拜)(?P<han>[一二三四五六日天])"
)
_HOURS: Final = "one two three four five six seven eight nine ten eleven twelve".split()
_IN_THE: Final = r"(?: (?:(?P<am>in the morning|a\.?m\b\.?)|(?P<pm>in the (?:afternoon|evening)|p\.?m\b\.?)))?"
_TIMES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<half>half)|(?:a )?quarter) (?P<past>past) (?P<h>\d{{1,2}}|{'|'.join(_HOURS)})\b{_IN_THE}",
        r"(?P<h>\d{1,2})(?:[:.](?P<m>[0-5]\d)(?::[0-5]\d)?)? ?(?:(?P<am>a)|(?P<pm>p))(?:m\b|\.m\b\.?)",
        rf"(?P<h>[01]?\d|2[0-4])[:h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:]){_IN_THE}",
        rf"(?P<h>\d{{1,2}}) o'?clock\b{_IN_THE}",
        rf"(?P<h>{_TWO}|两) ?[点时](?:(?P<m>零?{_TWO}) ?分|(?P<digits>[0-5]\d)(?!\d)|(?P<quarters>半|[一三]刻)|[整钟])",
        rf"(?P<h>{_TWO}|[两零]) ?[点时](?![{HAN_DIGITS}\d])",
    )
)
_PART_OF_DAY: Final = re.compile("(?:(?P<am>凌晨|清晨|早[上晨]?|上午)|(?P<pm>中午|下午|傍晚|晚上?|夜里|深夜)) ?$")
_OTHER_HALF: Final = frozenset(("中午11", "晚上12", "晚12", "深夜12", "夜里12"))
_DAY_SIZE: Final = Decimal(86_400)
_QUARTERS: Final = {"半": 30, "一刻": 15, "三刻": 45}


def find_date(text: str, at: int) -> list[Value]:
    """The day or month that begins there, and behind it the year, if that is said; [] for none."""
    for pattern in _DATES:
        match = pattern.match(text, at)
        named = match.groupdict() if match else {}
        if match and (month := _month(named)) and (found := _dated(month, _number(named.get("d")), match)):
            year = _number(named.get("y"))
            return [found, _year(year, match.end())] if year else [found]
    return []


def find_weekday(text: str, at: int) -> Value | None:
    """The day of the week that begins there."""
    if match := _WEEKDAY.match(text, at):
        han = (match["han"] or "").replace("天", "日")
        place = "一二三四五六日".index(han) if han else WEEKDAYS.index(match["day"].lower())
        return Value(*match.span(), (Reading("weekday", Decimal(place + 1)),))
    return None


def day_of(number: Value, date: Value) -> Value | None:
    """The number as a day in the month of a date: 5–7 March."""
    counts_days = number.readings[0].size == _DAY_SIZE
    if number.number is None or (number.measured and not counts_days) or not (1 <= number.number <= 31 and date.covers):
        return None
    month = date.covers[0].amount
    amount = Decimal(month) * 100 + number.number
    return Value(number.start, number.end, (Reading("date", amount),), covers=date.covers[:1])


def _month(named: dict[str, str | None]) -> int:
    if (name := named.get("month")) is None:
        return _number(named.get("m"))
    return [one[:3] for one in MONTHS].index(name[:3].lower()) + 1


def _dated(month: int, day: int, match: re.Match[str]) -> Value | None:
    """Where either number may be the month (05/03/2024) both are read."""
    by = match.groupdict().get("by") and match.start("d") < match.start("m")
    ways = [(month, day), (day, month)] if by else [(month, day)]
    valid = [(m, d) for m, d in ways if 1 <= m <= 12 and d <= 31]
    name = match.groupdict().get("month")
    if not valid or name in ("may", "march"):
        return None
    covers = tuple(Reading("month", Decimal(m)) for m, _ in valid)
    if not day:
        return Value(*match.span(), covers[:1], written=name != match[0])
    return Value(*match.span(), tuple(Reading("date", Decimal(m * 100 + d)) for m, d in valid), covers=covers)


def _year(year: int, end: int) -> Value:
    return Value(end, end, (Reading("", Decimal(year)),), Decimal(year), figures=4)


def find_time(text: str, at: int, before: str) -> Value | None:
    """The time of day that begins there; `before` is what stands before it, from which the half of the day is told."""
    for pattern in _TIMES:
        if match := pattern.match(text, at):
            return _time(match, before)
    return None


def _time(match: re.Match[str], before: str) -> Value | None:
    said = match.groupdict()
    hour = _HOURS.index(said["h"].lower()) + 1 if said["h"].lower() in _HOURS else _number(said["h"])
    minute = _number(said.get("m") or said.get("digits")) + _QUARTERS.get(said.get("quarters") or "", 0)
    if said.get("past"):
        minute = 30 if said["half"] else 15
    part = _PART_OF_DAY.search(before)
    halves = [half for half in ("am", "pm") if said.get(half) or (part and part[half])]
    if hour > 24 or minute > 59:
        return None
    of_twelve = Decimal(hour % 12 * 60 + minute)
    if not halves:  # on a clock of twelve hours either may be meant
        halves = ["am", "pm"] if 1 <= hour <= 12 else []
    elif halves == ["pm"] and hour <= 12 and not (part and f"{part[0].strip()}{hour}" in _OTHER_HALF):
        hour = hour % 12 + 12
    elif hour == 12:
        hour = 0
    known = Reading("time", Decimal(hour % 24 * 60 + minute))
    start = match.start() - (len(before) - part.start() if part else 0)
    return Value(start, match.end(), (known, *(Reading(half, of_twelve) for half in halves)))


def _number(said: str | None) -> int:
    return int(chinese_number(said)) if said else 0
