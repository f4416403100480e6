"""Units of measure and currencies with their names in both languages, and quantities that know their dimension.

What converts exactly is in the table below. Further names, units and currencies come from Unicode's CLDR, by Babel.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Final, Literal

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
    """`value` in the base units of its dimension."""

    value: Decimal
    dimension: Dimension = NONE

    def times(self, other: Quantity, power: int = 1) -> Dimension:
        """The dimension of the product with a power of the other."""
        return tuple(a + power * b for a, b in zip(self.dimension, other.dimension, strict=True))

    def power(self, exponent: int) -> Quantity:
        return Quantity(self.value**exponent, tuple(one * exponent for one in self.dimension))


@dataclass(frozen=True, slots=True)
class Unit:
    """One of it is `size` base units; `zero` is where a scale of temperature begins, in kelvins."""

    symbol: str
    size: Quantity
    zero: Decimal = Decimal(0)


# Symbol, size, and other names; an English name has its plural in s.
_TABLE: Final[dict[Dimension, str]] = {
    (1, 0, 0, 0, 0): """m 1 metre meter 米 公尺|km 1000 kilometre kilometer 公里 千米|cm .01 centimetre centimeter 厘米
        |mm .001 millimetre millimeter 毫米|mi 1609.344 mile 英里|ft .3048 foot feet 英尺|in .0254 inch inches 英寸
        |yd .9144 yard 码|nmi 1852 海里|里 500""",
    (0, 1, 0, 0, 0): """kg 1 kilogram kilo 千克 公斤|g .001 gram 克|mg .000001 milligram 毫克|t 1000 tonne 吨
        |lb .45359237 lbs pound 磅|oz .028349523125 ounce 盎司|斤 .5""",
    (
        0,
        0,
        1,
        0,
        0,
    ): """s 1 sec second 秒|min 60 minute 分钟 分|h 3600 hr hour 小时 钟头|day 86400 天|week 604800 周 星期
        |ms .001 millisecond 毫秒""",
    (0, 0, 0, 1, 0): """B 1 byte 字节|bit .125 比特|kB 1000 kilobyte|MB 1000000 megabyte|GB 1000000000 gigabyte
        |TB 1000000000000 terabyte|KiB 1024|MiB 1048576|GiB 1073741824|Mbit 125000 megabit|Gbit 125000000 gigabit""",
    (
        2,
        0,
        0,
        0,
        0,
    ): "m² 1 平方米|km² 1000000 平方公里 平方千米|ha 10000 hectare 公顷|acre 4046.8564224 英亩|亩 666.6666667",
    (
        3,
        0,
        0,
        0,
        0,
    ): """l .001 litre liter 升|ml .000001 millilitre milliliter 毫升|m³ 1 立方米|gal .003785411784 gallon 加仑
        |cup .0002365882365""",
    (1, 0, -1, 0, 0): "mph .44704|kph .2777777777777777777778 kmh|knot .5144444444444444444444 节",
    (0, 0, -1, 1, 0): "bps .125|kbps 125|Mbps 125000|Gbps 125000000",
    (2, 1, -2, 0, 0): "J 1 joule 焦耳|kJ 1000|cal 4.184 calorie 卡路里|kcal 4184 千卡 大卡|kWh 3600000 千瓦时",
    (2, 1, -3, 0, 0): "W 1 watt 瓦|kW 1000 kilowatt 千瓦|hp 745.69987158227 horsepower 马力",
    (-1, 1, -2, 0, 0): "Pa 1 pascal 帕|kPa 1000|bar 100000|psi 6894.757293168|atm 101325 atmosphere",
    (
        0,
        0,
        0,
        0,
        1,
    ): "K 1 kelvin 开尔文|°C 1 ℃ C celsius 摄氏度 摄氏|°F .5555555555555555555556 ℉ F fahrenheit 华氏度 华氏",
}
_ZEROS: Final = {"°C": Decimal("273.15"), "°F": Decimal("459.67") * 5 / 9}


def _rows() -> Iterator[tuple[str, Unit]]:
    for dimension, table in _TABLE.items():
        for row in table.split("|"):
            symbol, size, *names = row.split()
            unit = Unit(symbol, Quantity(Decimal(size), dimension), _ZEROS.get(symbol, Decimal(0)))
            yield from ((name, unit) for name in (symbol, *names))
            yield from (
                (f"{name}s", unit) for name in (symbol, *names) if name.isascii() and name.islower() and len(name) > 2
            )


UNITS: Final[dict[str, Unit]] = dict(_rows())
_FOLDED: Final = {name.lower(): unit for name, unit in reversed(UNITS.items())}


def unit_named(name: str) -> Unit | None:
    """A unit by its symbol, or by a name in whatever case."""
    return UNITS.get(name) or _FOLDED.get(name.lower())


def compound_unit(name: str) -> Unit | None:
    """A unit, its square or cube ("square metres"), one for another ("km/h"), or per cent."""
    if name == "%":
        return Unit("%", Quantity(Decimal("0.01")))
    one, by, other = name.replace("每", "/").partition("/")
    unit, per = unit_named(one.split()[-1]) if one.split() else None, unit_named(other)
    if by and unit and per:
        return Unit(
            f"{unit.symbol}/{per.symbol}", Quantity(unit.size.value / per.size.value, unit.size.times(per.size, -1))
        )
    han = {"平方": 2, "立方": 3}.get(one[:2]) if unit is None and not by else None
    unit = unit_named(one[2:]) if han else unit
    power = han or ({"square": 2, "cubic": 3}.get(one.split()[0].lower()) if unit else None)
    if by or unit is None or power is None:
        return None if by else unit
    return Unit(f"{unit.symbol}{'²' if power == 2 else '³'}", unit.size.power(power))


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to read a unit: its dimension, a currency's code or another `kind` that converts into no other kind; one
    of it is `size` of its base, counted from `zero`."""

    kind: Dimension | str
    size: Decimal = Decimal(1)
    zero: Decimal = Decimal(0)

    def per(self, other: Measure) -> Measure:
        return Measure(_combined(self.kind, other.kind, -1), self.size / other.size)

    def power(self, exponent: int) -> Measure:
        kind = self.kind
        raised = f"{kind}^{exponent}" if isinstance(kind, str) else tuple(one * exponent for one in kind)
        return Measure(raised, self.size**exponent)


