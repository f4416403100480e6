"""Recognition of days and periods in English and Chinese text: "since last Monday", "最近两周".

dateparser recognises only single Chinese words (it turns "3月1日到3月5日" into two days in August) and finds a day in
"may I ask", so this module has its own grammar: a moment is a day, week, month or year, and the words around it decide
whether the period begins, ends or lies within it. Ambiguous numeric dates (03/04/2025) are ignored.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from rag.quantities.values import parse_chinese, to_int
from rag.text import lazy_regex


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `since` through `until`; None for an open end.

    `text[start:end]` is the phrase for the period, including words such as "since" or "before".
    """

    since: date | None
    until: date | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The days from `first` through `last` named in text; without a preposition, a moment that `is_weak` is ignored."""

    first: date
    last: date
    start: int
    end: int
    kind: str
    phrase: str

    @property
    def is_weak(self) -> bool:
        """True if it may not be a date: a bare number, a recurring weekday, or lower-case "may" or "march"."""
        if self.kind in ("dmy", "mdy"):
            return self.phrase.islower() and not re.search(r"\d{4}", self.phrase)
        return self.kind == "year" or (self.kind in ("my", "turn") and " " not in self.phrase)


_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS: Final = "mon tue wed thu fri sat sun".split()
_NUMBERS: Final = "no a/an/one two/couple three/few four five six seven eight nine ten eleven twelve".split()
_HAN_WEEKDAYS: Final = "一二三四五六日"

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

SPAN: Final = lazy_regex(rf"\b{_COUNT} {_UNIT}s?\b|(?<![\d哪]){_HAN_COUNT}", re.IGNORECASE)
"""A duration."""
_MOMENT: Final = lazy_regex(
    rf"(?P<iso>(?<![\w./-])\d{{4}}([-/])\d{{1,2}}\2\d{{1,2}}(?![\d/-]))"
    rf"|\b(?P<dmy>\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<mdy>{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<my>{_MONTH}(?:,? \d{{4}}\b)?)"
    rf"|\b(?P<ago>{_COUNT} {_UNIT}s? ago)\b"
    rf"|\b(?P<rolling>(?:the )?(?:last|past|previous) {_COUNT} {_UNIT}s?|the (?:last|past) {_UNIT})\b"
    rf"|\b(?P<edge>(?:the )?(?:beginning|start) of (?:the|this|last) (?:week|month|year))\b"
    rf"|\b(?P<near>(?:the day before )?yesterday|today|this (?:morn|even)ing|(?:the day after )?tomorrow)\b"
    rf"|\b(?P<turn>(?:last|this|next) (?:week|month|year|{_WEEKDAY})|{_WEEKDAY})\b"
    r"|\b(?P<year>(?:19|20)\d\d)\b(?![年.,:/%-]\S)"
    r"|(?P<zhday>(?:(?:(?<!\d)\d{4}|[〇零一二三四五六七八九]{4}|[今去前明])年)?"
    r"(?:\d{1,2}|[一二三四五六七八九十]{1,2}|本|这个|上个?|下个)月(?:份|(?:\d{1,2}|[一二三四五六七八九十]{1,3})[日号]|初)?)"
    r"|(?P<zhyear>(?:(?<!\d)\d{4}|[〇零一二三四五六七八九]{4}|[今去前明])年初?|年初)"
    r"|(?P<zhnear>大?前天|昨[天日晚夜]|今[天日早晨晚]|明[天日]|大?后天)"
    rf"|(?P<zhturn>(?:上上|上|本|这|下)个?{_HAN_WEEK}[一二三四五六日天]?|(?<![每\d一两几]){_HAN_WEEK}[一二三四五六日天](?!次))"
    rf"|(?P<zhago>(?<!\d){_HAN_COUNT}[之以]?前)"
    rf"|(?P<zhrolling>(?:最近|过去|近)的?{_HAN_COUNT}|{_HAN_COUNT}[之以]?内)",
    re.IGNORECASE,
)
_BEFORE: Final = lazy_regex(
    r"(?P<since>\b(?:(?:ever )?since|starting(?: from)?|from|after|newer than|as of)|自从?|从|晚于)(?: the| on)?\s?\Z"
    r"|(?P<before>\b(?:before|prior to|(?:older|earlier) than)|早于)(?: the)?\s?\Z"
    r"|(?P<until>\b(?:until|till|up to|by)|截至|截止到?|直到)(?: the| on)?\s?\Z"
    r"|(?P<range>\bbetween)(?: the)?\s?\Z"
    r"|(?P<within>\b(?:in|on|during|for|within|over)|在)(?: the)?\s?\Z",
    re.IGNORECASE,
)
_AFTER: Final = lazy_regex(
    r"\s?(?:(?P<since>以来|以后|之后|后|起|开始|至今| (?:onwards?|or later|and later))"
    r"|(?P<before>[之以]前|前(?![一二三四五六七八九十几\d]))|(?P<until>为止))",
    re.IGNORECASE,
)
_JOINER: Final = lazy_regex(r"\s?(?:\b(?:to|until|till|through|and)\b|[-–—~～到至和])\s?(?:the )?", re.IGNORECASE)
_MAX_CONTEXT: Final = 24


def find_period(text: str, today: date) -> Period | None:
    """Return the first period that `text` names, or None. A day without a year is the most recent one."""
    moments = [moment for moment in find_moments(text, today, ahead=False) if moment.start < 20_000]
    for index, moment in enumerate(moments):
        following = moments[index + 1] if index + 1 < len(moments) else None
        if period := _build_period(text, moment, following):
            return period
    return None


def _build_period(text: str, moment: Moment, second: Moment | None) -> Period | None:
    before = _BEFORE.search(text, max(0, moment.start - _MAX_CONTEXT), moment.start)
    side = before.lastgroup if before else ""
    start = before.start() if before else moment.start
    joiner = _JOINER.fullmatch(text, moment.end, second.start) if second else None
    if second and joiner and (side in ("since", "range", "within") or joiner[0].strip().lower() not in ("and", "和")):
        first = moment.first
        if first > second.last:  # "1 May and 3 June 2025": the last 1 May before 3 June
            first = _READERS[moment.kind](moment.phrase.lower(), second.last, False)[0]
        return Period(first, second.last, start, second.end)
    if moment.is_weak and not before:
        return None
    after = _AFTER.match(text, moment.end, moment.end + _MAX_CONTEXT)
    end = after.end() if after else moment.end
    side = after.lastgroup if after else side
    is_from_year = moment.kind == "year" and before and not after and before[0].lower().startswith("from")
    if (side == "since" and not is_from_year) or moment.kind.endswith("rolling"):
        return Period(moment.first, None, start, end)
    if side == "before":
        return Period(None, moment.first - timedelta(1), start, end)
    return Period(None if side == "until" else moment.first, moment.last, start, end)


def find_moments(text: str, today: date, ahead: bool) -> Iterator[Moment]:
    """Yield every moment that `text` names, including weak ones.

    A day without a year is the most recent one, or with `ahead` the next one.
    """
    for match in _MOMENT.finditer(text):
        kind = str(match.lastgroup)
        try:
            first, last = _READERS[kind](match[0].lower(), today, ahead)
        except (ValueError, OverflowError):  # the 31st of June
            continue
        yield Moment(first, last, *match.span(), kind, match[0])


def _day_range(day: date) -> tuple[date, date]:
    return day, day


def _calendar_range(year: int, month: int = 0) -> tuple[date, date]:
    """Return the first and last day of a month, or of the year if `month` is 0."""
    return date(year, month or 1, 1), date(year, month or 12, monthrange(year, month or 12)[1])


def shift_day(day: date, duration: str, sign: int) -> date:
    """Return `day` shifted by a duration ("three weeks"), back if `sign` is -1, clamped to the end of shorter months.

    Raises ValueError, OverflowError.
    """
    earlier, unit = -sign * _read_count(duration.lower()), _read_unit(duration.lower())
    if unit in ("hour", "小时"):
        return day - timedelta(days=int(earlier / 24))
    if unit in ("day", "天", "日", "week", "周", "星期", "礼拜"):
        return day - timedelta(days=earlier * (1 if unit in ("day", "天", "日") else 7))
    year, month = _shift_month(day, -round(earlier * (12 if unit in ("year", "年") else 1)))
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _resolve_date(year: int, month: int, day: int, today: date, ahead: bool) -> tuple[date, date]:
    """Return the days of a date, or of a month if `day` is 0. Without a year: the latest, or the next if `ahead`."""
    for guess in [year] if year else sorted(range(today.year - 8, today.year + 9), key=lambda y: abs(y - today.year)):
        try:
            first, last = _day_range(date(guess, month, day)) if day else _calendar_range(guess, month)
        except ValueError:
            continue
        if year or (last >= today if ahead else first <= today):
            return first, last
    raise ValueError


def _read_english(text: str, today: date, ahead: bool) -> tuple[date, date]:
    month = next(place for part in re.findall("[a-z]+", text) for place in range(12) if part[:3] == _MONTHS[place])
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    year, day = (next((part for part in numbers if (part > 99) is large), 0) for large in (True, False))
    return _resolve_date(year, month + 1, day, today, ahead)


def _read_count(text: str) -> float:
    if digits := re.search(r"\d+", text):
        return int(digits[0])
    if han := re.search("[一二两三四五六七八九十百几半]+", text):
        return 0.5 if han[0] == "半" else 3 if han[0] == "几" else float(parse_chinese(han[0]))
    words = text.removeprefix("a ").split() if "few" in text or "couple" in text else text.split()
    return next((n for n, names in enumerate(_NUMBERS) for word in words if word in names.split("/")), 1)


def _read_unit(text: str) -> str:
    return str(re.findall("hour|day|week|month|year|小时|天|日|周|星期|礼拜|月|年", text)[-1])


def _read_ago(text: str, today: date, _: bool) -> tuple[date, date]:
    return _day_range(shift_day(today, text, -1))


def _read_rolling(text: str, today: date, _: bool) -> tuple[date, date]:
    return shift_day(today, text, -1), today


def _read_turn(text: str, today: date, ahead: bool) -> tuple[date, date]:
    """Parse a weekday, or a week, month or year relative to the current one."""
    step = {"last": -1, "next": 1}.get(text.split()[0], 0)
    unit = text.split()[-1]
    if unit == "month":
        return _calendar_range(*_shift_month(today, step))
    if unit == "year":
        return _calendar_range(today.year + step)
    if unit == "week":
        return _week_range(today, step)
    return _day_range(_find_weekday(today, _WEEKDAYS.index(unit[:3]), step, ahead))


def _find_weekday(today: date, weekday: int, step: int, ahead: bool) -> date:
    if step > 0 or (ahead and not step):
        return today + timedelta((weekday - today.weekday() - step) % 7 + step)
    back = (today.weekday() - weekday) % 7
    return today - timedelta(back or (7 if step else 0))


def _week_range(today: date, step: int) -> tuple[date, date]:
    monday = today + timedelta(7 * step - today.weekday())
    return monday, monday + timedelta(6)


def _shift_month(today: date, step: int) -> tuple[int, int]:
    year, month = divmod(today.year * 12 + today.month - 1 + step, 12)
    return year, month + 1


def _read_edge(text: str, today: date, ahead: bool) -> tuple[date, date]:
    return _day_range(_read_turn(f"{'last' if 'last' in text else 'this'} {text.split()[-1]}", today, ahead)[0])


def _read_near(text: str, today: date, _: bool) -> tuple[date, date]:
    steps = {"day before": -2, "yesterday": -1, "day after": 2, "tomorrow": 1, "大前": -3, "前": -2, "昨": -1}
    steps |= {"大后": 3, "后": 2, "明": 1}
    return _day_range(today + timedelta(next((days for word, days in steps.items() if word in text), 0)))


def _read_han_day(text: str, today: date, ahead: bool) -> tuple[date, date]:
    year, _, rest = text.rpartition("年")
    if turn := re.match("[本这上下]", rest):
        return _calendar_range(*_shift_month(today, {"上": -1, "下": 1}.get(turn[0], 0)))
    month, _, day = rest.partition("月")
    first, last = _resolve_date(_to_year(year, today), to_int(month), to_int(day.rstrip("日号份初")), today, ahead)
    return _day_range(first) if day == "初" else (first, last)


def _read_han_year(text: str, today: date, _: bool) -> tuple[date, date]:
    first, last = _calendar_range(_to_year(text.partition("年")[0], today) or today.year)
    return _day_range(first) if text.endswith("初") else (first, last)


def _to_year(text: str, today: date) -> int:
    near = {"今": 0, "去": -1, "前": -2, "明": 1}
    return today.year + near[text] if text in near else to_int(text)


def _read_han_turn(text: str, today: date, ahead: bool) -> tuple[date, date]:
    step = {"上": -1, "下": 1}.get(text[0], 0) * (2 if text.startswith("上上") else 1)
    if text[-1] not in _HAN_WEEKDAYS + "天":
        return _week_range(today, step)
    weekday = _HAN_WEEKDAYS.index(text[-1].replace("天", "日"))
    if text[0] in "周星礼":
        return _day_range(_find_weekday(today, weekday, 0, ahead))
    return _day_range(_week_range(today, step)[0] + timedelta(weekday))


_READERS: Final = {
    "iso": lambda text, today, ahead: _day_range(date(*map(int, re.split("[-/]", text)))),
    "dmy": _read_english,
    "mdy": _read_english,
    "my": _read_english,
    "ago": _read_ago,
    "rolling": _read_rolling,
    "edge": _read_edge,
    "near": _read_near,
    "turn": _read_turn,
    "year": lambda text, today, ahead: _calendar_range(int(text)),
    "zhday": _read_han_day,
    "zhyear": _read_han_year,
    "zhnear": _read_near,
    "zhturn": _read_han_turn,
    "zhago": _read_ago,
    "zhrolling": _read_rolling,
}
