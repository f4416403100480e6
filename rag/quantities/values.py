"""Numbers, units and currencies in English and Chinese, the values that they form in a text, and their comparison.

Traditional Chinese is simplified before words are recognised. `UNITS` has units with exact conversions; more names,
units and currencies come from Unicode's CLDR via Babel.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from rag.text import lazy_regex

DIGITS: Final = (
    r"(?:\d{1,3}(?:,\d{2,3}){0,12},\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|\d{1,3}(?:[ '’]\d{3}){1,12}(?!\d)(?:[.,]\d+)?"  # 1 234 567,8 and 1'234'567
    r"|\d{1,3}(?:(?:\.\d{3}){2,12}(?!\d)(?:,\d+)?|(?:\.\d{3}){1,12},\d+)"  # 1.234.567 and 1.234,5
    r"|0,\d+|\d+,\d{1,2}(?![\d,])|\d*\.\d+|\d+)"  # 3,5 and .5
)
"""A number in digits, after NFKC, which turns no-break and thin spaces between thousands into plain ones."""
HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff"
"""Chinese characters, as a range in a regular expression."""
HAN_DIGITS: Final = "〇零一二两三四五六七八九"
HAN_PLACES: Final = MappingProxyType({"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000})
_HAN_VALUES: Final = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNDER_20: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS: Final = MappingProxyType(
    {word: value for value, word in enumerate(_UNDER_20)} | {word: 10 * place for place, word in enumerate(_TENS, 2)}
)
SCALES: Final = MappingProxyType(
    {
        "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
        "lakh": 10**5, "crore": 10**7, "k": 10**3, "mn": 10**6, "bn": 10**9, "tn": 10**12,
    }
)  # fmt: skip
_IRREGULAR: Final = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth"} | {
    "nine": "ninth",
    "twelve": "twelfth",
}
ORDINALS: Final = MappingProxyType(
    {_IRREGULAR.get(word, re.sub("y$", "ie", word) + "th"): value for word, value in WORDS.items() if value}
)
DENOMINATORS: Final = MappingProxyType(
    {word: value for word, value in ORDINALS.items() if value > 2}
    | {"half": 2, "halve": 2, "quarter": 4, "hundredth": 100}
)
"""The parts of a whole by their names, as in "two thirds"."""
_UNDER_100: Final = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNDER_20[1:10])}))?|{'|'.join(_UNDER_20)})"
_UNDER_1000: Final = rf"(?:(?:{_UNDER_100}|an?) hundred(?: (?:and )?{_UNDER_100})?|{_UNDER_100})"
_LARGE: Final = r"(?:thousand|million|billion|trillion|dozen|lakh|crore)"
ENGLISH: Final = (
    rf"\b(?:(?:{_UNDER_1000}|an?) {_LARGE}(?:,? (?:and )?{_UNDER_1000} (?:thousand|million)){{0,2}}"
    rf"(?:,? (?:and )?{_UNDER_1000})?|{_UNDER_1000})\b"
)
"""A whole number in English words: twenty-five, a hundred and five, two million three hundred thousand."""


def simplify(text: str) -> str:
    """Return a text with its traditional Chinese characters simplified (OpenCC)."""
    return str(_simplifier().convert(text))


@cache
def _simplifier() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


def parse_digits(text: str) -> Decimal:
    """Return the value of a match of DIGITS. Repeated marks and a comma before three digits separate thousands."""
    bare = re.sub("[ '’]", "", text)
    last = max(bare.rfind(","), bare.rfind("."))
    mark, tail = bare[last : last + 1], bare[last + 1 :]
    decimal = mark == "." or len(tail) != 3 or bare != text or "." in bare or bare.startswith("0,")
    if last < 0 or bare.count(mark) > 1 or not decimal:
        return Decimal(re.sub("[,.]", "", bare))
    return Decimal(re.sub("[,.]", "", bare[:last]) + "." + tail)


def parse_chinese(text: str) -> Decimal:
    """Parse a Chinese numeral, by places (三百二十, 3万5000, 三点五亿) or digits (二〇二五).

    Raises ValueError for anything else.
    """
    whole, point, part = text.partition("点")
    if point:
        digits = "".join(str(_parse_digit(sign)) for sign in part.rstrip("万亿"))
        return (parse_chinese(whole) + Decimal(f"0.{digits}")) * math.prod(HAN_PLACES.get(sign, 1) for sign in part)
    if whole and not set(whole) & set(HAN_PLACES):
        return Decimal(whole if whole[0].isascii() else "".join(str(_parse_digit(sign)) for sign in whole))
    return _parse_places(whole)


def _parse_places(text: str) -> Decimal:
    total = section = Decimal(0)
    digit: Decimal | None = None
    place = 0
    tokens = re.findall(r"[\d.]+|\D", text)
    for index, token in enumerate(tokens):
        previous, place = place, HAN_PLACES.get(token, 0)
        if not place:
            digit = Decimal(token) if token[0].isascii() else Decimal(_parse_digit(token))
            if previous >= 100 and index == len(tokens) - 1 and len(token) == 1:  # 三万五 is 35,000
                digit *= previous // 10
        elif place < 10_000:
            section, digit = section + (1 if digit is None else digit) * place, None
        else:
            whole = section + (digit or 0)
            total = total + whole * place if place == 10_000 else (total + whole) * place
            section, digit = Decimal(0), None
    if not text:
        raise ValueError("no numeral")
    return total + section + (digit or 0)


def _parse_digit(sign: str) -> int:
    if sign not in _HAN_VALUES:
        raise ValueError(sign)
    return _HAN_VALUES[sign]


def parse_english(text: str) -> Decimal:
    """Return the value of a match of ENGLISH."""
    total = part = 0
    for word in re.findall("[a-z]+", text.lower()):
        if word == "hundred":
            part = (part or 1) * 100
        elif word in SCALES:
            total, part = total + (part or 1) * SCALES[word], 0
        elif word not in ("and", "a", "an"):
            part += WORDS[word]
    return Decimal(total + part)


_MORE: Final = "more|greater|higher|larger|bigger|longer|older|later|heavier|taller|deeper|wider|faster|newer"
_LESS: Final = "less|fewer|lower|smaller|shorter|younger|earlier|lighter|slower"
_ABOVE: Final = rf"(?:(?:{_MORE}) than|over|above|exceed(?:s|ed|ing)?|in excess of|[大高多长晚重]于|超[过出]了?|逾|超)"
_BELOW: Final = rf"(?:(?:{_LESS}) than|under|below|[小低少短早轻]于|不足|不到|[未不]满|未达)"
_NEGATION: Final = (
    r"(?:(?:\b(?:not|no|never|cannot)|n't)(?: (?:be|to|been|have|last|take|cost|weigh)){0,2} "
    r"|不得|不能|不可以?|不应|不会|不宜|不|未|没有?)"
)
_OR_EQUAL: Final = r" ?(?:or equal to|或?等于)"
_AT_MOST: Final = r"\b(?:up to|at (?:the )?most|max(?:imum)?\.?(?: of)?|within|as (?:many|much|high|long|far) as)"
_AT_LEAST: Final = r"\b(?:at (?:the )?least|min(?:imum)?\.?(?: of)?|as (?:few|little|low) as)"
_FILLER: Final = r"[ 为]{0,2}(?:a |an |the |about |approximately |roughly |around |just |约)?"
_BOUNDS_BEFORE: Final = tuple(
    (lazy_regex(rf"(?:{pattern}){_FILLER}$", re.IGNORECASE), bound)
    for pattern, bound in (
        (rf"≤|{_NEGATION}{_ABOVE}|{_BELOW}{_OR_EQUAL}|{_AT_MOST}|[至最][多高]|顶多", "≤"),
        (rf"≥|{_NEGATION}{_BELOW}|{_ABOVE}{_OR_EQUAL}|{_AT_LEAST}|[至最][少低]|起码|(?<![未不])满", "≥"),
        (rf"(?<![a-z]){_ABOVE}|>", ">"),
        (rf"(?<![a-z]){_BELOW}|<", "<"),
    )
)
_BOUNDS_AFTER: Final = tuple(
    (
        lazy_regex(rf"(?: [a-z]+)? ?(?:or|and) (?:{words})\b|(?: [a-z]+)? {most}\b|{han}"),
        bound,
    )
    for words, most, han, bound in (
        (f"{_MORE}|above|over|up|upwards?", "minimum", rf"[{HAN}]{{0,2}}?(?:\(含\))?[及或]?[以之]上", "≥"),
        (f"{_LESS}|below|under", "maximum", rf"[{HAN}]{{0,2}}?(?:\(含\))?[及或]?[以之][下内]|内", "≤"),
    )
)
_PLUS: Final = lazy_regex(r"\+(?!\w)")
_UNTIL: Final = lazy_regex(
    r"(?:\b(?:before|by|until|till|up to|prior to)|截至|直到|截止到?) ?(?:the )?$", re.IGNORECASE
)
_SINCE: Final = lazy_regex(r"(?:\b(?:after|since|as of|starting)|自从?) ?(?:the )?$", re.IGNORECASE)
_UNTIL_AFTER: Final = lazy_regex("[之以]?前|为止|[之以]?内")
_SINCE_AFTER: Final = lazy_regex("[之以]?后|以来|起")


def find_bound_before(before: str) -> tuple[str, int]:
    """Return the bound that `before` ends with, and its length in characters; "" and 0 if there is none."""
    for pattern, bound in _BOUNDS_BEFORE:
        if match := pattern.search(before):
            return bound, len(before) - match.start()
    return "", 0


def find_bound_after(text: str, at: int) -> tuple[str, int]:
    """Return the bound that `text[at:]` begins with, and its end; "" and `at` if there is none."""
    if plus := _PLUS.match(text, at):
        return "≥", plus.end()
    for pattern, bound in _BOUNDS_AFTER:
        if match := pattern.match(text, at):
            return bound, match.end()
    return "", at


def find_moment_bound(before: str, text: str, at: int) -> str:
    """Return the bound of a day or time from the words around it."""
    if _UNTIL.search(before) or _UNTIL_AFTER.match(text, at):
        return "≤"
    return "≥" if _SINCE.search(before) or _SINCE_AFTER.match(text, at) else ""


Dimension = tuple[int, ...]
"""Exponents of metre, kilogram, second, byte and kelvin."""
NONE: Final[Dimension] = (0, 0, 0, 0, 0)
BASES: Final[tuple[tuple[str, Dimension], ...]] = (
    ("m", (1, 0, 0, 0, 0)),
    ("kg", (0, 1, 0, 0, 0)),
    ("s", (0, 0, 1, 0, 0)),
    ("B", (0, 0, 0, 1, 0)),
    ("K", (0, 0, 0, 0, 1)),
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A `value` in the base units of its dimension."""

    value: Decimal
    dimension: Dimension = NONE

    def multiply_dimension(self, other: Quantity, power: int = 1) -> Dimension:
        """Return the dimension of the product with a power of `other`."""
        return tuple(a + power * b for a, b in zip(self.dimension, other.dimension, strict=True))

    def power(self, exponent: int) -> Quantity:
        return Quantity(self.value**exponent, tuple(part * exponent for part in self.dimension))


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of `size` base units; `zero` is the zero point of a temperature scale, in kelvins."""

    symbol: str
    size: Quantity
    zero: Decimal = Decimal(0)


# By dimension: symbol, size, and other names, in which _ is a space; English plurals with s are added.
_TABLE: Final = {
    "1 0 0 0 0": """m 1 metre meter 米 公尺|km 1000 kilometre kilometer 公里 千米|cm .01 centimetre centimeter 厘米 公分
        |mm .001 millimetre millimeter 毫米|mi 1609.344 mile 英里|ft .3048 foot feet 英尺|in .0254 inch inches 英寸
        |yd .9144 yard 码|nmi 1852 海里|里 500 里地|尺 1/3|寸 1/30""",
    "0 1 0 0 0": """kg 1 kilogram kilo 千克 公斤|g .001 gram 克|mg .000001 milligram 毫克|t 1000 tonne 吨
        |lb .45359237 lbs pound 磅|oz .028349523125 ounce 盎司|斤 .5|st 6.35029318 stone 英石""",
    "0 0 1 0 0": """s 1 sec second 秒|min 60 minute 分钟 分|h 3600 hr hour 小时 钟头|day 86400 天|week 604800 周 星期
        |ms .001 millisecond 毫秒""",
    "0 0 0 1 0": """B 1 byte 字节|bit .125 比特|kB 1000 kilobyte|MB 1000000 megabyte 兆|GB 1000000000 gigabyte G
        |TB 1000000000000 terabyte T|KiB 1024|MiB 1048576|GiB 1073741824|Mbit 125000 megabit|Gbit 125000000 gigabit""",
    "2 0 0 0 0": """m² 1 平方米 平米|km² 1000000 平方公里 平方千米|ha 10000 hectare 公顷|acre 4046.8564224 英亩
        |亩 2000/3 亩地|坪 400/121""",
    "3 0 0 0 0": """l .001 litre liter 升|dl .0001|cl .00001|ml .000001 millilitre milliliter cc 毫升
        |m³ 1 立方米|gal .003785411784 gallon 加仑|qt .000946352946 quart 夸脱|pt .000473176473 pint 品脱
        |cup .0002365882365 杯|fl_oz .0000295735295625 fluid_ounce fl_ounce 液盎司|tbsp .00001478676478125 tablespoon
        |tsp .00000492892159375 teaspoon|汤匙 .000015 大匙 大勺|茶匙 .000005 小勺""",
    "1 0 -1 0 0": "mph .44704|kph 5/18 kmh kmph|knot 463/900 节",
    "0 0 -1 1 0": "bps .125|kbps 125|Mbps 125000|Gbps 125000000",
    "2 1 -2 0 0": "J 1 joule 焦耳|kJ 1000 千焦|cal 4.184 calorie 卡路里|kcal 4184 千卡 大卡|kWh 3600000 千瓦时",
    "2 1 -3 0 0": "W 1 watt 瓦|kW 1000 kilowatt 千瓦|hp 745.69987158227 horsepower 马力",
    "-1 1 -2 0 0": "Pa 1 pascal 帕|kPa 1000|bar 100000|psi 6894.757293168|atm 101325 atmosphere",
    "0 0 0 0 1": "K 1 kelvin 开尔文|°C 1 ℃ C celsius 摄氏度 摄氏|°F 5/9 ℉ F fahrenheit 华氏度 华氏",
}
_DIVIDE: Final = Context(prec=34).divide
_ZEROS: Final = {"°C": Decimal("273.15"), "°F": _DIVIDE(Decimal(45967), 180)}


def _iter_units() -> Iterator[tuple[str, Unit]]:
    for powers, table in _TABLE.items():
        for row in table.split("|"):
            symbol, size, *names = (word.replace("_", " ") for word in row.split())
            dividend, _, divisor = size.partition("/")
            quantity = Quantity(_DIVIDE(Decimal(dividend), Decimal(divisor or 1)), tuple(map(int, powers.split())))
            zero = _ZEROS.get(symbol, Decimal(0))
            for name in (symbol, *names):
                unit = Unit(name if name.isalpha() and not name.isascii() and not zero else symbol, quantity, zero)
                yield name, unit
                if name.isascii() and name.islower() and len(name) > 2:
                    yield f"{name}s", unit


UNITS: Final[dict[str, Unit]] = dict(_iter_units())
_UNITS_IN_LOWER_CASE: Final = {name.lower(): unit for name, unit in reversed(UNITS.items())}


def find_unit(name: str) -> Unit | None:
    """Return a unit by its symbol, or by a name in any case."""
    return UNITS.get(name) or _UNITS_IN_LOWER_CASE.get(name.lower())


def find_compound_unit(name: str) -> Unit | None:
    """Return a unit, its square or cube ("square metres", "ft²"), a quotient ("km/h"), or per cent."""
    if name == "%":
        return Unit("%", Quantity(Decimal("0.01")))
    if unit := find_unit(name):
        return unit
    dividend, slash, divisor = name.replace("每", "/").partition("/")
    if slash:
        unit, per = find_compound_unit(dividend), find_compound_unit(divisor)
        size = unit and per and Quantity(unit.size.value / per.size.value, unit.size.multiply_dimension(per.size, -1))
        return Unit(f"{unit.symbol}/{per.symbol}", size) if unit and per and size else None
    match = _POWER.fullmatch(re.sub("^degrees? ", "", name, flags=re.IGNORECASE))
    unit = find_unit(match["name"]) if match else None
    if match is None or unit is None or not (match["word"] or match["digit"]):
        return unit
    exponent = _exponent(match)
    return Unit(raise_symbol(unit.symbol, exponent), unit.size.power(exponent))


def raise_symbol(symbol: str, power: int) -> str:
    """Return the symbol of a unit's power: ft², 平方英尺, s^4."""
    if power in (2, 3) and not symbol.isascii():
        return f"{'平方' if power == 2 else '立方'}{symbol}"
    return symbol if power == 1 else f"{symbol}{'²³'[power - 2] if power in (2, 3) else f'^{power}'}"