def _combined(one: Dimension | str, other: Dimension | str, power: int) -> Dimension | str:
    if isinstance(one, str) or isinstance(other, str):
        return f"{one}/{other}"
    return tuple(a + power * b for a, b in zip(one, other, strict=True))


_LOCALES: Final = ("en", "en_GB", "zh", "zh_Hant")
_PREFIXES: Final = {
    "tera": 12, "giga": 9, "mega": 6, "kilo": 3, "hecto": 2, "deci": -1, "centi": -2, "milli": -3, "micro": -6,
    "nano": -9, "pico": -12,
}  # fmt: skip
_PREFIXED: Final = re.compile(rf"([a-z]+-)({'|'.join(_PREFIXES)})([a-z]+)")
_POWER: Final = re.compile(r"(?P<word>square |cubic |sq |cu |平方|立方)?(?P<name>[^\d/]{1,24})(?P<digit>[23])?")
# CLDR knows how these are called, not how many of one make another.
_SIZES: Final = {
    "concentr-percent": ("%", "1"), "concentr-permille": ("%", "0.1"), "concentr-permyriad": ("%", "0.01"),
    "duration-month": ("months", "1"), "duration-quarter": ("months", "3"), "duration-year": ("months", "12"),
    "duration-decade": ("months", "120"), "duration-century": ("months", "1200"),
}  # fmt: skip
_POINTS: Final = {
    "percentage point": "1", "percentage points": "1", "pp": "1", "个百分点": "1", "百分点": "1",
    "basis point": "0.01", "basis points": "0.01", "个基点": "0.01", "基点": "0.01",
}  # fmt: skip
_CALLED: Final = {
    "元": "CNY TWD", "块": "CNY", "块钱": "CNY", "yuan": "CNY", "rmb": "CNY", "renminbi": "CNY", "美金": "USD",
    "港币": "HKD", "日圆": "JPY", "台币": "TWD", "kr": "SEK NOK DKK ISK", "Rs": "INR PKR LKR NPR", "zł": "PLN",
    "Kč": "CZK", "Fr": "CHF",
}  # fmt: skip
_CENTS: Final = "USD EUR AUD CAD NZD HKD SGD"
_PARTS: Final = {
    "cent": (_CENTS, "0.01"), "cents": (_CENTS, "0.01"), "pence": ("GBP", "0.01"), "penny": ("GBP", "0.01"),
    "角": ("CNY", "0.1"), "毛钱": ("CNY", "0.1"),
}  # fmt: skip
_FIRST: Final = frozenset("USD EUR GBP CNY JPY RUB INR".split())  # who says "dollars" and no more means these
_NOT_MEASURED: Final = frozenset("em ems c item items point points 项 点 light 光".split())
_SHORT_NAMES: Final = {"mcg": "μg", "KB": "kB", "hrs": "h", "mins": "min", "secs": "s", "kgs": "kg", "yrs": "years"}
_DEGREES: Final = "degrees degree deg ° 度".split()


