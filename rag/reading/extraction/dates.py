"""Dates as pages write them, in ISO 8601: numbers, English months, Chinese."""

from __future__ import annotations

import re
from datetime import date, datetime
from email.utils import parsedate_to_datetime

_ISO = re.compile(
    r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s?(Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)
_NUMERIC = re.compile(r"(?<!\d)((?:19|20)\d\d)[/.-](\d{1,2})[/.-](\d{1,2})(?!\d)")
_COMPACT = re.compile(r"\A((?:19|20)\d\d)(\d\d)(\d\d)\Z")
_CHINESE = re.compile(r"((?:19|20)\d\d)\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]")
_HANZI = re.compile(
    "([一二][〇零○一二三四五六七八九]{3})年([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号號]"
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+((?:19|20)\d\d)\b", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?(?:\s+of)?\s+{_MONTH},?\s+((?:19|20)\d\d)\b", re.IGNORECASE)
_RFC = re.compile(r"[A-Za-z]{3},? \d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(?::\d\d)? (?:GMT|UTC|[+-]\d{4})")
_DIGITS = {character: value for value, character in enumerate("〇一二三四五六七八九")} | {"零": 0, "○": 0}
_MAX = 200


def iso_date(text: str) -> str:
    """The first date in the start of `text` as `2024-03-05`, or with the time and offset it was given; or "".

    Numbers in an order that differs between countries (03/05/2024) tell no date.
    """
    text = text.strip()[:_MAX]
    if match := _ISO.search(text):
        return _with_time(match)
    if match := _RFC.search(text):
        return _from_rfc(match[0])
    for pattern, year, month, day in _ORDERS:
        if match := pattern.search(text):
            return _date(_number(match[year]), _month(match[month]), _number(match[day]))
    return ""


def _with_time(match: re.Match[str]) -> str:
    day = _date(int(match[1]), int(match[2]), int(match[3]))
    if not day or not match[4]:
        return day
    offset = (match[5] or "").replace("Z", "+00:00")
    try:
        return datetime.fromisoformat(f"{day}T{match[4]}{offset}").isoformat()
    except ValueError:
        return day


def _from_rfc(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except ValueError:
        return ""


def _date(year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _month(text: str) -> int:
    short = text[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else _number(text)


def _number(text: str) -> int:
    """An Arabic number, a year digit by digit (二〇二四), or a number below a hundred (二十一)."""
    if text.isascii():
        return int(text)
    if "十" not in text:
        return int("".join(str(_DIGITS[character]) for character in text))
    tens, _, ones = text.partition("十")
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)


_ORDERS = (
    (_CHINESE, 1, 2, 3),
    (_HANZI, 1, 2, 3),
    (_NUMERIC, 1, 2, 3),
    (_MONTH_FIRST, 3, 1, 2),
    (_DAY_FIRST, 3, 2, 1),
    (_COMPACT, 1, 2, 3),
)