def _exponent(match: re.Match[str]) -> int:
    power = match["digit"] or match["word"].strip()
    return 2 if power in ("2", "²", "square", "sq", "平方") else 3


@dataclass(frozen=True, slots=True)
class Measure:
    """One interpretation of a unit. `kind` is its dimension, a currency code, or a name without conversions; the unit
    equals `size` base units, counted from `zero`."""

    kind: Dimension | str
    size: Decimal = Decimal(1)
    zero: Decimal = Decimal(0)

    def per(self, other: Measure) -> Measure:
        kind: Dimension | str = f"{self.kind}/{other.kind}"
        if not isinstance(self.kind, str) and not isinstance(other.kind, str):
            kind = tuple(a - b for a, b in zip(self.kind, other.kind, strict=True))
        return Measure(kind, self.size / other.size)

    def power(self, exponent: int) -> Measure:
        kind = self.kind
        raised = f"{kind}^{exponent}" if isinstance(kind, str) else tuple(part * exponent for part in kind)
        return Measure(raised, self.size**exponent)


_LOCALES: Final = ("en", "en_GB", "zh", "zh_Hant")
_PREFIXES: Final = {
    "tera": 12, "giga": 9, "mega": 6, "kilo": 3, "hecto": 2, "deci": -1, "centi": -2, "milli": -3, "micro": -6,
    "nano": -9, "pico": -12,
}  # fmt: skip
_PREFIXED: Final = lazy_regex(rf"([a-z]+-)({'|'.join(_PREFIXES)})([a-z]+)")
_POWER: Final = lazy_regex(r"(?P<word>square |cubic |sq |cu |平方|立方)?(?P<name>[^\d/²³]{1,24})(?P<digit>[23²³])?")
# CLDR has names for these, but no conversions.
_SIZES: Final = {
    "concentr-percent": ("%", "1"), "concentr-permille": ("%", "0.1"), "concentr-permyriad": ("%", "0.01"),
    "duration-month": ("months", "1"), "duration-quarter": ("months", "3"), "duration-year": ("months", "12"),
    "duration-decade": ("months", "120"), "duration-century": ("months", "1200"),
}  # fmt: skip
_POINTS: Final = {
    "percentage point": "1", "percentage points": "1", "pp": "1", "个百分点": "1", "百分点": "1",
    "basis point": "0.01", "basis points": "0.01", "个基点": "0.01", "基点": "0.01",
}  # fmt: skip
_CURRENCY_NAMES: Final = {
    "元": "CNY TWD", "块": "CNY", "块钱": "CNY", "yuan": "CNY", "rmb": "CNY", "renminbi": "CNY", "美金": "USD",
    "港币": "HKD", "日圆": "JPY", "台币": "TWD", "kr": "SEK NOK DKK ISK", "Rs": "INR PKR LKR NPR", "zł": "PLN",
    "Kč": "CZK", "Fr": "CHF",
}  # fmt: skip
_CENTS: Final = "USD EUR AUD CAD NZD HKD SGD"
_SUBUNITS: Final = {
    "cent": (_CENTS, "0.01"), "cents": (_CENTS, "0.01"), "pence": ("GBP", "0.01"), "penny": ("GBP", "0.01"),
    "角": ("CNY", "0.1"), "毛钱": ("CNY", "0.1"),
}  # fmt: skip
_MAJOR: Final = frozenset("USD EUR GBP CNY JPY RUB INR".split())  # the default meaning of "dollars" and the like
_AMBIGUOUS_NAMES: Final = frozenset("em ems c item items point points 项 点 light 光".split())
_SHORT_NAMES: Final = {"mcg": "μg", "KB": "kB", "hrs": "h", "mins": "min", "secs": "s", "kgs": "kg", "yrs": "years"}
_COLLOQUIAL: Final = frozenset("分 尺 寸 杯 兆 G T pt st cc 小勺 大勺 亩地".split())  # more often something else
_DEGREES: Final = "degrees degree deg ° 度".split()