@cache
def measures() -> Mapping[str, tuple[Measure, ...]]:
    """All readings of each name of a unit or currency; names of three letters and more also in lower case."""
    found: dict[str, list[Measure]] = {name: [_measure(unit)] for name, unit in UNITS.items() if name != "分"}
    found |= {name: [Measure("%-point", Decimal(size))] for name, size in _POINTS.items()}
    for name, (codes, size) in _PARTS.items():
        found[name] = [Measure(code, Decimal(size)) for code in codes.split()]
    for unit, names in _cldr_units().items():
        measure = next((found[name][0] for name in sorted(names) if name in UNITS), None) or _sized(unit)
        for name in names - UNITS.keys() - _NOT_MEASURED:
            found.setdefault(name, []).append(measure)
    found["日"] = found["天"]
    for name, symbol in _SHORT_NAMES.items():
        found[name] = found[symbol]
    for name in _DEGREES:  # of temperature as often as of an angle, and whose is not said
        found[name] = [*found["°C"], *found["°F"], *found[name]]
    for name, some in currencies().items():
        found.setdefault(name, []).extend(map(Measure, sorted(some, key=lambda code: (code not in _FIRST, code))))
    plain = {unicodedata.normalize("NFKC", name): tuple(dict.fromkeys(some)) for name, some in found.items()}
    return {name.lower(): some for name, some in plain.items() if len(name) > 2 and not name.isupper()} | plain


def measure_named(name: str) -> tuple[Measure, ...]:
    """All readings of a name or symbol, including powers ("square metres") and quotients ("km/h")."""
    known = measures()
    if found := known.get(name) or (known.get(name.lower()) if len(name) > 1 else None):
        return found
    if name.startswith(("degree ", "degrees ", "deg ")):
        return measure_named(f"°{name.partition(' ')[2]}")
    one, by, other = name.replace(" per ", "/").replace("每", "/").partition("/")
    if by:
        return tuple(a.per(b) for a in measure_named(one.strip()) for b in measure_named(other.strip()))
    match = _POWER.fullmatch(name)
    if match is None or not (match["word"] or match["digit"]):
        return ()
    exponent = int(match["digit"] or (2 if match["word"].strip() in ("square", "sq", "平方") else 3))
    return tuple(one.power(exponent) for one in measure_named(match["name"]))


@cache
def currencies() -> Mapping[str, frozenset[str]]:
    """The currencies in use (ISO 4217) by what they may be meant by: "US dollars", "dollars", "$", "US$", "美元"."""
    from babel.core import get_global
    from babel.numbers import get_currency_name, get_currency_symbol

    codes = {
        row[0] for rows in get_global("territory_currencies").values() for row in rows if row[2] is None and row[3]
    }
    found: dict[str, set[str]] = {name: set(some.split()) for name, some in _CALLED.items()}
    for code in codes:
        known = {get_currency_name(code, count, locale) for locale in _LOCALES for count in (1, 2)}
        known |= {get_currency_symbol(code, locale) for locale in _LOCALES}
        for name in {code, *(called for one in known - {code} for called in _called(one, code))}:
            found.setdefault(name, set()).add(code)
    return {name: frozenset(some) for name, some in found.items()}


def _called(name: str, code: str) -> Iterator[str]:
    """A currency's name, and what it is called by those who know whose it is: dollars, $, A$, 澳元, 卢布."""
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


def _measure(unit: Unit) -> Measure:
    return Measure(unit.size.dimension, unit.size.value, unit.zero)


def _sized(unit: str) -> Measure:
    """A unit of CLDR that is not in the table: one of its powers or quotients, a thousand volts, or its own kind."""
    if unit in _SIZES:
        kind, size = _SIZES[unit]
        return Measure(kind, Decimal(size))
    if compound := compound_unit(unit.partition("-")[2].replace("-per-", "/").replace("-", " ")):
        return _measure(compound)
    if prefixed := _PREFIXED.fullmatch(unit):
        family, prefix, base = prefixed.groups()
        of = _measure(UNITS[base]) if base in UNITS else Measure(family + base)
        return Measure(of.kind, of.size * Decimal(10) ** _PREFIXES[prefix])
    return Measure(unit)


def _cldr_units() -> Mapping[str, set[str]]:
    """The names of each unit, singular and plural, long and short."""
    from babel import Locale
    from babel.units import UnknownUnitError, format_unit

    found: dict[str, set[str]] = {}
    lengths: tuple[Literal["long", "short"], ...] = ("long", "short")
    for unit, locale, length, count in product(map(str, Locale("en").unit_display_names), _LOCALES, lengths, (1, 2)):
        try:
            said = format_unit(count, unit, length, locale=locale)
        except UnknownUnitError:
            continue
        if said.startswith(str(count)) and unit not in said:
            found.setdefault(unit, set()).add(said[1:].strip())
    return found
