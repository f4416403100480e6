"""Dates, times of day and weekdays, each read as one value, in English and Chinese."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rag.agent.citing.comparing import chinese, numerals

CLOCK, TIME = "clock", "time"
"""Units of an hour of the day: one that is known, and one that may be before or after noon."""


class Quantity(NamedTuple):
    """A value at `start:end` of a text; `digits` as it is written, where that tells more than the value."""

    start: int
    end: int
    value: float
    unit: str = ""
    digits: str = ""


_ISO = re.compile(r"(?<![\d.])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d.]*\d)")
_DAY_FIRST = re.compile(r"(?<![\d.])(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)")
_MERIDIEM = (
    r"(?P<half>[ap])\.?\s?m\b\.?|in the (?P<part>morning|afternoon|evening)\b|at (?P<night>night)\b|(?P<named>noon"
    r"|midnight)\b"
)
_CLOCK = re.compile(
    rf"(?P<h>\d{{1,2}})(?:[:.](?P<m>[0-5]\d)(?::[0-5]\d)?)?(?P<oclock>\s*o'clock)?(?:\s*(?:{_MERIDIEM}))?(?![\d:])",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(noon|midnight)\b", re.IGNORECASE)
_UNTIL = re.compile(r"\s*(?:-|to|until|till|and)\s*\d{1,2}(?:[:.][0-5]\d)?\s*(?P<half>[ap])\.?\s?m\b", re.IGNORECASE)
_NUMERAL = r"\d{1,2}|[零〇一二两三四五六七八九十]{1,3}"
_PART = "凌晨|清晨|清早|早晨|早上|早|上午|正午|中午|午后|下午|傍晚|今晚|当晚|晚上|晚间|夜间|夜里|深夜|半夜|晚"
PART_BEGINNINGS: Final = frozenset(part[0] for part in _PART.split("|"))
_CHINESE_CLOCK = re.compile(
    rf"(?P<part>{_PART})?\s?(?P<h>{_NUMERAL})\s?(?::(?P<colon>[0-5]\d)|(?P<sign>[点點时時])(?![间候代期段常尚]|分之)"
    rf"(?:(?P<rest>半|整|钟|[一三1-3]刻)|(?P<m>{_NUMERAL})(?P<minute>分)?)?)"
)
_BEFORE_NOON = frozenset("凌晨 清晨 清早 早晨 早上 早 上午".split())
_WEEKDAY = re.compile(
    r"(mon|tue(?:s|rs)?|wed(?:nes)?|thu(?:rs|r)?|fri|sat(?:ur)?|sun)(?:days?)?(?:'s)?(?![\w])", re.IGNORECASE
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CHINESE_WEEKDAY = re.compile("(?:周|星期|礼拜)([一二三四五六日天])(?![次回期般起直样些年个百千万度]|至今)")
_BARE_WEEKDAY = re.compile("[至到-]([一二三四五六日天])(?![一-龥]?[0-9点时月号])")
_MONTH_BEFORE = re.compile(
    r"\b(?:in|of|since|until|till|by|from|during|early|late|mid|last|next|this|each|every|to|through|between|and"
    r"|or)[\s-]+$",
    re.IGNORECASE,
)


def is_day(month: float, day: float) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def date(text: str, at: int) -> list[Quantity]:
    """A date in digits at `at`, as its year, month and day; nothing where there is none."""
    if match := _ISO.match(text, at):
        year, month, day = (float(match[i]) for i in (1, 3, 4))
        if is_day(month, day):
            return _parts(match, ((1, year, "year"), (3, month, "month"), (4, day, "day")))
    if match := _DAY_FIRST.match(text, at):
        first, second, year = (float(match[i]) for i in (1, 3, 4))
        if is_day(1, max(first, second)) and min(first, second) <= 12:
            units = ("day", "month") if first > 12 else ("month", "day") if second > 12 else ("", "")
            return _parts(match, ((1, first, units[0]), (3, second, units[1]), (4, year, "year")))
    return []


def _parts(match: re.Match[str], parts: tuple[tuple[int, float, str], ...]) -> list[Quantity]:
    return [Quantity(match.start(group), match.end(group), value, unit) for group, value, unit in parts]


def clock(text: str, at: int, known: str = "") -> Quantity | None:
    """A time of day such as 9 am, 9:30, 21:00; `known` is the half of a day that an earlier one has set."""
    match = _CLOCK.match(text, at)
    if not match or not 0 <= int(match["h"]) <= 24:
        return None
    half = _half(match) or known
    if not (half or match["oclock"]) and (match["m"] is None or "." in match.group()):
        return None
    hours = int(match["h"]) + int(match["m"] or 0) / 60
    if not half and (later := _UNTIL.match(text, match.end())):
        half = later["half"].lower()
    sure = bool(half) or int(match["h"]) > 12 or match["h"].startswith("0")
    return Quantity(at, match.end(), _of_day(hours, half), CLOCK if sure else TIME)


def named_clock(text: str, at: int) -> Quantity | None:
    """Noon and midnight."""
    match = _NAMED.match(text, at)
    return Quantity(at, match.end(), 12.0 if match[1].lower() == "noon" else 0.0, CLOCK) if match else None


def _half(match: re.Match[str]) -> str:
    if match["half"]:
        return match["half"].lower()
    if match["named"]:
        return "p" if match["named"].lower() == "noon" else "a"
    if match["part"]:
        return "a" if match["part"].lower() == "morning" else "p"
    return ("p" if int(match["h"]) > 5 and int(match["h"]) < 12 else "a") if match["night"] else ""


def _of_day(hours: float, half: str) -> float:
    if half == "p" and hours < 12:
        return hours + 12
    return hours - 12 if half == "a" and 12 <= hours < 13 else hours


def chinese_clock(text: str, at: int, known: str = "") -> Quantity | None:
    """A time of day such as 下午3点, 九点半, 9时30分; 三点五 and 三点 alone are none."""
    match = _CHINESE_CLOCK.match(text, at)
    if not match:
        return None
    hour, minutes = _numeral(match["h"]), _minutes(match)
    if hour is None or minutes is None or hour > 24 or minutes >= 60 or not (_is_clock(match) or known):
        return None
    half = _chinese_half(match["part"], hour) or known
    sure = bool(half) or hour > 12 or match["h"].startswith("0")
    return Quantity(at, match.end(), _of_day(hour + minutes / 60, half), CLOCK if sure else TIME)


def _is_clock(match: re.Match[str]) -> bool:
    if match["part"] or match["colon"] or match["rest"] or match["minute"]:
        return True
    if match["m"]:
        return match["sign"] in "时時" or match["m"].isdigit() or "十" in match["m"]
    return match["sign"] in "时時" and match["h"].isdigit()


def _minutes(match: re.Match[str]) -> float | None:
    rest = match["rest"] or ""
    if rest.endswith("刻"):
        return 45.0 if rest[0] in "三3" else 15.0
    if rest:
        return 30.0 if rest == "半" else 0.0
    return _numeral(match["colon"] or match["m"] or "0")


def _chinese_half(part: str | None, hour: float) -> str:
    if not part:
        return ""
    if part in _BEFORE_NOON:
        return "a"
    if part in ("中午", "正午"):
        return "p" if hour < 6 or hour == 12 else "a"
    late = part in ("夜里", "深夜", "半夜", "夜间") and hour < 6
    return "a" if late or (hour == 12 and part not in ("下午", "午后")) else "p"


def _numeral(text: str) -> float | None:
    return float(text) if text.isdigit() else chinese.numeral(text)


def half_of(time: Quantity) -> str:
    """The half of the day that a known time sets for the one after it: 2 to 5 pm."""
    return ("p" if time.value >= 12 else "a") if time.unit == CLOCK else ""


def weekday(text: str, at: int) -> Quantity | None:
    """Monday is 1, Sunday 7."""
    if text[at : at + 1].isupper() and (match := _WEEKDAY.match(text, at)):
        written = match.group().lower()
        if written in ("sun", "sat", "wed") and not re.match(r"\.|\s*(?:-|to|,|\d)", text[match.end() :]):
            return None
        return Quantity(at, match.end(), float(_WEEKDAYS.index(written[:3]) + 1), "weekday")
    if (match := _CHINESE_WEEKDAY.match(text, at)) and not re.search(r"[\d一二两三四五六七八九十几数]$", text[:at]):
        return Quantity(at, match.end(), float("一二三四五六日".index(match[1].replace("天", "日")) + 1), "weekday")
    return None


def next_weekday(text: str, at: int) -> Quantity | None:
    """The end of 周一至五, which does not repeat the word."""
    if match := _BARE_WEEKDAY.match(text, at):
        return Quantity(at, match.end(), float("一二三四五六日".index(match[1].replace("天", "日")) + 1), "weekday")
    return None


def is_month(text: str, start: int, end: int) -> bool:
    """March and May are also words: a month begins with a capital, and these two stand as a month does."""
    word = text[start:end]
    if not word[0].isupper():
        return False
    if word not in ("March", "May", "Mar"):
        return True
    beside = text[max(0, start - 6) : start] + text[end : end + 6]
    return bool(re.search(r"\d", beside) or _MONTH_BEFORE.search(text[:start]) or _followed_by_month(text[end:]))


def _followed_by_month(rest: str) -> bool:
    match = re.match(r"\s*(?:-|to|through|until|and|or|,)\s*([A-Z][a-z]+)", rest)
    return bool(match and match[1].lower() in numerals.MONTHS)


def same_time(value: float, unit: str, other: float, other_unit: str) -> bool:
    """Whether a time of day is borne out by another, where at least one of them is one.

    Where the half of the day is not told, a statement's 9 stands for both, but 9 pm is more than a page's 9.
    """
    if unit == CLOCK and other_unit in (TIME, ""):
        return value == other and (value <= 12 or other_unit == TIME)
    if CLOCK in (unit, other_unit) or TIME in (unit, other_unit):
        plain = {unit, other_unit} <= {CLOCK, TIME, ""}
        return plain and (value == other or (unit != CLOCK and value % 12 == other % 12 and value <= 12))
    return value == other and unit == other_unit