@cache
def load_measures() -> Mapping[str, tuple[Measure, ...]]:
    """Return all measures by name of a unit or currency; names of three or more letters are also in lower case."""
    units = {name: _to_measure(unit) for name, unit in UNITS.items() if name not in _COLLOQUIAL}
    measures = {name: [measure] for name, measure in units.items()}
    measures |= {name: [Measure("%-point", Decimal(size))] for name, size in _POINTS.items()}
    for name, (codes, size) in _SUBUNITS.items():
        measures[name] = [Measure(code, Decimal(size)) for code in codes.split()]
    for unit, names in _load_cldr_units().items():
        measure = next((units[name] for name in sorted(names) if name in units), None) or _convert_cldr_unit(unit)
        for name in names - units.keys() - _AMBIGUOUS_NAMES:
            measures.setdefault(name, []).append(measure)
    measures["日"] = measures["天"]
    for name, symbol in _SHORT_NAMES.items():
        measures[name] = measures[symbol]
    for name in _DEGREES:  # an ambiguous degree: Celsius, Fahrenheit or an angle
        measures[name] = [*measures["°C"], *measures["°F"], *measures[name]]
    for name, group in load_currencies().items():
        measures.setdefault(name, []).extend(map(Measure, sorted(group, key=lambda code: (code not in _MAJOR, code))))
    plain = {unicodedata.normalize("NFKC", name): tuple(dict.fromkeys(group)) for name, group in measures.items()}
    return {name.lower(): group for name, group in plain.items() if len(name) > 2 and not name.isupper()} | plain


