"""Find the values that a text says, so that equal ones are equal however they are written.

A number comes with its sign, its unit or currency, and whether it is a bound; dates, times of day, ratios, versions and
identifiers are values of their own. Give `find_values` text that went through `normalised`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from math import gcd
from typing import Final

from rag.quantities.numerals import (
    DIGITS,
    ENGLISH,
    HAN_DIGITS,
    ORDINALS,
    SCALES,
    WORDS,
    bound_after,
    bound_before,
    bound_of_moment,
    chinese_number,
    english_number,
    number_in_digits,
)
from rag.quantities.units import Dimension, Measure, currencies, measure_named
from rag.quantities.values import MONTHS, WEEKDAYS, Reading, Value, day_of, find_date, find_time, find_weekday

HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff"
_BEFORE: Final = 48  # characters before a number that may belong to it
_TIME: Final[Dimension] = (0, 0, 1, 0, 0)
_EXACT: Final = 99  # figures of what is never rounded

# What a text is brought into before it is read

_SUPERSCRIPT: Final = re.compile(r"(?<=\d)(?=[⁺⁻⁰¹²³⁴-⁹])")
_VULGAR_FRACTION: Final = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_DEGREE: Final = re.compile(r"(?<=\d) ?[º˚°](?: ?(?=[CF]\b))?")
_HAN_COMMA: Final = re.compile(r"，(?=\d)")  # parts numbers, not thousands
_FOLDED: Final = str.maketrans("’萬億點兩負⁄⩽≦⩾≧∶", "'万亿点两负/≤≤≥≥:")
_SIGNS: Final = (("<=", "≤"), (">=", "≥"), ("!=", "≠"), ("-->", "→"), ("->", "→"), ("=>", "→"))
_WAYS: Final = {"RIGHTWARDS": "→", "LEFTWARDS": "←", "UPWARDS": "↑", "DOWNWARDS": "↓"}


def normalised(text: str) -> str:
    """`text` in compatibility forms (NFKC), with powers, fractions and signs each written in one way."""
    if not text.isascii():
        text = _DEGREE.sub("°", text)
        text = _HAN_COMMA.sub(", ", _VULGAR_FRACTION.sub(" ", _SUPERSCRIPT.sub("^", text)))
        text = unicodedata.normalize("NFKC", text).translate(_FOLDED)
    for written, sign in _SIGNS:
        text = text.replace(written, sign)
    return text


@lru_cache(maxsize=1024)
def sign_of(char: str) -> str:
    """The sign that tells two sentences apart: arrows by their direction; "" for letters, marks and decoration."""
    if char in "|~^`+*" or unicodedata.category(char) not in ("Sm", "Sc", "So"):
        return ""
    name = unicodedata.name(char, "")
    return next((sign for way, sign in _WAYS.items() if "ARROW" in name and way in name), char)


# Numbers and what belongs to them

_DIGITS: Final = re.compile(DIGITS)
_HAN_NUMBER: Final = re.compile(
    rf"[{HAN_DIGITS}十][{HAN_DIGITS}十百千万亿]{{0,24}}(?:点[{HAN_DIGITS}]{{1,12}}[万亿]{{0,2}})?"
)
_HAN_SCALE: Final = re.compile(
    r"[十百千万亿]{1,3}(?:\d{1,4}(?:\.\d{1,6})?(?=[十百千万亿])|(?<=[千万亿])\d{1,4}(?![\d.,:/年月日-]))?"
)
_HALF_OF: Final = re.compile("一半|半(?=个|小时|天|年|公里|公斤|米)个?")
_ENGLISH: Final = re.compile(ENGLISH, re.IGNORECASE)
_ORDINAL: Final = re.compile(
    rf"(?:(?P<tens>twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -])?(?P<last>{'|'.join(ORDINALS)})\b",
    re.IGNORECASE,
)
_DENOMINATORS: Final = {word: value for word, value in ORDINALS.items() if value > 2} | {
    "half": 2,
    "halve": 2,
    "quarter": 4,
}
_PART: Final = re.compile(
    rf"(?P<n>one|two|three|four|five|six|seven|eight|nine|an?)[ -](?P<of>{'|'.join(_DENOMINATORS)})(?P<many>s?)\b"
    r"|half\b(?! past)",
    re.IGNORECASE,
)
_HAN_PART: Final = re.compile(
    rf"(?P<of>[百千万]|\d{{1,6}}|[{HAN_DIGITS}十]{{1,4}})分之(?P<n>{DIGITS}|[{HAN_DIGITS}十百]{{1,9}}(?:点[{HAN_DIGITS}]{{1,6}})?)"
)
_TENTHS: Final = re.compile(rf"(?P<n>[{HAN_DIGITS}\d])成(?P<half>半)?(?=[^{HAN}]|[的以左上多]|$)")
_SHARES: Final = {"百": "%", "千": "‰", "万": "‱"}
_POWER_OF_TEN: Final = re.compile(r" ?[×x*] ?10\^?(?P<by>[-−+]?\d{1,3})\b|[eE](?P<e>[-+]?\d{1,3})\b")
_FRACTION: Final = re.compile(r"(?: (?P<a>\d{1,3}))?/(?P<b>[1-9]\d{0,3})(?![\d/])")
_AND_A_HALF: Final = re.compile(r" and a half\b|半(?=小时|天|年)|(?=个半)个半")
_SCALE: Final = re.compile(
    rf" ?(?P<word>{'|'.join(word for word in SCALES if len(word) > 1)})s?\b|(?P<sign>[kKmMbB])(?![A-Za-z\d/])",
    re.IGNORECASE,
)
_EXPONENT: Final = re.compile(r"\^(?P<e>[-+]?\d{1,3})(?!\d)")
_ORDINAL_ENDING: Final = re.compile(r"(?:st|nd|rd|th)\b")
_AND_MORE: Final = re.compile("[余多来](?=\\D)")
_ABOUT_AFTER: Final = re.compile("左右|上下")
_ABOUT: Final = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca?\.)|[~≈约近]|接近) ?$",
    re.IGNORECASE,
)
_LATIN: Final = r"[^\W\d_\u2e80-\uffff]"
_UNIT: Final = re.compile(
    rf"[ -]?(?:(?P<sign>[%‰‱]|[A-Z]{{0,3}}[$€£¥₩₹₽₫₪₱])"
    rf"|(?P<name>(?:°?{_LATIN}+[23]?(?:/{_LATIN}+[23]?)?|°)(?:[ -]{_LATIN}+){{0,3}}))| ?(?P<han>[{HAN}]{{1,8}})"
)
_WORD_END: Final = re.compile("[ -]|$")
_WORD_FOLLOWS: Final = re.compile(r" \w")
# What follows a number without being what it counts.
_NO_NOUNS: Final = (
    "a an the of in on at to for from by with and or but as is are was were be been it its this that these those"
    " when while also not can may might will would should do does did has have had than then so into about over after"
    " before during between more most less each per each only if because however points?"
).split()
_PER: Final = re.compile(r" ?/ ?| (?:per|an?|each|every) |每")
_BELOW_ZERO: Final = re.compile(r"(?: degrees)? below (?:zero|freezing)\b|(?: century)? B\.?C\b(?:\.?E\b)?\.?")
_EVERY: Final = re.compile(rf"每(?P<unit>[{HAN}]{{1,2}}) ?$")
_HAN_REST: Final = re.compile(rf"(?:半|(?<=[米块])(?P<digits>\d{{1,2}}))(?=[的以左上多]|[^{HAN}\d%/]|$)(?![.,:]\d)")
_CURRENCY_BEFORE: Final = re.compile(rf"(?:[A-Z]{{0,3}}[$€£¥₩₹₽₫₪₱]|\b[A-Z]{{3}}|(?P<han>[{HAN}]{{2,4}})) ?$")
_MINUS: Final = re.compile(
    rf"(?<![^\s(|\[{{:,，;；=<>≤≥≈~/\"“'、$€£¥{HAN}])[-−–]$|\b(?:minus|negative) $|(?:零下|负|公元前) ?$",
    re.IGNORECASE,
)
_DASH: Final = re.compile(" ?[-−–—~] ?")
_EITHER_SIGN: Final = re.compile(r"[±+]$")
_ORDER: Final = re.compile("第 ?$")
_VERSION_BEFORE: Final = re.compile(
    r"(?:(?i:\b(?:ver|versions?|release|section|chapter|figure|fig|table|part|article|clause)\.? )|(?:§|版本?号?|第) ?"
    r"|(?<![\w.])(?!The |In |At |Of |About |Over |Under )[A-Z][A-Za-z+#]{0,24} |(?<=[A-Za-z])[≤≥<>=]{1,2} ?)$"
)
_VERSION_AFTER: Final = re.compile(
    r" (?:or|and) (?:newer|later|higher|above)\b|(?:[及或]?以[上下])?版本?|[节章条]", re.IGNORECASE
)

_COUNTED: Final = re.compile(
    rf"[ -](?!(?:{'|'.join(_NO_NOUNS)})\b){_LATIN}{{2}}"
    rf"|(?![的了是在和与也都就着吗呢吧啊之而及或把被度到至以左上等])[{HAN}]"
)

# Values that are no plain numbers

_RATIO: Final = re.compile(
    rf"(?P<a>\d{{1,9}}(?:\.\d{{1,6}})?|[{HAN_DIGITS}十]{{1,3}})(?: : |[:比])"
    rf"(?P<b>\d{{1,3}}(?:,\d{{3}})+|\d{{1,9}}(?:\.\d{{1,6}})?|[{HAN_DIGITS}十]{{1,3}})(?![\d:])"
)
_VERSION: Final = re.compile(
    r"(?P<said>\d+(?:\.\d+)+(?:-?(?:a|b|rc|alpha|beta|dev|post)\.?\d+)?)(?![A-Za-z\d])", re.IGNORECASE
)
_CODE: Final = re.compile(r"(?P<label>[A-Za-z]{1,12})(?P<by>[-_./–]?)(?P<rest>\d[A-Za-z\d]*(?:[-_./–]\d[A-Za-z\d]*)*)")
_OTHER_CODE: Final = re.compile(r"\d+[A-Za-z][A-Za-z\d]*(?:-\d+)?|\d+(?:-\d+){2,}|0\d+(?![\d.,:])|\d{20,}")
_DECADE: Final = re.compile(rf"(?P<c>\d\d|[二十一]{{1,3}})世纪(?P<d>\d0|[{HAN_DIGITS}]十)年代")

# What joins two values

_TO: Final = re.compile(r" ?(?:[-−–—~]|\bto\b|[至到]) ?")
_AND: Final = re.compile(r" (?:and|to) | ?[和与至到] ?")
_BETWEEN: Final = re.compile(r"(?:\b(?:between|from)|介于|从|在) ?$", re.IGNORECASE)
_THEN: Final = re.compile(r" ?(?:and |又)?")
_OF_RATIO: Final = re.compile(r"\b(?:ratio|proportion|odds)(?: of| is|:)? $", re.IGNORECASE)

_STARTS: Final = (
    *WORDS,
    *ORDINALS,
    "half",
    "quarter(?= past)",
    rf"an?(?=[ -](?:{'|'.join((*SCALES, *_DENOMINATORS))})\b)",
)
_CANDIDATE: Final = re.compile(
    rf"(?<![A-Za-z\d])[A-Za-z]{{1,12}}+[-_./–]?+(?=\d)|\.?\d|[{HAN_DIGITS}十百千万半]"
    rf"|\b(?:(?:{'|'.join(name[:3] for name in MONTHS)})[a-z]{{0,6}}|{'|'.join(WEEKDAYS)}s?|{'|'.join(_STARTS)})\b"
    r"|(?:周|星期|礼拜)(?=[一二三四五六日天])",
    re.IGNORECASE,
)


def find_values(text: str) -> list[Value]:
    """All values in the order of the text; the year of a date stands behind its day."""
    finder = _Finder(text)
    at = 0
    while candidate := _CANDIDATE.search(text, at):
        finder.read(candidate.start())
        at = max(finder.floor, candidate.end())
    return finder.found


@dataclass(slots=True)
class _Number:
    """A number while it is read: `text[start:end]`, what it is multiplied by in `scale`, and as what it counts."""

    start: int
    end: int
    number: Decimal
    figures: int = 1
    scale: Decimal = Decimal(1)  # of a million, which `number` has in it
    measures: tuple[Measure, ...] = ()
    bound: str = ""
    loose: bool = False
    digits: str = ""
    written: bool = True
    covers: tuple[Reading, ...] = ()
    part: bool = False  # of a whole, which per cent say too

    def times(self, factor: Decimal, end: int) -> None:
        self.number, self.scale, self.end = self.number * factor, self.scale * factor, end


class _Finder:
    def __init__(self, text: str) -> None:
        self._text = text
        self.found: list[Value] = []
        self.floor = 0  # where the last value ends
        self._scales = (Decimal(1), Decimal(1))  # of the last two numbers

    def read(self, at: int) -> None:
        """Add what begins at `at`, if anything does."""
        before = self._text[max(self.floor, at - _BEFORE) : at]
        for value in self._moment(at, before) or self._special(at) or self._number(at, before):
            self._add(value)
            self.floor = max(self.floor, value.end)

    def _moment(self, at: int, before: str) -> list[Value]:
        if weekday := find_weekday(self._text, at):
            return [weekday]
        if found := find_date(self._text, at):
            bound = bound_of_moment(before, self._text, found[-1].end)
            return [replace(found[0], bound=bound), *found[1:]]
        if time := find_time(self._text, at, before):
            return [replace(time, bound=bound_of_moment(before[: time.start - at or None], self._text, time.end))]
        return []

    def _special(self, at: int) -> list[Value]:
        text = self._text
        if ratio := _RATIO.match(text, at):
            return [Value(*ratio.span(), (Reading("ratio", _ratio(_any_number(ratio["a"]), _any_number(ratio["b"]))),))]
        if decade := _DECADE.match(text, at):
            since = (_any_number(decade["c"]) - 1) * 100 + _any_number(decade["d"])
            return [Value(*decade.span(), (Reading("code", f"{since}s"),))]
        if code := _CODE.match(text, at):
            return _identifier(code)
        version = _VERSION.match(text, at)
        if version and version["said"].count(".") > 1 and not _DIGITS.fullmatch(version["said"]):
            return [_version(version.start(), version.end(), version["said"])]
        return []

    def _number(self, at: int, before: str) -> list[Value]:
        read = self._part(at) or self._in_digits(at) or self._in_han(at, before) or self._in_words(at)
        if isinstance(read, Value):
            return [read]
        if read is None:
            return []
        if read.digits and (version := self._version(read, before)):
            return [version]
        low = at - len(before)
        self._extend_right(read, money=bool(self._currency(low, at)[0]))
        self._extend_left(read, low)
        return [self._value(read)]

    def _version(self, read: _Number, before: str) -> Value | None:
        """A number with a point that has no unit and stands behind a name, or before what is said of versions."""
        version = _VERSION.match(self._text, read.start)
        if (
            version is None
            or version.end() != read.end
            or self._unit(read.end)[0]
            or _SCALE.match(self._text, read.end)
        ):
            return None
        if not (_VERSION_BEFORE.search(before) or _VERSION_AFTER.match(self._text, read.end)):
            return None
        bound, length = bound_before(before)
        value = _version(read.start, read.end, version["said"])
        after, end = bound_after(self._text, read.end)
        return replace(value, start=read.start - length, end=end, bound=bound or after)

    # What a number begins with

    def _part(self, at: int) -> _Number | None:
        if part := _HAN_PART.match(self._text, at):
            number, of = _any_number(part["n"]), part["of"]
            if of in _SHARES:
                return _Number(*part.span(), number, _figures(part["n"]), measures=measure_named(_SHARES[of]))
            return _Number(*part.span(), number / (_any_number(of) or 1), _EXACT, part=True)
        if tenths := _TENTHS.match(self._text, at):
            number = chinese_number(tenths["n"]) * 10 + (5 if tenths["half"] else 0)
            return _Number(*tenths.span(), number, 2, measures=measure_named("%"))
        if part := _PART.match(self._text, at):
            count, of = english_number(part["n"] or "one") or Decimal(1), (part["of"] or "half").lower()
            if (part["many"] and count > 1) or of in ("quarter", "half") or self._text.startswith(" of ", part.end()):
                return _Number(*part.span(), count / _DENOMINATORS[of], _EXACT, written=False, part=True)
        return None

    def _in_digits(self, at: int) -> _Number | Value | None:
        match = _DIGITS.match(self._text, at)
        if match is None:
            return None
        end = match.end()
        code = _OTHER_CODE.match(self._text, at)
        if code and (code.end() > end or code[0][0] == "0" or len(code[0]) >= 20):
            unit, unit_end = self._unit(end)
            scaled = (
                _SCALE.match(self._text, end)
                or _ORDINAL_ENDING.match(self._text, end)
                or _POWER_OF_TEN.match(self._text, end)
            )
            decade = code[0][-1] == "s" and len(code[0]) == 5  # 1990s
            if decade or not (scaled or (unit and unit_end >= code.end())):
                return Value(*code.span(), (Reading("code", _letters(code[0])),))
        number = _Number(*match.span(), number_in_digits(match[0]), _figures(match[0]), digits=match[0])
        if " " in match[0]:
            number.covers = tuple(Reading("", Decimal(part)) for part in re.findall(r"\d+", match[0]))
        return number

    def _in_han(self, at: int, before: str) -> _Number | None:
        if half := _HALF_OF.match(self._text, at):
            return _Number(*half.span(), Decimal("0.5"), part=half[0] == "一半")
        match = _HAN_NUMBER.match(self._text, at)
        if match and len(match[0]) < 4 and not set(match[0]) & set("十百千万亿点〇零"):  # 三四线: one of them, not 34
            match = re.compile(r"\D").match(self._text, at)
        if match is None or match[0] in "〇零":
            return None
        number = chinese_number(match[0])
        written = len(match[0]) > 1 or bool(_ORDER.search(before))
        return _Number(*match.span(), number, _figures(f"{number:f}"), written=written)

    def _in_words(self, at: int) -> _Number | None:
        if match := _ORDINAL.match(self._text, at):
            number = ORDINALS[match["last"].lower()] + (english_number(match["tens"]) if match["tens"] else 0)
            return _Number(*match.span(), Decimal(number), _EXACT, written=False)
        if match := _ENGLISH.match(self._text, at):
            number = english_number(match[0])
            return _Number(*match.span(), number, _figures(f"{number:f}"), written=False)
        return None

    # What stands around it

    def _extend_right(self, read: _Number, money: bool) -> None:
        text, plain_end = self._text, read.end
        if power := _POWER_OF_TEN.match(text, read.end):
            read.times(Decimal(10) ** int((power["by"] or power["e"]).replace("−", "-")), power.end())
        elif read.digits == "10" and (power := _EXPONENT.match(text, read.end)):
            read.number, read.end = Decimal(10) ** int(power["e"]), power.end()
        elif read.digits.isdigit() and (fraction := _FRACTION.match(text, read.end)):
            whole, over = (read.number, Decimal(fraction["a"])) if fraction["a"] else (Decimal(0), read.number)
            read.number, read.end, read.figures = whole + over / int(fraction["b"]), fraction.end(), _EXACT
            read.part = True
        if half := _AND_A_HALF.match(text, read.end):
            read.number, read.end, read.figures = read.number + Decimal("0.5"), half.end(), _EXACT
        self._multiply(read, money)
        if match := _ORDINAL_ENDING.match(text, read.end):
            read.end, read.figures = match.end(), _EXACT
            return
        if match := _AND_MORE.match(text, read.end):
            read.end, read.loose = match.end(), True
            self._multiply(read, money)
        year = _is_year(read) or text[max(0, read.start - 3) : read.start].endswith(("公元", "公元前"))
        if read.end == plain_end and text.startswith("年", read.end) and year:
            read.end += 1
        elif not read.measures:
            self._measure(read)

    def _multiply(self, read: _Number, money: bool) -> None:
        """Take in million, bn, 万."""
        end = read.end
        while read.digits and (han := _HAN_SCALE.match(self._text, end)) and not self._unit(end)[0]:
            end = han.end()
        if end > read.end:
            places = self._text[read.end : end]
            number = chinese_number(f"{read.number:f}{places}")
            read.times(chinese_number(f"一{places.rstrip('0123456789.')}"), end)
            read.number = number
        while (scale := _SCALE.match(self._text, read.end)) and (factor := _factor(scale, money)):
            read.times(Decimal(factor), scale.end())

    def _measure(self, read: _Number) -> None:
        """Take in the unit, which may stand behind what makes a bound of the number: 5 or more days."""
        bound, end = bound_after(self._text, read.end)
        measures, unit_end = self._unit(read.end)
        if bound and not measures:
            measures, unit_end = self._unit(end)
            read.bound, read.end = bound, end
        if measures:
            read.measures, read.end = measures, unit_end
            if rest := _HAN_REST.match(self._text, unit_end):  # 三公里半, 1米75
                read.number, read.end = read.number + Decimal(f"0.{rest['digits'] or 5}"), rest.end()
                read.figures = _EXACT

    def _unit(self, at: int) -> tuple[tuple[Measure, ...], int]:
        """The readings of the unit that begins at `at`, and its end."""
        measures, end = self._one_unit(at)
        return self._per(measures, end) if measures else (measures, at)

    def _per(self, measures: tuple[Measure, ...], end: int) -> tuple[tuple[Measure, ...], int]:
        """The unit with the one it is counted per: a night, /kg."""
        if per := _PER.match(self._text, end):
            others, other_end = self._one_unit(per.end())
            if others:
                return tuple(one.per(others[0]) for one in measures), other_end
        return measures, end

    def _one_unit(self, at: int) -> tuple[tuple[Measure, ...], int]:
        match = _UNIT.match(self._text, at)
        if match is None:
            return (), at
        if match["sign"]:
            ahead = self._text[match.end() : match.end() + 1].isdigit()  # the sign of another number
            return ((), at) if ahead else (measure_named(match["sign"]), match.end())
        name, start = match["han"] or match["name"], match.start("han" if match["han"] else "name")
        ends = range(1, len(name) + 1) if match["han"] else [space.start() for space in _WORD_END.finditer(name)]
        for length in reversed(ends):
            if name[:length] == "in" and _WORD_FOLLOWS.match(self._text, start + 2):
                continue
            if measures := measure_named(name[:length].replace("-", " ")):
                return measures, start + length
        return (), at

    def _extend_left(self, read: _Number, low: int) -> None:
        if joint := _DASH.match(self._text, low, read.start):  # 5 – −7
            low = joint.end() if self.floor else low
        for _ in range(2):
            currency, start = self._currency(low, read.start)
            if currency:
                per, end = self._per(currency, read.end)
                read.start, read.measures, read.end = start, read.measures or per, end
            if minus := _MINUS.search(self._text[low : read.start]):
                read.number, read.start = -read.number, read.start - len(minus[0])
        if below := _BELOW_ZERO.match(self._text, read.end):
            read.number, read.end = -abs(read.number), below.end()
        if every := _EVERY.search(self._text[low : read.start]):
            others = measure_named(every["unit"]) or measure_named(f"个{every['unit']}")
            read.measures = tuple(_per_unit(one, others[0]) if others else one for one in read.measures)
        for mark in (_EITHER_SIGN, _ORDER):
            if match := mark.search(self._text[low : read.start]):
                read.start -= len(match[0])
        before = self._text[low : read.start]
        read.loose = read.loose or bool(_ABOUT.search(before) or _ABOUT_AFTER.match(self._text, read.end))
        bound, length = bound_before(before)
        read.start -= length
        if not (bound or read.bound):
            bound, read.end = bound_after(self._text, read.end)
        read.bound = read.bound or bound

    def _currency(self, low: int, end: int) -> tuple[tuple[Measure, ...], int]:
        """The currency that stands before a number, and where it begins."""
        if match := _CURRENCY_BEFORE.search(self._text[low:end]):
            name = match[0].strip()
            names = (name[-length:] for length in range(len(name), 1, -1)) if match["han"] else (name,)
            if found := next((one for one in names if one in currencies()), ""):
                return measure_named(found), end - len(match[0]) + len(name) - len(found)
        return (), end

    def _value(self, read: _Number) -> Value:
        self._scales = (self._scales[1], read.scale)
        number = read.number
        readings = tuple(Reading(m.kind, number * m.size + m.zero, m.size) for m in read.measures)
        readings = readings or (Reading("", number), *((Reading("%", 100 * number),) if read.part else ()))
        bound = read.bound
        if not bound and (readings[0].kind in (_TIME, "months") or (not read.measures and _is_year(read))):
            bound = bound_of_moment(self._text[max(0, read.start - _BEFORE) : read.start], self._text, read.end)
        return Value(
            *(read.start, read.end, readings, number, read.covers, bound),
            figures=read.figures,
            loose=read.loose or read.scale != 1,
            written=read.written or (bool(read.measures) and abs(number) != 1),
            counts=not read.measures and _COUNTED.match(self._text, read.end) is not None,
        )

    # What goes together

    def _add(self, value: Value) -> None:
        if self.found:
            before, between = self.found[-1], self._text[self.found[-1].end : value.start]
            ahead = self._text[max(0, before.start - _BEFORE) : before.start]
            if _THEN.fullmatch(between) and (whole := _whole(before, value, "and" in between)):
                self.found[-1] = whole
                return
            if _TO.fullmatch(between) or (_AND.fullmatch(between) and _BETWEEN.search(ahead)):
                if _OF_RATIO.search(ahead) and before.number is not None and value.number is not None:
                    said = _ratio(before.number, value.number)
                    self.found[-1] = Value(before.start, value.end, (Reading("ratio", said),))
                    return
                self.found[-1], value = _range(before, value, self._scales)
        self.found.append(value)


def _any_number(text: str) -> Decimal:
    return number_in_digits(text) if text[0].isascii() else chinese_number(text)


def _figures(text: str) -> int:
    """Significant digits: zeros at the end of a whole number are none."""
    digits = re.sub(r"\D", "", text)
    return max(1, len(digits.lstrip("0") if re.search(r"[.,]\d{1,2}$", text) else digits.strip("0")))


def _letters(text: str) -> str:
    return re.sub(r"[^a-z\d]", "", text.lower())


def _factor(scale: re.Match[str], money: bool) -> int:
    """The factor of a scale; m depends on its neighbours: £5m, 5M users, 5 m long."""
    if word := scale["word"]:
        return SCALES[word.lower()]
    sign = scale["sign"]
    if sign in "mbB" and not money:
        return 0
    return {"k": 10**3, "m": 10**6, "b": 10**9}[sign.lower()]


def _per_unit(price: Measure, other: Measure) -> Measure:
    """Return the price of one unit: 每月25元 is 25元/月."""
    return price.per(other) if isinstance(price.kind, str) and "/" not in price.kind else price


def _is_year(read: _Number) -> bool:
    return read.number == int(read.number) and 1000 <= read.number < 3000 and read.scale == 1


def _ratio(one: Decimal, other: Decimal) -> str:
    if one == int(one) and other == int(other) and other:
        by = gcd(int(one), int(other)) or 1
        return f"{int(one) // by}:{int(other) // by}"
    return f"{one.normalize():f}:{other.normalize():f}"


def _version(start: int, end: int, said: str) -> Value:
    """3.1 is not 3.10, and 3 is 3.0."""
    said = said.lower()
    while said.endswith(".0"):
        said = said.removesuffix(".0")
    number = Decimal(said) if re.fullmatch(r"\d+(?:\.\d*[1-9])?", said) else None
    return Value(start, end, (Reading("version", said),), number, figures=_EXACT)


def _identifier(code: re.Match[str]) -> list[Value]:
    label, rest = code["label"], code["rest"]
    if label in currencies() and len(label) == 3 and not code["by"]:
        return []
    if label.islower() and len(label) > 2 and code["by"]:  # mid-1990s
        return []
    if _VERSION.fullmatch(rest):
        return [_version(*code.span(), rest)]
    label = "" if label.lower() in ("no", "nr") else label.lower()
    if rest.isdigit() and (rest[0] != "0" or rest == "0"):
        return [Value(*code.span(), (Reading("", Decimal(rest)),), Decimal(rest), figures=_EXACT, label=label)]
    return [Value(*code.span(), (Reading("code", _letters(code[0])),))]


def _whole(one: Value, other: Value, joined: bool) -> Value | None:
    """1 hour and 30 minutes, 5 ft 3 in."""
    mine, their = one.readings[0], other.readings[0]
    same = mine.kind == their.kind and mine.kind != "" and mine.size > their.size and not other.bound
    if not same or isinstance(mine.amount, str) or isinstance(their.amount, str) or their.amount >= mine.size:
        return None
    if joined and mine.kind not in (_TIME, "months"):
        return None
    amount = mine.amount + their.amount
    return replace(
        one, end=other.end, readings=(Reading(mine.kind, amount, mine.size),), number=amount / mine.size, figures=_EXACT
    )


def _range(one: Value, other: Value, scales: tuple[Decimal, Decimal]) -> tuple[Value, Value]:
    """Both ends with what is said once, as bounds; the second one takes in what joins them."""
    if day := day_of(one, other):
        one = day
    elif day := day_of(other, one):
        other = day
    elif one.number is not None and other.number is not None:
        if scales[0] == 1 < scales[1] and one.number < 1000:
            one = _like(one, one.number * scales[1], one)
        if one.measured != other.measured:
            one, other = (
                (one, _like(other, other.number, one)) if one.measured else (_like(one, one.number, other), other)
            )
        ends = [end.number or Decimal(0) for end in (one, other)]
        years = not one.measured and all(1000 <= end <= 3000 for end in ends)
        same = one.readings[0].kind == other.readings[0].kind and ends[0] < ends[1]
        if same and not years:
            one, other = replace(one, bound="≥", ranged=True), replace(other, bound="≤", ranged=True)
    return one, replace(other, start=one.end)


def _like(value: Value, number: Decimal | None, other: Value) -> Value:
    """So many in the other's unit."""
    if number is None or other.number is None:
        return value
    by = number - other.number
    readings = (r._replace(amount=r.amount + by * r.size) for r in other.readings if not isinstance(r.amount, str))
    return replace(value, number=number, readings=found) if (found := tuple(readings)) else value
