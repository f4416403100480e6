"""Days and periods that a text names, in English and Chinese: "since last Monday", "最近两周".

dateparser reads Chinese as a word here and there (of "3月1日到3月5日" it makes two days in August) and finds a day in
"may I ask", so the grammar is this file's own: a moment is a day, week, month or year, and what stands around it
says which side of it is meant. Dates that are written differently in different countries (03/04/2025) are none.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from rag.quantities.numerals import chinese_number


@dataclass(frozen=True, slots=True)
class Period:
    """From the day `since` through the day `until`, either of them None where that side is open.

    `text[start:end]` is what names it, with the words around it that say which side is meant.
    """

    since: date | None
    until: date | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The days from `first` through `last`, as they are named; a `weak` one is none without a word that places it."""

    first: date
    last: date
    start: int
    end: int
    kind: str
    said: str

    @property
    def weak(self) -> bool:
        """Whether it may be something else: a number, a day of every week, or "may" and "march" in lower case."""
        if self.kind in ("dmy", "mdy"):
            return self.said.islower() and not re.search(r"\d{4}", self.said)
        return self.kind == "year" or (self.kind in ("my", "turn") and " " not in self.said)


_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS: Final = "mon tue wed thu fri sat sun".split()
_NUMBERS: Final = "no a/an/one two/couple three/few four five six seven eight nine ten eleven twelve".split()
_HAN_DAYS: Final = "一二三四五六日"

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_COUNT = (
    r"(?:\d{1,5}|an?|one|two|(?:a )?few|(?:a )?couple(?: of)?|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
)
_UNIT = r"(?:hour|day|week|month|year)"
_HAN_COUNT = r"(?:\d{1,5}(?!\s?年)|\d{1,3}|[一二两三四五六七八九十百几半]{1,4})\s?个?(?:小时|天|日|周|星期|礼拜|月|年)"
_HAN_WEEK = "(?:周|星期|礼拜)"

SPAN: Final = re.compile(rf"\b{_COUNT} {_UNIT}s?\b|(?<!\d){_HAN_COUNT}", re.IGNORECASE)
"""A stretch of time."""
_MOMENT: Final = re.compile(
    rf"(?P<iso>(?<![\w./-])\d{{4}}([-/])\d{{1,2}}\2\d{{1,2}}(?![\d/-]))"
    rf"|\b(?P<dmy>\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<mdy>{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<my>{_MONTH}(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<ago>{_COUNT} {_UNIT}s? ago)\b"
    rf"|\b(?P<rolling>(?:the )?(?:last|past|previous) {_COUNT} {_UNIT}s?|the (?:last|past) {_UNIT})\b"
    rf"|\b(?P<edge>(?:the )?(?:beginning|start) of (?:the|this|last) (?:week|month|year))\b"
    rf"|\b(?P<near>(?:the day before )?yesterday|today|(?:the day after )?tomorrow)\b"
    rf"|\b(?P<turn>(?:last|this|next) (?:week|month|year|{_WEEKDAY})|{_WEEKDAY})\b"
    r"|\b(?P<year>(?:19|20)\d\d)\b(?![年.,:/%-]\S)"
    r"|(?P<zhday>(?:(?:(?<!\d)\d{4}|[〇零一二三四五六七八九]{4}|[今去前明])年)?"
    r"(?:\d{1,2}|[一二三四五六七八九十]{1,2}|本|这个|上个?|下个)月(?:份|(?:\d{1,2}|[一二三四五六七八九十]{1,3})[日号]|初)?)"
    r"|(?P<zhyear>(?:(?<!\d)\d{4}|[〇零一二三四五六七八九]{4}|[今去前明])年初?|年初)"
    r"|(?P<zhnear>大?前天|昨[天日]|今[天日]|明[天日]|大?后天)"
    rf"|(?P<zhturn>(?:上上|上|本|这|下)个?{_HAN_WEEK}[一二三四五六日天]?|(?<![每\d一两几]){_HAN_WEEK}[一二三四五六日天](?!次))"
    rf"|(?P<zhago>(?<!\d){_HAN_COUNT}[之以]?前)"
    rf"|(?P<zhrolling>(?:最近|过去|近)的?{_HAN_COUNT}|{_HAN_COUNT}[之以]?内)",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    r"(?P<since>\b(?:ever since|since|starting|starting from|from|after|as of)|自从|自|从)(?: the| on)?\s?\Z"
    r"|(?P<before>\bbefore)(?: the)?\s?\Z"
    r"|(?P<until>\b(?:until|till|up to|by)|截至|截止到?|直到)(?: the| on)?\s?\Z"
    r"|(?P<range>\bbetween)(?: the)?\s?\Z"
    r"|(?P<within>\b(?:in|on|during|for|within|over)|在)(?: the)?\s?\Z",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"\s?(?:(?P<since>以来|以后|之后|后|起|开始|至今| (?:onwards?|or later|and later))"
    r"|(?P<before>[之以]前|前(?![一二三四五六七八九十几\d]))|(?P<until>为止))",
    re.IGNORECASE,
)
_JOINS: Final = re.compile(r"\s?(?:\b(?:to|until|till|through|and)\b|[-–—~～到至和])\s?(?:the )?", re.IGNORECASE)
_LONGEST: Final = 24