def find_measures(name: str) -> tuple[Measure, ...]:
    """Return all measures of a name or symbol, including powers ("square metres") and quotients ("km/h")."""
    measures = load_measures()
    if matches := measures.get(name) or (measures.get(name.lower()) if len(name) > 1 else None):
        return matches
    if name.startswith(("degree ", "degrees ", "deg ")):
        return find_measures(f"°{name.partition(' ')[2]}")
    dividend, slash, divisor = name.replace(" per ", "/").replace("每", "/").partition("/")
    if slash:
        return tuple(a.per(b) for a in find_measures(dividend.strip()) for b in find_measures(divisor.strip()))
    match = _POWER.fullmatch(name)
    if match is None or not (match["word"] or match["digit"]):
        return ()
    return tuple(measure.power(_exponent(match)) for measure in find_measures(match["name"]))


@cache
def load_currencies() -> Mapping[str, frozenset[str]]:
    """Return the codes of current currencies (ISO 4217) by name: "US dollars", "dollars", "$", "US$", "美元"."""
    from babel.core import get_global
    from babel.numbers import get_currency_name, get_currency_symbol

    codes = {
        row[0] for rows in get_global("territory_currencies").values() for row in rows if row[2] is None and row[3]
    }
    codes_by_name: dict[str, set[str]] = {name: set(members.split()) for name, members in _CURRENCY_NAMES.items()}
    for code in codes:
        names = {get_currency_name(code, count, locale) for locale in _LOCALES for count in (1, 2)}
        names |= {get_currency_symbol(code, locale) for locale in _LOCALES}
        for name in {code, *(alias for label in names - {code} for alias in _iter_currency_names(label, code))}:
            codes_by_name.setdefault(name, set()).add(code)
    return {name: frozenset(members) for name, members in codes_by_name.items()}


