"""The date tool: the time here and in other places, weekdays, ages, and the days or a duration between two dates."""

from __future__ import annotations

import re
from calendar import isleap
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from rag.dates import SPAN, Moment, find_moments, shift_day
from rag.errors import ToolError
from rag.quantities.values import simplify
from rag.text import lazy_regex
from rag.tools.tool import Tool, ToolResources, ToolResult

_PAST: Final = lazy_regex(r"\b(?:since|ago|was|were|did|last|past)\b|已经|过去|过了|以来|自从", re.IGNORECASE)
_BEFORE: Final = lazy_regex(r"\b(?:before|earlier|minus|ago)\b|(?<=\s)-\s|减|前", re.IGNORECASE)
_NEEDS_DAY: Final = lazy_regex(r"\b(?:until|till|since|between|before|after)\b|还有|距离?|之间|以来", re.IGNORECASE)
_FEASTS: Final = tuple(
    (lazy_regex(feast, re.IGNORECASE), day)
    for feast, day in (
        (r"\bchristmas eve\b", " 24 December "),
        (r"\bchristmas(?: day)?\b", " 25 December "),
        (r"\bnew year'?s eve\b", " 31 December "),
        (r"\bnew year(?:'?s(?: day)?)?\b", " 1 January "),
        ("平安夜", "12月24日"),
        ("圣诞节?", "12月25日"),
        ("元旦", "1月1日"),
        ("国庆节?", "10月1日"),
        ("劳动节|五一", "5月1日"),
    )
)
_LEAP: Final = lazy_regex(r"\bleap\b|闰", re.IGNORECASE)
_NO_DAYS: Final = frozenset({"year", "rolling", "zhrolling"})
_HAN_WEEKDAYS: Final = "一二三四五六日"
_NOW: Final = lazy_regex(
    r"\b(?:what(?:'?s)?|which|how late|is|it(?:'?s)?|the|tell|give|me|do|you|know|have|can|could|please|now"
    r"|today(?:'s)?|current(?:ly)?|right|exact|local|at|in|over|there|of|and|for|date|day|time|hour|year|month|week"
    r"|weekday|difference|between)\b"
    r"|现在|今[天日]|当[前地]|目前|此刻|[几哪](?:一?天|[点号月年])|(?:星期|礼拜|周)几?|什么|多少|时[间候差]|日[期子]|告诉我"
    r"|一下|知道|小时|[年月日号点钟了是的在你我和与请问吗呢啊]",
    re.IGNORECASE,
)
"""The words of a question about the current time."""
_DATED: Final = (
    r"\b(?:how|from|to|on|since|until|till|before|after|ago|later|days|dates|years|months|weeks|are|was|were|will|be|many"
    r"|long|old|age|born|someone|who|am|i|my|if|an?|person)\b"
    r"|距离?|相隔|之?间|[以之]?[前后]|再过|过了|已经|出?生|年龄|岁数|几岁|孩子|[天周岁他她到从自还有离大共人多久]"
)
"""More words of questions about dates and ages."""
_WORDS: Final = lazy_regex(f"{_NOW.pattern}|{_DATED}", re.IGNORECASE)
_ASKS: Final = lazy_regex(
    r"\bwhat(?:'?s)?(?: the| is)* (?:day|date|weekday)|\bhow (?:many (?:day|week|month)|old|long)|\b(?:time|weekday)\b"
    r"|几[号点天周月岁]|(?:星期|礼拜|周)几|哪一?天|时[间差]|多少[天周]|多[大久]|年龄|岁数",
    re.IGNORECASE,
)
_COUNTS: Final = lazy_regex(r"\bhow (?:many|long)\b|\bdays\b|多少|多久|几(?:[天周年个]|月(?!几))", re.IGNORECASE)
_CONTAINS: Final = lazy_regex(r"\bhow many days (?:\w+ ){0,2}in\b|(?<!还)有(?:多少|几)天\W*\Z", re.IGNORECASE)
_AGE: Final = lazy_regex(r"\bhow old\b|\bage\b|几岁|多大|年龄|岁数", re.IGNORECASE)
_WEEKDAY: Final = lazy_regex(
    r"\b(?:what|which) (?:week)?day\b|\b(?:day of the week|weekday)\b|(?:星期|礼拜|周)几", re.I
)
_WEEKS: Final = lazy_regex(r"\bhow many weeks?\b|(?:几|多少)个?(?:周|星期|礼拜)", re.IGNORECASE)
_MAX_CHARACTERS: Final = 100  # characters of a question that asks for nothing else
# Places that the time zone database and Unicode's CLDR lack, or name in another zone.
_CITIES: Final = """Asia/Shanghai china 中国 beijing 北京 guangzhou 广州 shenzhen 深圳 hangzhou 杭州 nanjing 南京
chengdu 成都 wuhan 武汉 xian 西安 tianjin 天津 重庆 乌鲁木齐|America/New_York nyc boston 波士顿 washington 华盛顿
miami 迈阿密|America/Chicago houston 休斯顿 dallas 达拉斯|America/Los_Angeles la san_francisco 旧金山 seattle 西雅图
las_vegas 拉斯维加斯|America/Toronto ottawa 渥太华 montreal 蒙特利尔|Europe/London uk england 英格兰
|Europe/Berlin germany 德国 munich 慕尼黑 frankfurt 法兰克福|Europe/Madrid spain 西班牙 barcelona 巴塞罗那
|Europe/Rome milan 米兰|Europe/Zurich geneva 日内瓦|Asia/Kolkata mumbai 孟买 delhi new_delhi 新德里 bangalore 班加罗尔
|Asia/Tokyo osaka 大阪|Asia/Dubai uae 阿联酋 abu_dhabi 阿布扎比|Pacific/Auckland new_zealand 新西兰"""


