"""Value detection: equal values are equal however they are written.

A number includes its sign, unit or currency, and bound, if any; dates, times of day, ratios, versions and identifiers
are separate kinds of values. `find_values` expects text from `normalise`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from math import gcd
from typing import Final

from rag.quantities.values import (
    DENOMINATORS,
    DIGITS,
    ENGLISH,
    HAN,
    HAN_DIGITS,
    MONTHS,
    ORDINALS,
    SCALES,
    WEEKDAYS,
    WORDS,
    Dimension,
    Interpretation,
    Measure,
    Value,
    find_bound_after,
    find_bound_before,
    find_date,
    find_measures,
    find_moment_bound,
    find_time,
    find_weekday,
    load_currencies,
    parse_chinese,
    parse_digits,
    parse_english,
    read_day,
)
from rag.text import lazy_regex

_LOOKBACK: Final = 48  # max. characters before a number that may belong to it
_DURATION: Final[Dimension] = (0, 0, 1, 0, 0)
_EXACT: Final = 99  # figures of a number that is never rounded

# Normalisation

_SUPERSCRIPT: Final = lazy_regex(r"(?<=\d)(?=[⁺⁻⁰¹²³⁴-⁹])")
_VULGAR_FRACTION: Final = lazy_regex(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_DEGREE: Final = lazy_regex(r"(?<=\d) ?[º˚°](?: ?(?=[CF]\b))?")
_HAN_COMMA: Final = lazy_regex(r"，(?=\d)")  # separates numbers, not thousands
_FOLDINGS: Final = str.maketrans("’萬億點兩負⁄⩽≦⩾≧∶", "'万亿点两负/≤≤≥≥:")
_SIGNS: Final = (("<=", "≤"), (">=", "≥"), ("!=", "≠"), ("-->", "→"), ("->", "→"), ("=>", "→"))
_ARROWS: Final = {"RIGHTWARDS": "→", "LEFTWARDS": "←", "UPWARDS": "↑", "DOWNWARDS": "↓"}


def normalise(text: str) -> str:
    """Return `text` in NFKC, with powers, fractions and symbols in a uniform notation."""
    if not text.isascii():
        text = _DEGREE.sub("°", text)
        text = _HAN_COMMA.sub(", ", _VULGAR_FRACTION.sub(" ", _SUPERSCRIPT.sub("^", text)))
        text = unicodedata.normalize("NFKC", text).translate(_FOLDINGS)
    for spelling, sign in _SIGNS:
        text = text.replace(spelling, sign)
    return text


@lru_cache(maxsize=1024)
def find_sign(char: str) -> str:
    """Return a symbol that may change the meaning of a sentence, with arrows reduced to directions; else ""."""
    if char in "|~^`+*" or unicodedata.category(char) not in ("Sm", "Sc", "So"):
        return ""
    name = unicodedata.name(char, "")
    return next((sign for direction, sign in _ARROWS.items() if "ARROW" in name and direction in name), char)


# Numbers and their units

_DIGITS: Final = lazy_regex(DIGITS)
_HAN_NUMBER: Final = lazy_regex(
    rf"[{HAN_DIGITS}十][{HAN_DIGITS}十百千万亿]{{0,24}}(?:点[{HAN_DIGITS}]{{1,12}}[万亿]{{0,2}})?"
)
_HAN_SCALE: Final = lazy_regex(
    r"[十百千万亿]{1,3}(?:\d{1,4}(?:\.\d{1,6})?(?=[十百千万亿])|(?<=[千万亿])\d{1,4}(?![\d.,:/年月日-]))?"
)
_HAN_HALF: Final = lazy_regex("一半|半(?=个|小时|天|年|公里|公斤|米)个?")
_ENGLISH: Final = lazy_regex(ENGLISH, re.IGNORECASE)
_ORDINAL: Final = lazy_regex(
    rf"(?:(?P<tens>twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -])?(?P<last>{'|'.join(ORDINALS)})\b",
    re.IGNORECASE,
)
_ENGLISH_FRACTION: Final = lazy_regex(
    rf"(?P<n>one|two|three|four|five|six|seven|eight|nine|an?)[ -](?P<of>{'|'.join(DENOMINATORS)})(?P<many>s?)\b"
    r"|half\b(?! past)",
    re.IGNORECASE,
)
_HAN_FRACTION: Final = lazy_regex(
    rf"(?P<of>[百千万]|\d{{1,6}}|[{HAN_DIGITS}十]{{1,4}})分之(?P<n>{DIGITS}|[{HAN_DIGITS}十百]{{1,9}}(?:点[{HAN_DIGITS}]{{1,6}})?)"
)
_TENTHS: Final = lazy_regex(rf"(?P<n>[{HAN_DIGITS}\d])成(?P<half>半)?(?=[^{HAN}]|[的以左上多]|$)")
_FRACTION_SIGNS: Final = {"百": "%", "千": "‰", "万": "‱"}
_POWER_OF_TEN: Final = lazy_regex(r" ?[×x*] ?10\^?(?P<by>[-−+]?\d{1,3})\b|[eE](?P<e>[-+]?\d{1,3})\b")
_FRACTION: Final = lazy_regex(r"(?: (?P<a>\d{1,3}))?/(?P<b>[1-9]\d{0,3})(?![\d/])")
_AND_A_HALF: Final = lazy_regex(r" and a half\b|半(?=小时|天|年)|(?=个半)个半")
_SCALE_WORD: Final = lazy_regex(
    rf" ?(?P<word>{'|'.join(word for word in SCALES if len(word) > 1)})s?\b|(?P<sign>[kKmMbB])(?![A-Za-z\d/])",
    re.IGNORECASE,
)
_EXPONENT: Final = lazy_regex(r"\^(?P<e>[-+]?\d{1,3})(?!\d)")
_ORDINAL_ENDING: Final = lazy_regex(r"(?:st|nd|rd|th)\b")
_APPROXIMATE_SUFFIX: Final = lazy_regex("[余多来](?=\\D)")
_ABOUT_AFTER: Final = lazy_regex("左右|上下")
_ABOUT_BEFORE: Final = lazy_regex(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca?\.)|[~≈约近]|接近) ?$",
    re.IGNORECASE,
)
_LATIN: Final = r"[^\W\d_\u2e80-\uffff]"
_UNIT: Final = lazy_regex(
    rf"[ -]?(?:(?P<sign>[%‰‱]|[A-Z]{{0,3}}[$€£¥₩₹₽₫₪₱])"
    rf"|(?P<name>(?:°?{_LATIN}+[23]?(?:/{_LATIN}+[23]?)?|°)(?:[ -]{_LATIN}+){{0,3}}))| ?(?P<han>[{HAN}]{{1,8}})"
)
_WORD_END: Final = lazy_regex("[ -]|$")
_WORD_FOLLOWS: Final = lazy_regex(r" \w")
# Words that may follow a number without being what it counts.
_FUNCTION_WORDS: Final = (
    "a an the of in on at to for from by with and or but as is are was were be been it its this that these those"
    " when while also not can may might will would should do does did has have had than then so into about over after"
    " before during between more most less each per each only if because however points?"
).split()
_PER_UNIT: Final = lazy_regex(r" ?/ ?| (?:per|an?|each|every) |每")
_BELOW_ZERO: Final = lazy_regex(r"(?: degrees)? below (?:zero|freezing)\b|(?: century)? B\.?C\b(?:\.?E\b)?\.?")
_EVERY: Final = lazy_regex(rf"每(?P<unit>[{HAN}]{{1,2}}) ?$")
_HAN_REMAINDER: Final = lazy_regex(
    rf"(?:半|(?<=[米块])(?P<digits>\d{{1,2}}))(?=[的以左上多]|[^{HAN}\d%/]|$)(?![.,:]\d)"
)
_CURRENCY_BEFORE: Final = lazy_regex(rf"(?:[A-Z]{{0,3}}[$€£¥₩₹₽₫₪₱]|\b[A-Z]{{3}}|(?P<han>[{HAN}]{{2,4}})) ?$")
_MINUS: Final = lazy_regex(
    rf"(?<![^\s(|\[{{:,，;；=<>≤≥≈~/\"“'、$€£¥{HAN}])[-−–]$|\b(?:minus|negative) $|(?:零下|负|公元前) ?$",
    re.IGNORECASE,
)
_DASH: Final = lazy_regex(" ?[-−–—~] ?")
_EITHER_SIGN: Final = lazy_regex(r"[±+]$")
_ORDINAL_BEFORE: Final = lazy_regex("第 ?$")
_VERSION_BEFORE: Final = lazy_regex(
    r"(?:(?i:\b(?:ver|versions?|release|section|chapter|figure|fig|table|part|article|clause)\.? )|(?:§|版本?号?|第) ?"
    r"|(?<![\w.])(?!The |In |At |Of |About |Over |Under )[A-Z][A-Za-z+#]{0,24} |(?<=[A-Za-z])[≤≥<>=]{1,2} ?)$"
)
_VERSION_AFTER: Final = lazy_regex(
    r" (?:or|and) (?:newer|later|higher|above)\b|(?:[及或]?以[上下])?版本?|[节章条]", re.IGNORECASE
)

_NOUN_AFTER: Final = lazy_regex(
    rf"[ -](?!(?:{'|'.join(_FUNCTION_WORDS)})\b){_LATIN}{{2}}"
    rf"|(?![的了是在和与也都就着吗呢吧啊之而及或把被度到至以左上等])[{HAN}]"
)

# Values other than plain numbers

_RATIO: Final = lazy_regex(
    rf"(?P<a>\d{{1,9}}(?:\.\d{{1,6}})?|[{HAN_DIGITS}十]{{1,3}})(?: : |[:比])"
    rf"(?P<b>\d{{1,3}}(?:,\d{{3}})+|\d{{1,9}}(?:\.\d{{1,6}})?|[{HAN_DIGITS}十]{{1,3}})(?![\d:])"
)
_VERSION: Final = lazy_regex(
    r"(?P<said>\d+(?:\.\d+)+(?:-?(?:a|b|rc|alpha|beta|dev|post)\.?\d+)?)(?![A-Za-z\d])", re.IGNORECASE
)
_CODE: Final = lazy_regex(r"(?P<label>[A-Za-z]{1,12})(?P<by>[-_./–]?)(?P<rest>\d[A-Za-z\d]*(?:[-_./–]\d[A-Za-z\d]*)*)")
_NUMERIC_CODE: Final = lazy_regex(r"\d+[A-Za-z][A-Za-z\d]*(?:-\d+)?|\d+(?:-\d+){2,}|0\d+(?![\d.,:])|\d{20,}")
_DECADE: Final = lazy_regex(rf"(?P<c>\d\d|[二十一]{{1,3}})世纪(?P<d>\d0|[{HAN_DIGITS}]十)年代")

# Connectors of two values

_RANGE_JOINER: Final = lazy_regex(r" ?(?:[-−–—~]|\bto\b|[至到]) ?")
_PAIR_JOINER: Final = lazy_regex(r" (?:and|to) | ?[和与至到] ?")
_BETWEEN_BEFORE: Final = lazy_regex(r"(?:\b(?:between|from)|介于|从|在) ?$", re.IGNORECASE)
_ADDITION: Final = lazy_regex(r" ?(?:and |又)?")
_RATIO_BEFORE: Final = lazy_regex(r"\b(?:ratio|proportion|odds)(?: of| is|:)? $", re.IGNORECASE)

_INITIALS: Final = (
    *WORDS,
    *ORDINALS,
    "half",
    "quarter(?= past)",
    rf"an?(?=[ -](?:{'|'.join((*SCALES, *DENOMINATORS))})\b)",
)
_CANDIDATE: Final = lazy_regex(
    rf"(?<![A-Za-z\d])[A-Za-z]{{1,12}}+[-_./–]?+(?=\d)|\.?\d|[{HAN_DIGITS}十百千万半]"
    rf"|\b(?:(?:{'|'.join(name[:3] for name in MONTHS)})[a-z]{{0,6}}|{'|'.join(WEEKDAYS)}s?|{'|'.join(_INITIALS)})\b"
    r"|(?:周|星期|礼拜)(?=[一二三四五六日天])",
    re.IGNORECASE,
)


def find_values(text: str) -> list[Value]:
    """Return all values in text order; the year of a date follows its day."""
    finder = _Finder(text)
    at = 0
    while candidate := _CANDIDATE.search(text, at):
        finder.add_value(candidate.start())
        at = max(finder.floor, candidate.end())
    return finder.values


@dataclass(slots=True)
class _Number:
    """A number being read: `text[start:end]`, the multiplier in `scale`, and its possible units in `measures`."""

    start: int
    end: int
    number: Decimal
    figures: int = 1
    scale: Decimal = Decimal(1)  # such as a million, already included in `number`
    measures: tuple[Measure, ...] = ()
    bound: str = ""
    is_approximate: bool = False
    digits: str = ""
    is_explicit: bool = True
    implied: tuple[Interpretation, ...] = ()
    is_fraction: bool = False  # a part of a whole, which a percentage can express too

    def multiply(self, factor: Decimal, end: int) -> None:
        self.number, self.scale, self.end = self.number * factor, self.scale * factor, end


class _Finder:
    def __init__(self, text: str) -> None:
        self._text = text
        self.values: list[Value] = []
        self.floor = 0  # the end of the last value
        self._scales = (Decimal(1), Decimal(1))  # of the last two numbers

    def add_value(self, at: int) -> None:
        """Add the value that begins at `at`, if any."""
        before = self._text[max(self.floor, at - _LOOKBACK) : at]
        for value in self._read_moment(at, before) or self._read_special(at) or self._read_number(at, before):
            self._add(value)
            self.floor = max(self.floor, value.end)

    def _read_moment(self, at: int, before: str) -> list[Value]:
        if weekday := find_weekday(self._text, at):
            return [weekday]
        if date := find_date(self._text, at):
            bound = find_moment_bound(before, self._text, date[-1].end)
            return [replace(date[0], bound=bound), *date[1:]]
        if time := find_time(self._text, at, before):
            return [replace(time, bound=find_moment_bound(before[: time.start - at or None], self._text, time.end))]
        return []

    def _read_special(self, at: int) -> list[Value]:
        text = self._text
        if ratio := _RATIO.match(text, at):
            terms = _reduce_ratio(_parse_number(ratio["a"]), _parse_number(ratio["b"]))
            return [Value(*ratio.span(), (Interpretation("ratio", terms),))]
        if decade := _DECADE.match(text, at):
            since = (_parse_number(decade["c"]) - 1) * 100 + _parse_number(decade["d"])
            return [Value(*decade.span(), (Interpretation("code", f"{since}s"),))]
        if code := _CODE.match(text, at):
            return _build_identifier(code)
        version = _VERSION.match(text, at)
        if version and version["said"].count(".") > 1 and not _DIGITS.fullmatch(version["said"]):
            return [_build_version(version.start(), version.end(), version["said"])]
        return []

    def _read_number(self, at: int, before: str) -> list[Value]:
        item = self._read_fraction(at) or self._read_digits(at) or self._read_han(at, before) or self._read_words(at)
        if isinstance(item, Value):
            return [item]
        if item is None:
            return []
        if item.digits and (version := self._read_version(item, before)):
            return [version]
        low = at - len(before)
        self._extend_right(item, is_money=bool(self._find_currency(low, at)[0]))
        self._extend_left(item, low)
        return [self._build_value(item)]

    def _read_version(self, item: _Number, before: str) -> Value | None:
        """Read a decimal without a unit as a version if the words before or after it suggest so."""
        text, end = self._text, item.end
        version = _VERSION.match(text, item.start)
        if version is None or version.end() != end or self._find_unit(end)[0] or _SCALE_WORD.match(text, end):
            return None
        if not (_VERSION_BEFORE.search(before) or _VERSION_AFTER.match(text, end)):
            return None
        bound, length = find_bound_before(before)
        value = _build_version(item.start, end, version["said"])
        after, end = find_bound_after(text, end)
        return replace(value, start=item.start - length, end=end, bound=bound or after)

    # Number formats

    def _read_fraction(self, at: int) -> _Number | None:
        if part := _HAN_FRACTION.match(self._text, at):
            number, of = _parse_number(part["n"]), part["of"]
            if of in _FRACTION_SIGNS:
                return _Number(
                    *part.span(), number, _count_figures(part["n"]), measures=find_measures(_FRACTION_SIGNS[of])
                )
            return _Number(*part.span(), number / (_parse_number(of) or 1), _EXACT, is_fraction=True)
        if tenths := _TENTHS.match(self._text, at):
            number = parse_chinese(tenths["n"]) * 10 + (5 if tenths["half"] else 0)
            return _Number(*tenths.span(), number, 2, measures=find_measures("%"))
        if part := _ENGLISH_FRACTION.match(self._text, at):
            count, of = parse_english(part["n"] or "one") or Decimal(1), (part["of"] or "half").lower()
            if (part["many"] and count > 1) or of in ("quarter", "half") or self._text.startswith(" of ", part.end()):
                return _Number(*part.span(), count / DENOMINATORS[of], _EXACT, is_explicit=False, is_fraction=True)
        return None

    def _read_digits(self, at: int) -> _Number | Value | None:
        match = _DIGITS.match(self._text, at)
        if match is None:
            return None
        end = match.end()
        code = _NUMERIC_CODE.match(self._text, at)
        if code and (code.end() > end or code[0][0] == "0" or len(code[0]) >= 20):
            unit, unit_end = self._find_unit(end)
            scaled = any(mark.match(self._text, end) for mark in (_SCALE_WORD, _ORDINAL_ENDING, _POWER_OF_TEN))
            decade = code[0][-1] == "s" and len(code[0]) == 5  # 1990s
            if decade or not (scaled or (unit and unit_end >= code.end())):
                return Value(*code.span(), (Interpretation("code", _strip_separators(code[0])),))
        number = _Number(*match.span(), parse_digits(match[0]), _count_figures(match[0]), digits=match[0])
        if " " in match[0]:
            number.implied = tuple(Interpretation("", Decimal(part)) for part in re.findall(r"\d+", match[0]))
        return number

    def _read_han(self, at: int, before: str) -> _Number | None:
        if half := _HAN_HALF.match(self._text, at):
            return _Number(*half.span(), Decimal("0.5"), is_fraction=half[0] == "一半")
        match = _HAN_NUMBER.match(self._text, at)
        if match and len(match[0]) < 4 and not set(match[0]) & set("十百千万亿点〇零"):  # 三四线: 3 or 4, not 34
            match = re.compile(r"\D").match(self._text, at)
        if match is None or match[0] in "〇零":
            return None
        number = parse_chinese(match[0])
        is_explicit = len(match[0]) > 1 or bool(_ORDINAL_BEFORE.search(before))
        return _Number(*match.span(), number, _count_figures(f"{number:f}"), is_explicit=is_explicit)

    def _read_words(self, at: int) -> _Number | None:
        if match := _ORDINAL.match(self._text, at):
            number = ORDINALS[match["last"].lower()] + (parse_english(match["tens"]) if match["tens"] else 0)
            return _Number(*match.span(), Decimal(number), _EXACT, is_explicit=False)
        if match := _ENGLISH.match(self._text, at):
            number = parse_english(match[0])
            return _Number(*match.span(), number, _count_figures(f"{number:f}"), is_explicit=False)
        return None

    # The context of a number

    def _extend_right(self, item: _Number, is_money: bool) -> None:
        text, plain_end = self._text, item.end
        if power := _POWER_OF_TEN.match(text, item.end):
            item.multiply(Decimal(10) ** int((power["by"] or power["e"]).replace("−", "-")), power.end())
        elif item.digits == "10" and (power := _EXPONENT.match(text, item.end)):
            item.number, item.end = Decimal(10) ** int(power["e"]), power.end()
        elif item.digits.isdigit() and (fraction := _FRACTION.match(text, item.end)):
            whole, over = (item.number, Decimal(fraction["a"])) if fraction["a"] else (Decimal(0), item.number)
            item.number, item.end, item.figures = whole + over / int(fraction["b"]), fraction.end(), _EXACT
            item.is_fraction = True
        if half := _AND_A_HALF.match(text, item.end):
            item.number, item.end, item.figures = item.number + Decimal("0.5"), half.end(), _EXACT
        self._multiply(item, is_money)
        if match := _ORDINAL_ENDING.match(text, item.end):
            item.end, item.figures = match.end(), _EXACT
            return
        if match := _APPROXIMATE_SUFFIX.match(text, item.end):
            item.end, item.is_approximate = match.end(), True
            self._multiply(item, is_money)
        year = _is_year(item) or text[max(0, item.start - 3) : item.start].endswith(("公元", "公元前"))
        if item.end == plain_end and text.startswith("年", item.end) and year:
            item.end += 1
        elif not item.measures:
            self._include_unit(item)

    def _multiply(self, item: _Number, is_money: bool) -> None:
        """Include a scale such as million, bn or 万."""
        end = item.end
        while item.digits and (han := _HAN_SCALE.match(self._text, end)) and not self._find_unit(end)[0]:
            end = han.end()
        if end > item.end:
            places = self._text[item.end : end]
            number = parse_chinese(f"{item.number:f}{places}")
            item.multiply(parse_chinese(f"一{places.rstrip('0123456789.')}"), end)
            item.number = number
        while (scale := _SCALE_WORD.match(self._text, item.end)) and (factor := _find_factor(scale, is_money)):
            item.multiply(Decimal(factor), scale.end())

    def _include_unit(self, item: _Number) -> None:
        """Include the unit, which may follow a bound: 5 or more days."""
        bound, end = find_bound_after(self._text, item.end)
        measures, unit_end = self._find_unit(item.end)
        if bound and not measures:
            measures, unit_end = self._find_unit(end)
            item.bound, item.end = bound, end
        if measures:
            item.measures, item.end = measures, unit_end
            if rest := _HAN_REMAINDER.match(self._text, unit_end):  # 三公里半, 1米75
                item.number, item.end = item.number + Decimal(f"0.{rest['digits'] or 5}"), rest.end()
                item.figures = _EXACT

    def _find_unit(self, at: int) -> tuple[tuple[Measure, ...], int]:
        """Return the interpretations of the unit that begins at `at`, and its end."""
        measures, end = self._find_single_unit(at)
        return self._extend_unit(measures, end) if measures else (measures, at)

    def _extend_unit(self, measures: tuple[Measure, ...], end: int) -> tuple[tuple[Measure, ...], int]:
        """Extend a unit to a rate: a night, /kg."""
        if per := _PER_UNIT.match(self._text, end):
            others, other_end = self._find_single_unit(per.end())
            if others:
                return tuple(measure.per(others[0]) for measure in measures), other_end
        return measures, end

    def _find_single_unit(self, at: int) -> tuple[tuple[Measure, ...], int]:
        match = _UNIT.match(self._text, at)
        if match is None:
            return (), at
        if match["sign"]:
            ahead = self._text[match.end() : match.end() + 1].isdigit()  # the sign belongs to the next number
            return ((), at) if ahead else (find_measures(match["sign"]), match.end())
        name, start = match["han"] or match["name"], match.start("han" if match["han"] else "name")
        ends = range(1, len(name) + 1) if match["han"] else [space.start() for space in _WORD_END.finditer(name)]
        for length in reversed(ends):
            if name[:length] == "in" and _WORD_FOLLOWS.match(self._text, start + 2):
                continue
            if measures := find_measures(name[:length].replace("-", " ")):
                return measures, start + length
        return (), at

    def _extend_left(self, item: _Number, low: int) -> None:
        if joint := _DASH.match(self._text, low, item.start):  # 5 – −7
            low = joint.end() if self.floor else low
        for _ in range(2):
            currency, start = self._find_currency(low, item.start)
            if currency:
                per, end = self._extend_unit(currency, item.end)
                item.start, item.measures, item.end = start, item.measures or per, end
            if minus := _MINUS.search(self._text[low : item.start]):
                item.number, item.start = -item.number, item.start - len(minus[0])
        if below := _BELOW_ZERO.match(self._text, item.end):
            item.number, item.end = -abs(item.number), below.end()
        if every := _EVERY.search(self._text[low : item.start]):
            others = find_measures(every["unit"]) or find_measures(f"个{every['unit']}")
            item.measures = tuple(  # 每月25元 is 25元/月
                one.per(others[0]) if others and isinstance(one.kind, str) and "/" not in one.kind else one
                for one in item.measures
            )
        for mark in (_EITHER_SIGN, _ORDINAL_BEFORE):
            if match := mark.search(self._text[low : item.start]):
                item.start -= len(match[0])
        before = self._text[low : item.start]
        item.is_approximate = item.is_approximate or bool(
            _ABOUT_BEFORE.search(before) or _ABOUT_AFTER.match(self._text, item.end)
        )
        bound, length = find_bound_before(before)
        item.start -= length
        if not (bound or item.bound):
            bound, item.end = find_bound_after(self._text, item.end)
        item.bound = item.bound or bound

    def _find_currency(self, low: int, end: int) -> tuple[tuple[Measure, ...], int]:
        """Return the currency before a number, and its start."""
        if match := _CURRENCY_BEFORE.search(self._text[low:end]):
            name = match[0].strip()
            names = (name[-length:] for length in range(len(name), 1, -1)) if match["han"] else (name,)
            if currency := next((suffix for suffix in names if suffix in load_currencies()), ""):
                return find_measures(currency), end - len(match[0]) + len(name) - len(currency)
        return (), end

    def _build_value(self, item: _Number) -> Value:
        self._scales = (self._scales[1], item.scale)
        number = item.number
        interpretations = tuple(Interpretation(m.kind, number * m.size + m.zero, m.size) for m in item.measures)
        interpretations = interpretations or (
            Interpretation("", number),
            *((Interpretation("%", 100 * number),) if item.is_fraction else ()),
        )
        bound = item.bound
        if not bound and (interpretations[0].kind in (_DURATION, "months") or (not item.measures and _is_year(item))):
            bound = find_moment_bound(self._text[max(0, item.start - _LOOKBACK) : item.start], self._text, item.end)
        return Value(
            *(item.start, item.end, interpretations, number, item.implied, bound),
            figures=item.figures,
            is_approximate=item.is_approximate or item.scale != 1,
            is_explicit=item.is_explicit or (bool(item.measures) and abs(number) != 1),
            is_count=not item.measures and _NOUN_AFTER.match(self._text, item.end) is not None,
        )

    # Combined values

    def _add(self, value: Value) -> None:
        if self.values:
            previous, between = self.values[-1], self._text[self.values[-1].end : value.start]
            ahead = self._text[max(0, previous.start - _LOOKBACK) : previous.start]
            if _ADDITION.fullmatch(between) and (whole := _merge_values(previous, value, "and" in between)):
                self.values[-1] = whole
                return
            if _RANGE_JOINER.fullmatch(between) or (_PAIR_JOINER.fullmatch(between) and _BETWEEN_BEFORE.search(ahead)):
                if _RATIO_BEFORE.search(ahead) and previous.number is not None and value.number is not None:
                    ratio = _reduce_ratio(previous.number, value.number)
                    self.values[-1] = Value(previous.start, value.end, (Interpretation("ratio", ratio),))
                    return
                self.values[-1], value = _bind_range(previous, value, self._scales)
        self.values.append(value)


def _parse_number(text: str) -> Decimal:
    return parse_digits(text) if text[0].isascii() else parse_chinese(text)


def _count_figures(text: str) -> int:
    """Count significant digits; trailing zeros of a whole number are not significant."""
    digits = re.sub(r"\D", "", text)
    return max(1, len(digits.lstrip("0") if re.search(r"[.,]\d{1,2}$", text) else digits.strip("0")))


def _strip_separators(text: str) -> str:
    return re.sub(r"[^a-z\d]", "", text.lower())


def _find_factor(scale: re.Match[str], is_money: bool) -> int:
    """Return the factor of a scale; m depends on its context: £5m, 5M users, 5 m long."""
    if word := scale["word"]:
        return SCALES[word.lower()]
    sign = scale["sign"]
    if sign in "mbB" and not is_money:
        return 0
    return {"k": 10**3, "m": 10**6, "b": 10**9}[sign.lower()]


def _is_year(item: _Number) -> bool:
    return item.number == int(item.number) and 1000 <= item.number < 3000 and item.scale == 1


def _reduce_ratio(first: Decimal, second: Decimal) -> str:
    if first == int(first) and second == int(second) and second:
        by = gcd(int(first), int(second)) or 1
        return f"{int(first) // by}:{int(second) // by}"
    return f"{first.normalize():f}:{second.normalize():f}"


def _build_version(start: int, end: int, text: str) -> Value:
    """Return a version as a value: 3.1 is not 3.10, but 3 is 3.0."""
    text = text.lower()
    while text.endswith(".0"):
        text = text.removesuffix(".0")
    number = Decimal(text) if re.fullmatch(r"\d+(?:\.\d*[1-9])?", text) else None
    return Value(start, end, (Interpretation("version", text),), number, figures=_EXACT)


def _build_identifier(code: re.Match[str]) -> list[Value]:
    label, rest = code["label"], code["rest"]
    if label in load_currencies() and len(label) == 3 and not code["by"]:
        return []
    if label.islower() and len(label) > 2 and code["by"]:  # mid-1990s
        return []
    if _VERSION.fullmatch(rest):
        return [_build_version(*code.span(), rest)]
    label = "" if label.lower() in ("no", "nr") else label.lower()
    if rest.isdigit() and (rest[0] != "0" or rest == "0"):
        return [Value(*code.span(), (Interpretation("", Decimal(rest)),), Decimal(rest), figures=_EXACT, label=label)]
    return [Value(*code.span(), (Interpretation("code", _strip_separators(code[0])),))]


def _merge_values(first: Value, second: Value, has_and: bool) -> Value | None:
    """Return two values as one, such as 1 hour and 30 minutes or 5 ft 3 in; None if they are separate."""
    big, small = first.interpretations[0], second.interpretations[0]
    same = big.kind == small.kind and big.kind != "" and big.size > small.size and not second.bound
    if not same or isinstance(big.amount, str) or isinstance(small.amount, str) or small.amount >= big.size:
        return None
    if has_and and big.kind not in (_DURATION, "months"):
        return None
    amount = big.amount + small.amount
    return replace(
        first,
        end=second.end,
        interpretations=(Interpretation(big.kind, amount, big.size),),
        number=amount / big.size,
        figures=_EXACT,
    )


def _bind_range(first: Value, second: Value, scales: tuple[Decimal, Decimal]) -> tuple[Value, Value]:
    """Return both ends of a range as bounds with their shared unit; the second one includes the connector."""
    if day := read_day(first, second):
        first = day
    elif day := read_day(second, first):
        second = day
    elif first.number is not None and second.number is not None:
        if scales[0] == 1 < scales[1] and first.number < 1000:
            first = _adopt_unit(first, first.number * scales[1], first)
        if first.has_unit and not second.has_unit:
            second = _adopt_unit(second, second.number, first)
        elif second.has_unit and not first.has_unit:
            first = _adopt_unit(first, first.number, second)
        ends = [end.number or Decimal(0) for end in (first, second)]
        years = not first.has_unit and all(1000 <= end <= 3000 for end in ends)
        same = first.interpretations[0].kind == second.interpretations[0].kind and ends[0] < ends[1]
        if same and not years:
            first, second = replace(first, bound="≥", is_range_end=True), replace(second, bound="≤", is_range_end=True)
    return first, replace(second, start=first.end)


def _adopt_unit(value: Value, number: Decimal | None, other: Value) -> Value:
    """Return a value as `number` in the other's unit."""
    if number is None or other.number is None:
        return value
    delta = number - other.number
    interpretations = (
        r._replace(amount=r.amount + delta * r.size) for r in other.interpretations if not isinstance(r.amount, str)
    )
    return replace(value, number=number, interpretations=shifted) if (shifted := tuple(interpretations)) else value