def _iter_currency_names(name: str, code: str) -> Iterator[str]:
    """Yield a currency's name and its short forms: dollars, $, A$, 澳元, 卢布."""
    yield name
    if name[-1] in "$€£¥₩" or name.endswith("dollar"):
        sign = "$" if name.endswith("dollar") else name[-1]
        yield from (sign, f"{code[0]}{sign}", f"{code[:2]}{sign}")
    if name[-1] < "\u2e80":
        yield from (name.lower(), name.split()[-1].lower())
    elif name[-1] in "元币" and len(name) > 2:
        yield f"{name[0]}{name[-1]}"
    elif len(name) > 2:
        yield from (name[-2:], name[-3:])


def _to_measure(unit: Unit) -> Measure:
    return Measure(unit.size.dimension, unit.size.value, unit.zero)


def _convert_cldr_unit(unit: str) -> Measure:
    """Return the measure of a CLDR unit outside the table: from its size, parts or prefix, or else a separate kind."""
    if unit in _SIZES:
        kind, size = _SIZES[unit]
        return Measure(kind, Decimal(size))
    if compound := find_compound_unit(unit.partition("-")[2].replace("-per-", "/").replace("-", " ")):
        return _to_measure(compound)
    if prefixed := _PREFIXED.fullmatch(unit):
        family, prefix, base = prefixed.groups()
        measure = _to_measure(UNITS[base]) if base in UNITS else Measure(family + base)
        return Measure(measure.kind, measure.size * Decimal(10) ** _PREFIXES[prefix])
    return Measure(unit)