def period_of(text: str, today: date, *, ahead: bool = False) -> Period | None:
    """The first period that `text` names, None where it names none.

    A day without its year is the last one there was, or with `ahead` the next one there is.
    """
    moments = [one for one in moments_in(text, today, ahead) if one.start < 20_000]
    for place, moment in enumerate(moments):
        other = moments[place + 1] if place + 1 < len(moments) else None
        if found := _framed(text, moment, other):
            return found
    return None


def _framed(text: str, moment: Moment, other: Moment | None) -> Period | None:
    before = _BEFORE.search(text, max(0, moment.start - _LONGEST), moment.start)
    side = before.lastgroup if before else ""
    start = before.start() if before else moment.start
    joint = _JOINS.fullmatch(text, moment.end, other.start) if other else None
    if other and joint and (side in ("since", "range", "within") or joint[0].strip().lower() not in ("and", "和")):
        first = moment.first
        if first > other.last:  # "1 May and 3 June 2025": the last one before it
            first = _READ[moment.kind](moment.said.lower(), other.last, False)[0]
        return Period(first, other.last, start, other.end)
    if moment.weak and not before:
        return None
    after = _AFTER.match(text, moment.end, moment.end + _LONGEST)
    end = after.end() if after else moment.end
    side = after.lastgroup if after else side
    if side == "since" or moment.kind.endswith("rolling"):
        return Period(moment.first, None, start, end)
    if side == "before":
        return Period(None, moment.first - timedelta(1), start, end)
    return Period(None if side == "until" else moment.first, moment.last, start, end)


def moments_in(text: str, today: date, ahead: bool) -> Iterator[Moment]:
    """All that `text` names, as `period_of` reads them, the weak ones too."""
    for found in _MOMENT.finditer(text):
        kind = str(found.lastgroup)
        try:
            first, last = _READ[kind](found[0].lower(), today, ahead)
        except (ValueError, OverflowError):  # the 31st of June
            continue
        yield Moment(first, last, *found.span(), kind, found[0])


def _day(one: date) -> tuple[date, date]:
    return one, one


def _whole(year: int, month: int = 0) -> tuple[date, date]:
    """A month or, without one, a year."""
    return date(year, month or 1, 1), date(year, month or 12, monthrange(year, month or 12)[1])


def shifted(day: date, said: str, sign: int) -> date:
    """The day so long ("three weeks") after another, or before it with -1. Raises ValueError, OverflowError."""
    return _back(day, -sign * _count(said.lower()), _unit(said.lower()))


def _back(today: date, count: float, unit: str) -> date:
    """The day so many units before; months that are shorter end sooner."""
    if unit in ("hour", "小时"):
        return today - timedelta(hours=count) if count >= 24 else today
    if unit in ("day", "天", "日", "week", "周", "星期", "礼拜"):
        return today - timedelta(days=count * (1 if unit in ("day", "天", "日") else 7))
    months = today.year * 12 + today.month - 1 - round(count * (12 if unit in ("year", "年") else 1))
    year, month = divmod(months, 12)
    return date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def _dated(year: int, month: int, day: int, today: date, ahead: bool) -> tuple[date, date]:
    """A day, or without one a month; without a year the nearest in the past, or with `ahead` to come."""
    for guess in [year] if year else sorted(range(today.year - 8, today.year + 9), key=lambda y: abs(y - today.year)):
        try:
            first, last = _day(date(guess, month, day)) if day else _whole(guess, month)
        except ValueError:
            continue
        if year or (last >= today if ahead else first <= today):
            return first, last
    raise ValueError


def _english(said: str, today: date, ahead: bool) -> tuple[date, date]:
    month = next(place for one in re.findall("[a-z]+", said) for place in range(12) if one[:3] == _MONTHS[place])
    numbers = [int(one) for one in re.findall(r"\d+", said)]
    year, day = (next((one for one in numbers if (one > 99) is large), 0) for large in (True, False))
    return _dated(year, month + 1, day, today, ahead)