def answer_question(text: str, resources: ToolResources) -> ToolResult:
    """Answer a question about dates. Raises ToolError for an invalid or missing date."""
    today, text = resources.now.date(), _normalise(text)
    if _LEAP.search(text):
        year = int(match[0]) if (match := re.search(r"\d{4}", text)) else today.year
        return ToolResult(resources.say("date_leap" if isleap(year) else "date_no_leap", year=year))
    try:
        if births := _find_births(text, today):
            return _describe_age(births[0], births[-1], resources)
        days, span = _find_dates(text, today)
        if span:
            base = days[0] if days else today
            code = "date_from_today" if base == today else "date_shifted"
            return _describe(base, shift_day(base, span, -1 if _BEFORE.search(text) else 1), code, text, resources)
    except (ValueError, OverflowError) as error:
        raise ToolError("date_unreadable") from error
    if len(days) > 1:
        return _describe(days[0], days[1], "date_between", text, resources)
    if days:
        code = "date_today" if days[0] == today else "date_weekday" if _WEEKDAY.search(text) else "date_from_today"
        return _describe(today, days[0], code, text, resources)
    if (places := _find_places(text)) is None or _is_unreadable(text):
        raise ToolError("date_unreadable")
    return ToolResult("\n\n".join(_tell_time(place, resources) for place in places or [""]))


def can_answer(text: str) -> bool:
    """True for a question about dates or the current time, even with a date that doesn't exist."""
    text = _normalise(text)
    try:
        is_dated = _has_dates(text)
    except (ValueError, OverflowError):
        return True
    return is_dated or bool(_LEAP.search(text)) or _is_unreadable(text) or _find_places(text) is not None


def _has_dates(text: str) -> bool:
    return any((*_find_dates(text, date.today()), _find_births(text, date.today())))


def is_calendar_question(text: str) -> bool:
    """True for a question about a date, an age or the time in a place, if all its words are about that."""
    if len(text) > _MAX_CHARACTERS or not _ASKS.search(text := _normalise(text)):
        return False
    if not (_find_places(text) or _has_dates(text)):
        return False
    spans = [] if _COUNTS.search(text) else [one[0] for one in SPAN.finditer(text)]
    phrases = [*(one.phrase for one in find_moments(text, date.today(), ahead=True)), *spans, *_places().findall(text)]
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(phrase, " ")
    return bool(phrases) and not re.search(r"\w", _WORDS.sub(" ", text))


def _is_unreadable(text: str) -> bool:
    """True for a text without a date that should have one, such as the 30th of February."""
    return bool(_NEEDS_DAY.search(text)) and any(map(str.isdigit, text))


def _normalise(text: str) -> str:
    """Simplify Chinese, and write out feasts and years of birth with two digits."""
    text = re.sub("(?<=[今明昨])儿", "天", simplify(text.replace("’", "'")))
    text = re.sub(r"(?<!\d)([3-9]\d)年(?=.{0,4}(?:出?生|几岁|多大))", r"19\1年", text)
    for feast, day in _FEASTS:
        text = feast.sub(day, text)
    return text


def _find_places(text: str) -> list[str] | None:
    """Return the places whose time a question asks for, [] for local time; None for any other question."""
    rest = _NOW.sub(" ", _places().sub(" ", text))
    return None if re.search(r"\w", rest) else _places().findall(text)


@cache
def _places() -> re.Pattern[str]:
    names = sorted(_load_zones(), key=len, reverse=True)
    return re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, names))})(?![a-z])", re.IGNORECASE)


