"""Units of measure with their names in both languages, and quantities that know their dimension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

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
    (0, 0, 1, 0, 0): """s 1 sec second 秒|min 60 minute 分钟|h 3600 hr hour 小时|day 86400 天|week 604800 周 星期
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
    (2, 1, -2, 0, 0): "J 1 joule 焦耳|kJ 1000|cal 4.184 calorie 卡路里|kcal 4184 千卡 大卡|kWh 3600000 千瓦时",
    (2, 1, -3, 0, 0): "W 1 watt 瓦|kW 1000 kilowatt 千瓦|hp 745.69987158227 horsepower 马力",
    (-1, 1, -2, 0, 0): "Pa 1 pascal 帕|kPa 1000|bar 100000|psi 6894.757293168|atm 101325 atmosphere",
    (0, 0, 0, 0, 1): "K 1 kelvin 开尔文|°C 1 ℃ C celsius 摄氏度|°F .5555555555555555555556 ℉ F fahrenheit 华氏度",
}
_ZEROS: Final = {"°C": Decimal("273.15"), "°F": Decimal("459.67") * 5 / 9}


def _rows() -> Iterator[tuple[str, Unit]]:
    for dimension, table in _TABLE.items():
        for row in table.split("|"):
            symbol, size, *names = row.split()
            unit = Unit(symbol, Quantity(Decimal(size), dimension), _ZEROS.get(symbol, Decimal(0)))
            yield from ((name, unit) for name in (symbol, *names))
            yield from ((f"{name}s", unit) for name in names if name.isascii() and name[-1] != "s" and len(name) > 1)


UNITS: Final[dict[str, Unit]] = dict(_rows())
_FOLDED: Final = {name.lower(): unit for name, unit in reversed(UNITS.items())}


def unit_named(name: str) -> Unit | None:
    """A unit by its symbol, or by a name in whatever case."""
    return UNITS.get(name) or _FOLDED.get(name.lower())
