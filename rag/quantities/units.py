"""Units of measure and currencies, with their English and Chinese names, and quantities with dimensions.

The table below has units with exact conversions. More names, units and currencies come from Unicode's CLDR via Babel.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from itertools import product
from typing import Final, Literal

from rag.patterns import lazy_regex

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
        return Measure(_divide_kinds(self.kind, other.kind), self.size / other.size)

    def power(self, exponent: int) -> Measure:
        kind = self.kind
        raised = f"{kind}^{exponent}" if isinstance(kind, str) else tuple(part * exponent for part in kind)
        return Measure(raised, self.size**exponent)


def _divide_kinds(first: Dimension | str, second: Dimension | str) -> Dimension | str:
    if isinstance(first, str) or isinstance(second, str):
        return f"{first}/{second}"
    return tuple(a - b for a, b in zip(first, second, strict=True))


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