def _load_cldr_units() -> Mapping[str, set[str]]:
    """Return the names of each CLDR unit, singular and plural, long and short."""
    from babel import Locale
    from babel.units import UnknownUnitError, format_unit

    names: dict[str, set[str]] = {}
    lengths: tuple[Literal["long", "short"], ...] = ("long", "short")
    for unit, locale, length, count in product(map(str, Locale("en").unit_display_names), _LOCALES, lengths, (1, 2)):
        try:
            text = format_unit(count, unit, length, locale=locale)
        except UnknownUnitError:
            continue
        if text.startswith(str(count)) and unit not in text:
            names.setdefault(unit, set()).add(text[1:].strip())
    return names


_TOLERANCE: Final = Decimal("0.02")  # max. relative error of a rounded or converted amount
_FAMILIES: Final = {"month": "date", "version": "code"} | {
    kind: kind for kind in ("date", "time", "weekday", "ratio", "code")
}


class Interpretation(NamedTuple):
    """One interpretation of a value. `kind` is that of its unit (see Measure), empty without one, or date, month,
    weekday, time, am, pm, ratio, version, code; `amount` is in base units, `size` is the unit's size as written."""

    kind: Dimension | str
    amount: Decimal | str
    size: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Value:
    """The value in `text[start:end]`: `interpretations`, likeliest first, and those `implied`, as the month by a date.

    `number` is as written, without a unit. `bound` is <, ≤, >, ≥ or empty; `is_range_end` marks either end of a range.
    `figures` counts significant digits, `is_approximate` allows rounding, and `is_explicit` marks an unmistakable
    number: digits, a number with a unit, or several Chinese numerals. `label` is the prefix of an identifier;
    `is_count` marks a number without a unit before a noun.
    """

    start: int
    end: int
    interpretations: tuple[Interpretation, ...]
    number: Decimal | None = None
    implied: tuple[Interpretation, ...] = ()
    bound: str = ""
    is_range_end: bool = False
    figures: int = 1
    is_approximate: bool = False
    is_explicit: bool = True
    label: str = ""
    is_count: bool = False

    @property
    def key(self) -> str:
        """A string that is the same for equal values."""
        kind, amount, _ = self.interpretations[0]
        number = amount if isinstance(amount, str) else f"{amount.normalize():f}"
        return f"#{self.label}{number}{kind or ''}{self.bound}"

    @property
    def has_unit(self) -> bool:
        """True for an amount with a unit."""
        return self.interpretations[0].kind != ""

    def matches(self, other: Value, *, is_quote: bool = False) -> bool:
        """Return whether `other` means the same: an equal amount, converted or rounded, without another unit or bound.

        A unit or bound that only one of them has is ignored unless `is_quote`: its text is repeated word for word.
        """
        if not self._has_same_bound(other, is_quote) or (self.label and other.label and self.label != other.label):
            return False
        theirs = (*other.interpretations, *other.implied)
        if any(self._equals(mine, their, other, is_quote) for mine in self.interpretations for their in theirs):
            return True
        if (self.has_unit and (other.has_unit or other.is_count)) or (self.is_count and other.has_unit):
            return False
        added = self.has_unit or other.interpretations[0].kind == "%"
        return not (is_quote and added and self.has_unit != other.has_unit) and self._has_same_number(other)

    def conflicts_with(self, other: Value) -> bool:
        """Return whether replacing `other` with this value would change the meaning."""
        kind, theirs = self.interpretations[0].kind, other.interpretations[0].kind
        if _FAMILIES.get(f"{kind}", "") != _FAMILIES.get(f"{theirs}", ""):
            return False
        return kind == theirs or not kind or not theirs or self.number == other.number

    def _has_same_bound(self, other: Value, is_quote: bool) -> bool:
        if self.bound == other.bound or is_quote:
            return self.bound == other.bound
        is_comparable = self.bound and other.bound and not (self.is_range_end or other.is_range_end)
        return not is_comparable or (self.bound in "<≤") == (other.bound in "<≤")

    def _equals(self, mine: Interpretation, their: Interpretation, other: Value, is_quote: bool) -> bool:
        if mine.kind != their.kind:
            return _is_rate_of(mine.kind, their.kind, is_quote) and self._has_same_number(other)
        if mine.amount == their.amount or isinstance(mine.amount, str) or isinstance(their.amount, str):
            return mine.amount == their.amount
        if mine.size == their.size:
            return self._can_round(other) and _are_close(mine.amount, their.amount, self._step * mine.size)
        return _are_close(mine.amount, their.amount, self._step * mine.size + other._step * their.size)

    def _has_same_number(self, other: Value) -> bool:
        if self.number is None or other.number is None:
            return False
        return self.number == other.number or (
            self._can_round(other) and _are_close(self.number, other.number, self._step)
        )

    def _can_round(self, other: Value) -> bool:
        """Return whether rounding is allowed; whole numbers need a word such as "about": 2024 and 2025 differ."""
        exact = other.number is not None and other.number == other.number.to_integral_value()
        return self.figures < other.figures and (self.is_approximate or other.is_approximate or not exact)

    @property
    def _step(self) -> Decimal:
        """The value of one unit in the last significant digit."""
        return Decimal(10) ** (self.number.adjusted() - self.figures + 1) if self.number else Decimal(1)


