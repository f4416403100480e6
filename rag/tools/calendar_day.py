"""The date tool: today, weekdays, the days between two dates, and the date some time before or after another."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from rag.dates import SPAN, find_moments, shift_day
from rag.errors import ToolError
from rag.patterns import lazy_regex
from rag.tools.tool import Tool, ToolResources, ToolResult

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
_NOW: Final = lazy_regex(
    r"\b(?:what(?:'?s)?|which|how late|is|it(?:'?s)?|the|tell|give|me|do|you|know|have|can|could|please|now"
    r"|today(?:'s)?|current(?:ly)?|right|exact|local|at|in|over|there|of|and|for|date|day|time|hour|year|month|week|weekday)\b"
    r"|现在|今[天日]|当[前地]|目前|此刻|[几哪](?:一?天|[点号月年])|(?:星期|礼拜|周)几?|什么|多少|时[间候]|日[期子]|告诉我"
    r"|一下|知道|[年月日号点钟了是的在你我请问吗呢啊]",
    re.IGNORECASE,
)
"""The words of a question about the current time."""


def answer_question(text: str, resources: ToolResources) -> ToolResult:
    """Answer a question about dates. Raises ToolError for an invalid or missing date."""
    today, text = resources.now.date(), _name_feasts(text)
    if _LEAP.search(text):
        year = int(match[0]) if (match := re.search(r"\d{4}", text)) else today.year
        return ToolResult(resources.say("date_leap" if isleap(year) else "date_no_leap", year=year), {"year": year})
    try:
        days, span = _find_dates(text, today)
        if span:
            base = days[0] if days else today
            return _describe(base, shift_day(base, span, -1 if _BEFORE.search(text) else 1), "date_shifted", resources)
    except (ValueError, OverflowError) as error:
        raise ToolError("date_unreadable") from error
    if len(days) > 1:
        return _describe(days[0], days[1], "date_between", resources)
    if days:
        return _describe(today, days[0], "date_today" if days[0] == today else "date_from_today", resources)
    if (place := _find_place(text)) is None or _is_unreadable(text):
        raise ToolError("date_unreadable")
    now = resources.now.astimezone(ZoneInfo(_load_zones()[place.lower()])) if place else resources.now
    clock, code = f"{now:%H:%M} (UTC{now:%z})", "date_now_there" if place else "date_now"
    return ToolResult(
        resources.say(code, day=_format(now.date(), resources), clock=clock, place=place), {"now": now.isoformat()}
    )


def can_answer(text: str) -> bool:
    """True for a question about dates or the current time, even with a date that doesn't exist."""
    text = _name_feasts(text)
    try:
        days, span = _find_dates(text, date.today())
    except (ValueError, OverflowError):
        return True
    is_dated = days or span or _LEAP.search(text) or _is_unreadable(text)
    return bool(is_dated) or _find_place(text) is not None


def _is_unreadable(text: str) -> bool:
    """True for a text without a date that should have one, such as the 30th of February."""
    return bool(_NEEDS_DAY.search(text)) and any(map(str.isdigit, text))


def _name_feasts(text: str) -> str:
    for feast, date_text in _FEASTS:
        text = feast.sub(f" {date_text} ", text)
    return text


def _find_place(text: str) -> str | None:
    """Return the place whose time a question asks for, "" for local time; None for any other question."""
    places = sorted((name for name in _load_zones() if name in text.lower()), key=len, reverse=True)
    found = (re.search(rf"(?<![a-z]){re.escape(place)}(?![a-z])", text, re.IGNORECASE) for place in places)
    names = [match[0] for match in found if match]
    rests = ((name, text.replace(name, " ") if name else text) for name in (*names, ""))
    return next((name for name, rest in rests if not re.search(r"\w", _NOW.sub(" ", rest))), None)


@cache
def _load_zones() -> Mapping[str, str]:
    """Return the time zones by place name, in English and Chinese: "tokyo", "东京"."""
    from babel import Locale

    zones = {zone.rpartition("/")[2].replace("_", " ").lower(): zone for zone in sorted(available_timezones())}
    cities = {zone: names.get("city", "") for zone, names in Locale("zh").time_zones.items() if zone in zones.values()}
    return zones | {city: zone for zone, city in cities.items() if city}


def _find_dates(text: str, today: date) -> tuple[list[date], str]:
    """Return the first two dates and the first duration in the text."""
    ahead = not _PAST.search(text)
    moments = [one for one in find_moments(text, today, ahead) if one.kind not in _NO_DAYS]
    spans = (
        one[0]
        for one in SPAN.finditer(text)
        if "几" not in one[0] and not any(moment.start < one.end() and one.start() < moment.end for moment in moments)
    )
    return [one.first for one in moments][:2], next(spans, "")


def _describe(first: date, last: date, code: str, resources: ToolResources) -> ToolResult:
    """Return a sentence about two dates and the days between them."""
    count = (last - first).days
    side = "" if code in ("date_between", "date_today") else "_after" if count >= 0 else "_before"
    text = resources.say(code + side, first=_format(first, resources), last=_format(last, resources), count=abs(count))
    return ToolResult(text, {"first": first.isoformat(), "last": last.isoformat(), "days": count})


def _format(day: date, resources: ToolResources) -> str:
    if resources.language == "zh":
        return f"{day.year}年{day.month}月{day.day}日（星期{_WEEKDAYS[day.weekday()]}）"
    return f"{day:%A}, {day.day} {day:%B} {day.year}"


TOOL: Final = Tool(
    "date",
    "Get today's date, weekday and time, also in a given city; the weekday of a date; the number of days between two"
    " dates or until one; or the date a number of days, weeks, months or years before or after another.",
    "question",
    "such as: days between 1 March 2026 and 5 May 2026; 30 days after 14 November 2026; weekday of 2026-12-25; now",
    2.0,
    answer_question,
)