def _count(said: str) -> float:
    if digits := re.search(r"\d+", said):
        return int(digits[0])
    if han := re.search("[一二两三四五六七八九十百几半]+", said):
        return 0.5 if han[0] == "半" else 3 if han[0] == "几" else float(chinese_number(han[0]))
    words = said.removeprefix("a ").split() if "few" in said or "couple" in said else said.split()
    return next((n for n, names in enumerate(_NUMBERS) for word in words if word in names.split("/")), 1)


def _unit(said: str) -> str:
    return str(re.findall("hour|day|week|month|year|小时|天|日|周|星期|礼拜|月|年", said)[-1])


def _ago(said: str, today: date, _: bool) -> tuple[date, date]:
    return _day(_back(today, _count(said), _unit(said)))


def _rolling(said: str, today: date, _: bool) -> tuple[date, date]:
    return _back(today, _count(said), _unit(said)), today


def _turn(said: str, today: date, ahead: bool) -> tuple[date, date]:
    """A week, month or year by its distance from today's, or a weekday."""
    step = {"last": -1, "next": 1}.get(said.split()[0], 0)
    named = said.split()[-1]
    if named == "month":
        return _whole(*_month(today, step))
    if named == "year":
        return _whole(today.year + step)
    if named == "week":
        return _week(today, step)
    return _day(_weekday(today, _DAYS.index(named[:3]), step, ahead))


def _weekday(today: date, wanted: int, step: int, ahead: bool) -> date:
    if step > 0 or (ahead and not step):
        return today + timedelta((wanted - today.weekday() - step) % 7 + step)
    back = (today.weekday() - wanted) % 7
    return today - timedelta(back or (7 if step else 0))


def _week(today: date, step: int) -> tuple[date, date]:
    monday = today + timedelta(7 * step - today.weekday())
    return monday, monday + timedelta(6)


def _month(today: date, step: int) -> tuple[int, int]:
    year, month = divmod(today.year * 12 + today.month - 1 + step, 12)
    return year, month + 1


def _edge(said: str, today: date, ahead: bool) -> tuple[date, date]:
    return _day(_turn(f"{'last' if 'last' in said else 'this'} {said.split()[-1]}", today, ahead)[0])


def _near(said: str, today: date, _: bool) -> tuple[date, date]:
    steps = {"day before": -2, "yesterday": -1, "day after": 2, "tomorrow": 1, "大前": -3, "前": -2, "昨": -1}
    steps |= {"大后": 3, "后": 2, "明": 1}
    return _day(today + timedelta(next((days for word, days in steps.items() if word in said), 0)))


def _han_day(said: str, today: date, ahead: bool) -> tuple[date, date]:
    year, _, rest = said.rpartition("年")
    if turn := re.match("[本这上下]", rest):
        return _whole(*_month(today, {"上": -1, "下": 1}.get(turn[0], 0)))
    month, _, day = rest.partition("月")
    first, last = _dated(_han_year(year, today), _han(month), _han(day.rstrip("日号份初")), today, ahead)
    return _day(first) if day == "初" else (first, last)


def _han_whole_year(said: str, today: date, _: bool) -> tuple[date, date]:
    first, last = _whole(_han_year(said.partition("年")[0], today) or today.year)
    return _day(first) if said.endswith("初") else (first, last)


def _han_year(said: str, today: date) -> int:
    near = {"今": 0, "去": -1, "前": -2, "明": 1}
    return today.year + near[said] if said in near else _han(said)


def _han(said: str) -> int:
    """A number in digits or Chinese; 0 for none. A year is written digit by digit."""
    return int(said) if said.isdecimal() else int(chinese_number(said)) if said else 0


def _han_turn(said: str, today: date, ahead: bool) -> tuple[date, date]:
    step = {"上": -1, "下": 1}.get(said[0], 0) * (2 if said.startswith("上上") else 1)
    if said[-1] not in _HAN_DAYS + "天":
        return _week(today, step)
    wanted = _HAN_DAYS.index(said[-1].replace("天", "日"))
    if said[0] in "周星礼":
        return _day(_weekday(today, wanted, 0, ahead))
    return _day(_week(today, step)[0] + timedelta(wanted))


_READ: Final = {
    "iso": lambda said, today, ahead: _day(date(*map(int, re.split("[-/]", said)))),
    "dmy": _english,
    "mdy": _english,
    "my": _english,
    "ago": _ago,
    "rolling": _rolling,
    "edge": _edge,
    "near": _near,
    "turn": _turn,
    "year": lambda said, today, ahead: _whole(int(said)),
    "zhday": _han_day,
    "zhyear": _han_whole_year,
    "zhnear": _near,
    "zhturn": _han_turn,
    "zhago": _ago,
    "zhrolling": _rolling,
}


def now() -> str:
    """The present moment as it is stored: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