@cache
def _load_zones() -> Mapping[str, str]:
    """Return the time zones by city, or by country if it has only one, in English and Chinese: "tokyo", "日本"."""
    from babel import Locale
    from babel.core import get_global

    known = available_timezones()
    zones = {zone.rpartition("/")[2].replace("_", " ").lower(): zone for zone in sorted(known)}
    territories = get_global("zone_territories")
    counts = Counter(territories.values())
    for locale in (Locale("en"), Locale("zh")):
        names = [(locale.territories.get(code), zone) for zone, code in territories.items() if counts[code] == 1]
        names += [(city.get("city"), zone) for zone, city in locale.time_zones.items()]
        zones |= {name.lower(): zone for name, zone in names if name and zone in known}
    for row in _CITIES.split("|"):
        zone, *cities = row.split()
        zones |= {city.replace("_", " "): zone for city in cities}
    del zones["easter"]  # the feast
    return zones


def _tell_time(place: str, resources: ToolResources) -> str:
    """Return a sentence with the time in a place, or here if it is empty."""
    now = resources.now.astimezone(ZoneInfo(_load_zones()[place.lower()])) if place else resources.now
    params = {"day": _format(now.date(), resources), "clock": f"{now:%H:%M} (UTC{now:%z})"}
    name = place.title() if len(place) > 3 else place.upper()
    return resources.say("date_now_there", place=name, **params) if place else resources.say("date_now", **params)


def _find_births(text: str, today: date) -> list[Moment]:
    """Return the moments in a question about an age, from the birth to the time of that age; [] for other questions."""
    moments = find_moments(text, today, ahead=False) if _AGE.search(text) else ()
    births = sorted(moments, key=lambda moment: moment.first)
    return births if births and births[0].first.year < today.year else []


def _describe_age(birth: Moment, other: Moment, resources: ToolResources) -> ToolResult:
    """Return a sentence about an age today, or, without a birthday or for another year, in the course of a year."""
    today, born = resources.now.date(), birth.first
    year = other.first.year if other is not birth else today.year
    if birth.last == born and year == today.year:
        count = year - born.year - ((today.month, today.day) < (born.month, born.day))
        return ToolResult(resources.say("date_age", day=_format(born, resources), count=count))
    return ToolResult(resources.say("date_age_in", born=born.year, year=year, count=year - born.year))


def _find_dates(text: str, today: date) -> tuple[list[date], str]:
    """Return the first two dates and the first duration in the text; for the days in a month, its first and last."""
    ahead = not _PAST.search(text)
    moments = [one for one in find_moments(text, today, ahead) if one.kind not in _NO_DAYS]
    if len(moments) == 1 and moments[0].first < moments[0].last and _CONTAINS.search(text):
        return [moments[0].first, moments[0].last + timedelta(1)], ""
    spans = (
        one[0]
        for one in SPAN.finditer(text)
        if "几" not in one[0] and not any(moment.start < one.end() and one.start() < moment.end for moment in moments)
    )
    days = [one.first for one in moments][:2]
    return [today] if today in days and not _COUNTS.search(text) else days, next(spans, "")


def _describe(first: date, last: date, code: str, text: str, resources: ToolResources) -> ToolResult:
    """Return a sentence about two dates and the time between them, in weeks if the question `text` asks for these."""
    count = (last - first).days
    side = "" if code in ("date_between", "date_today", "date_weekday") else "_after" if count >= 0 else "_before"
    weeks, days = divmod(abs(count), 7) if _WEEKS.search(text) else (0, abs(count))
    parts = {"date_weeks": weeks, "date_days": days}
    length = " ".join(
        resources.say(name, count=parts[name]) for name in parts if parts[name] or (name == "date_days" and not weeks)
    )
    sentence = resources.say(code + side, first=_format(first, resources), last=_format(last, resources), length=length)
    return ToolResult(sentence)


def _format(day: date, resources: ToolResources) -> str:
    if resources.language == "zh":
        return f"{day.year}年{day.month}月{day.day}日（星期{_HAN_WEEKDAYS[day.weekday()]}）"
    return f"{day:%A}, {day.day} {day:%B} {day.year}"


TOOL: Final = Tool(
    "date",
    "Get the date, weekday and time, also in a given city; the weekday of a date; an age; the days between two dates or"
    " until one; or the date a number of days, weeks, months or years before or after another.",
    "question",
    "such as: days between 1 March 2026 and 5 May 2026; 30 days after 14 November 2026; weekday of 2026-12-25; now",
    2.0,
    answer_question,
)