def _are_close(first: Decimal, second: Decimal, step: Decimal) -> bool:
    return abs(first - second) <= min(step / 2, _TOLERANCE * abs(first))


def _is_rate_of(kind: Dimension | str, other: Dimension | str, is_quote: bool) -> bool:
    """Return whether only one of two kinds is a rate: dollars, and dollars a night."""
    mine, theirs = f"{kind}", f"{other}"
    return bool(mine and theirs) and (theirs.startswith(f"{mine}/") or (not is_quote and mine.startswith(f"{theirs}/")))


MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = (
    rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name[3:] else name for name in MONTHS)}|sept)\b\.?"
)
_DAY: Final = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?(?![.:]?\d|%)"
_NUM: Final = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_DATES: Final = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<y>\d{{4}}|[{HAN_DIGITS}]{{4}}) ?年 ?)?(?P<m>{_NUM}) ?月(?:份| ?(?P<d>{_NUM}) ?[日号])?",
        r"(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})(?![\d.-])",
        r"(?P<d>\d{1,2})(?P<by>[/.-])(?P<m>\d{1,2})(?P=by)(?P<y>\d{4})(?!\d)",
        rf"{_DAY},?(?: day)?(?: of)? {_MONTH}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? {_DAY}(?:,? (?P<y>\d{{4}})\b)?",
        rf"{_MONTH},? (?P<y>\d{{4}})\b",
        rf"(?P<month>{'|'.join(MONTHS)})\b",
    )
)
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY: Final = lazy_regex(
    rf"(?P<day>{'|'.join(name.title() for name in WEEKDAYS)})s?\b|(?:周|星期|礼拜)(?P<han>[一二三四五六日天])"
)
_HOURS: Final = "one two three four five six seven eight nine ten eleven twelve".split()
_MERIDIEM: Final = r"(?: (?:(?P<am>in the morning|a\.?m\b\.?)|(?P<pm>in the (?:afternoon|evening)|p\.?m\b\.?)))?"
_TIMES: Final = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:(?P<half>half)|(?:a )?quarter) (?P<past>past) (?P<h>\d{{1,2}}|{'|'.join(_HOURS)})\b{_MERIDIEM}",
        r"(?P<h>\d{1,2})(?:[:.](?P<m>[0-5]\d)(?::[0-5]\d)?)? ?(?:(?P<am>a)|(?P<pm>p))(?:m\b|\.m\b\.?)",
        rf"(?P<h>[01]?\d|2[0-4])[:h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:]){_MERIDIEM}",
        rf"(?P<h>\d{{1,2}}) o'?clock\b{_MERIDIEM}",
        rf"(?P<h>{_NUM}|两) ?[点时](?:(?P<m>零?{_NUM}) ?分|(?P<digits>[0-5]\d)(?!\d)|(?P<quarters>半|[一三]刻)|[整钟])",
        rf"(?P<h>{_NUM}|[两零]) ?[点时](?![{HAN_DIGITS}\d])",
    )
)
_PART_OF_DAY: Final = lazy_regex("(?:(?P<am>凌晨|清晨|早[上晨]?|上午)|(?P<pm>中午|下午|傍晚|晚上?|夜里|深夜)) ?$")
_LATE_HOURS: Final = frozenset(("中午11", "晚上12", "晚12", "深夜12", "夜里12"))
_DAY_SIZE: Final = Decimal(86_400)
_QUARTERS: Final = {"半": 30, "一刻": 15, "三刻": 45}


