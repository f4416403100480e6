"""Dates: today, weekdays, the days between two dates, and the date so long before or after another."""

from __future__ import annotations

import re
from calendar import isleap
from datetime import date
from typing import Final

from rag.dates import SPAN, find_moments, shift_day
from rag.errors import ToolError
from rag.patterns import lazy_regex
from rag.tools.tool import Result, Tool, Work

_PAST: Final = lazy_regex(r"\b(?:since|ago|was|were|did|last|past)\b|已经|过去|过了|以来|自从", re.IGNORECASE)
_BEFORE: Final = lazy_regex(r"\b(?:before|earlier|minus|ago)\b|(?<=\s)-\s|减|前", re.IGNORECASE)
_NEEDS_DAY: Final = lazy_regex(r"\b(?:until|till|since|between|before|after)\b|还有|距离?|之间|以来", re.IGNORECASE)
_FEASTS: Final = (
    (lazy_regex(r"\bchristmas(?: day)?\b|圣诞节?", re.IGNORECASE), "25 December"),
    (lazy_regex(r"\bnew year(?:'s(?: day)?)?\b|元旦", re.IGNORECASE), "1 January"),
    (lazy_regex("国庆节?"), "1 October"),
    (lazy_regex("劳动节|五一"), "1 May"),
)
_LEAP: Final = lazy_regex(r"\bleap\b|[闰閏]", re.IGNORECASE)
_NO_DAYS: Final = frozenset({"year", "rolling", "zhrolling"})
_WEEKDAYS: Final = "一二三四五六日"


def answer_question(text: str, work: Work) -> Result:
    """Answer a question about dates. Raises ToolError for an invalid date, or none if one is needed."""
    today = work.now.date()
    for feast, date_text in _FEASTS:
        text = feast.sub(f" {date_text} ", text)
    if _LEAP.search(text):
        year = int(match[0]) if (match := re.search(r"\d{4}", text)) else today.year
        return Result(work.say("date_leap" if isleap(year) else "date_no_leap", year=year), {"year": year})
    try:
        days, span = _find_dates(text, today)
        if span:
            base = days[0] if days else today
            return _describe(base, shift_day(base, span, -1 if _BEFORE.search(text) else 1), "date_shifted", work)
    except (ValueError, OverflowError) as error:
        raise ToolError("date_unreadable") from error
    if len(days) > 1:
        return _describe(days[0], days[1], "date_between", work)
    if days:
        return _describe(today, days[0], "date_today" if days[0] == today else "date_from_today", work)
    if _NEEDS_DAY.search(text) and any(map(str.isdigit, text)):
        raise ToolError("date_unreadable")
    clock = f"{work.now:%H:%M} (UTC{work.now:%z})"
    return Result(work.say("date_now", day=_format(today, work), clock=clock), {"now": work.now.isoformat()})


def _find_dates(text: str, today: date) -> tuple[list[date], str]:
    """Return the first two dates in the text, and a period of time."""
    ahead = not _PAST.search(text)
    moments = [one for one in find_moments(text, today, ahead) if one.kind not in _NO_DAYS]
    spans = (
        one[0]
        for one in SPAN.finditer(text)
        if "几" not in one[0] and not any(moment.start < one.end() and one.start() < moment.end for moment in moments)
    )
    return [one.first for one in moments][:2], next(spans, "")


def _describe(first: date, last: date, code: str, work: Work) -> Result:
    """Return a sentence about two dates and the days between them."""
    count = (last - first).days
    side = "" if code in ("date_between", "date_today") else "_after" if count >= 0 else "_before"
    text = work.say(code + side, first=_format(first, work), last=_format(last, work), count=abs(count))
    return Result(text, {"first": first.isoformat(), "last": last.isoformat(), "days": count})


def _format(day: date, work: Work) -> str:
    if work.language == "zh":
        return f"{day.year}年{day.month}月{day.day}日（星期{_WEEKDAYS[day.weekday()]}）"
    return f"{day:%A}, {day.day} {day:%B} {day.year}"


TOOL: Final = Tool(
    "date",
    "Tells today's date, weekday and time, the weekday of a date, how many days lie between two dates or until one,"
    " and the date so many days, weeks, months or years before or after another.",
    "question",
    "such as: days between 1 March 2026 and 5 May 2026; 30 days after 14 November 2026; weekday of 2026-12-25; now",
    2.0,
    answer_question,
)