def find_date(text: str, at: int) -> list[Value]:
    """Return the day or month that begins at `at`, followed by its year, if any; [] if there is none."""
    for pattern in _DATES:
        match = pattern.match(text, at)
        groups = match.groupdict() if match else {}
        if match and (month := _parse_month(groups)) and (date := _build_date(month, to_int(groups.get("d")), match)):
            if year := to_int(groups.get("y")):
                amount, end = Decimal(year), match.end()
                return [date, Value(end, end, (Interpretation("", amount),), amount, figures=4)]
            return [date]
    return []


def find_weekday(text: str, at: int) -> Value | None:
    """Return the day of the week that begins at `at`, or None."""
    if match := _WEEKDAY.match(text, at):
        han = (match["han"] or "").replace("天", "日")
        place = "一二三四五六日".index(han) if han else WEEKDAYS.index(match["day"].lower())
        return Value(*match.span(), (Interpretation("weekday", Decimal(place + 1)),))
    return None


def read_day(number: Value, date: Value) -> Value | None:
    """Return a number as a day in the month of `date`, as in 5–7 March, or None."""
    day, counts_days = number.number, number.interpretations[0].size == _DAY_SIZE
    if day is None or not 1 <= day <= 31 or (number.has_unit and not counts_days) or not date.implied:
        return None
    amount = Decimal(date.implied[0].amount) * 100 + day
    return Value(number.start, number.end, (Interpretation("date", amount),), implied=date.implied[:1])


def _parse_month(groups: dict[str, str | None]) -> int:
    if (name := groups.get("month")) is None:
        return to_int(groups.get("m"))
    return [month[:3] for month in MONTHS].index(name[:3].lower()) + 1


def _build_date(month: int, day: int, match: re.Match[str]) -> Value | None:
    """Return a date, with two interpretations if either number may be the month (05/03/2024); None if invalid."""
    is_ambiguous = match.groupdict().get("by") and match.start("d") < match.start("m")
    orders = [(month, day), (day, month)] if is_ambiguous else [(month, day)]
    valid = [(m, d) for m, d in orders if 1 <= m <= 12 and d <= 31]
    name = match.groupdict().get("month")
    if not valid or name in ("may", "march"):
        return None
    implied = tuple(Interpretation("month", Decimal(m)) for m, _ in valid)
    if not day:
        return Value(*match.span(), implied[:1], is_explicit=name != match[0])
    return Value(*match.span(), tuple(Interpretation("date", Decimal(m * 100 + d)) for m, d in valid), implied=implied)


def find_time(text: str, at: int, before: str) -> Value | None:
    """Return the time of day that begins at `at`, or None; the text `before` it may name the half of the day."""
    match = next(filter(None, (pattern.match(text, at) for pattern in _TIMES)), None)
    if match is None:
        return None
    groups = match.groupdict()
    hour = _HOURS.index(groups["h"].lower()) + 1 if groups["h"].lower() in _HOURS else to_int(groups["h"])
    minute = to_int(groups.get("m") or groups.get("digits")) + _QUARTERS.get(groups.get("quarters") or "", 0)
    if groups.get("past"):
        minute = 30 if groups["half"] else 15
    part = _PART_OF_DAY.search(before)
    meridiems = [meridiem for meridiem in ("am", "pm") if groups.get(meridiem) or (part and part[meridiem])]
    if hour > 24 or minute > 59:
        return None
    amount = Decimal(hour % 12 * 60 + minute)
    if not meridiems:  # a 12-hour clock: either half is possible
        meridiems = ["am", "pm"] if 1 <= hour <= 12 else []
    elif meridiems == ["pm"] and hour <= 12 and not (part and f"{part[0].strip()}{hour}" in _LATE_HOURS):
        hour = hour % 12 + 12
    elif hour == 12:
        hour = 0
    time = Interpretation("time", Decimal(hour % 24 * 60 + minute))
    start = match.start() - (len(before) - part.start() if part else 0)
    return Value(start, match.end(), (time, *(Interpretation(meridiem, amount) for meridiem in meridiems)))


def to_int(text: str | None) -> int:
    """Return a whole number in digits or Chinese, years digit by digit; 0 for no text."""
    return int(parse_chinese(text)) if text else 0
