"""A text as what is compared: its content words by their stems, Chinese signs, and numbers by what they amount to.

Numbers are read in digits, in words and in Chinese signs, with scales and units that convert.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["word", "name", "number", "han"]

HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(
    rf"(?P<word>(?:[^\W\d_{HAN}]\.){{2,}}|[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)*[+#]*)|(?P<han>[{HAN}])|(?P<break>[,;:()，；：（）。.!?！？\n])"
)
_FUNCTION_WORDS: Final = frozenset(
    """a an the of in on at to for from by with and or but as is are was were be been being it its this that these
    those he she his her they their there which who whom whose what when where while also no not never can could may
    might will would should do does did has have had than then so such into about over under after before during between
    more most other some any all each both only very i you we our your my me us if because however yes""".split()
)
_FUNCTION_SIGNS: Final = frozenset("的了是在和与也都就着吗呢吧啊之而及或把被")
_DENIES: Final = frozenset("no not never without none neither nor cannot 不 没 未".split())
_JOINS: Final = frozenset("and but or while which who where 而 并 且".split())
_ENDINGS: Final = ("ing", "ed", "ies", "es", "s", "ly")
_BEGINS = re.compile(r"(?:^|[.!?:\"“\n*•>|#-])\s{0,4}$")
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS = MappingProxyType(
    {word: float(value) for value, word in enumerate(_SMALL)}
    | {word: 10.0 * place for place, word in enumerate(_TENS, 2)}
)
_MONTHS = "january february march april may june july august september october november december".split()
MONTHS = MappingProxyType({name: float(place) for place, name in enumerate(_MONTHS, 1)})
_SCALES: Final = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "bn": 1e9,
    "十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8,
}  # fmt: skip
_DIGITS: Final = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
# what is measured, how much of its base a unit is (0: by a formula), its forms
_UNITS: Final = """
length 1 m metre metres meter meters 米|length 1000 km kilometre kilometres kilometer kilometers 公里 千米
length 0.01 cm centimetre centimetres centimeter centimeters 厘米|length 0.001 mm millimetre millimetres 毫米
length 0.3048 ft foot feet 英尺|length 0.0254 inch inches 英寸|length 1609.344 mile miles mi 英里
length 0.9144 yard yards 码|mass 1 g gram grams 克|mass 1000 kg kilogram kilograms 公斤 千克
mass 1000000 tonne tonnes 吨|mass 0.001 mg 毫克
mass 453.592 lb lbs pound pounds 磅|mass 28.3495 oz ounce ounces 盎司|share 1 % percent 百分
volume 1 l litre litres liter liters 升|volume 0.001 ml 毫升|volume 3.78541 gallon gallons 加仑
area 10000 ha hectare hectares 公顷|area 4046.86 acre acres 英亩|area 1000000 km2 km² 平方公里
time 1 second seconds 秒|time 60 minute minutes min 分钟|time 3600 hour hours 小时|time 86400 day days 天
time 604800 week weeks 周|heat 1 °C celsius 摄氏度|heat 0 °F fahrenheit 华氏度
"""
_UNIT_OF: Final = {
    form: (kind, float(factor))
    for row in _UNITS.strip().replace("\n", "|").split("|")
    for kind, factor, *forms in [row.split()]
    for form in forms
}
_LATIN = "|".join(sorted((re.escape(form) for form in _UNIT_OF if form.isascii()), key=len, reverse=True))
_HAN = "|".join(sorted((form for form in _UNIT_OF if not form.isascii()), key=len, reverse=True))
_UNIT: Final = rf"(?:(?P<latin>{_LATIN})(?![A-Za-z])|(?P<han>{_HAN}))"
_SCALE: Final = r"(?P<scale>(?:\s?(?:hundred|thousand|million|billion|trillion|bn|k)\b|[十百千万亿](?![米克瓦])){1,2})?"
NUMBER = re.compile(
    rf"(?:(?P<share>百分之)?(?P<digits>\d+(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"|(?P<parts>百分之)?(?P<signs>[零〇一二三四五六七八九十两][零〇一二三四五六七八九十百千万亿两]+)"
    rf"|\b(?P<words>(?:{'|'.join(WORDS)})(?:-(?:{'|'.join(_SMALL)}))?)\b){_SCALE}(?:[\s-]?(?:degrees?\s)?{_UNIT})?",
    re.IGNORECASE,
)
_NEAR: Final = 0.02  # of its value: how far what is rounded may lie


@dataclass(frozen=True, slots=True)
class Term:
    """`key` is what equal terms share. `clause` counts the clauses, `opens` says that it stands in a clause's first
    unbroken run of content words; `number` is what a number amounts to, `written` that it is in digits."""

    key: str
    kind: Kind
    clause: int
    opens: bool
    number: Number | None = None
    written: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """The content of a text in its order; `denials` counts its negations."""

    terms: tuple[Term, ...]
    denials: int


@lru_cache(maxsize=2048)
def read(text: str) -> Terms:
    """The terms of a sentence, remembered: passages come again."""
    reader = _Reader(unicodedata.normalize("NFKC", text).replace("’", "'"))
    return Terms(tuple(reader.terms()), reader.denials)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.denials = 0
        self._clause = 0
        self._opening = 0  # 0: not begun, 1: within the first run of content words, 2: behind it

    def terms(self) -> Iterator[Term]:
        at = 0
        while at < len(self._text):
            if number := NUMBER.match(self._text, at) if self._may_count(at) else None:
                amount = read_number(number)
                yield self._term(f"#{amount.base:g}", "number", amount, number["digits"] is not None)
                at = number.end()
            elif token := _TOKEN.match(self._text, at):
                yield from self._of(token)
                at = token.end()
            else:
                at += 1

    def _may_count(self, at: int) -> bool:
        before = self._text[at - 1 : at]
        return not (before.isascii() and before.isalpha()) or not self._text[at].isalpha()

    def _of(self, token: re.Match[str]) -> Iterator[Term]:
        word = token.group()
        lower = word.lower().removesuffix("'s")
        self.denials += lower in _DENIES or lower.endswith("n't")
        if token["break"] or lower in _JOINS:
            self._clause, self._opening = self._clause + 1, 0
        elif lower in _FUNCTION_WORDS or lower in _FUNCTION_SIGNS:
            self._opening = 2 if self._opening else 0
        elif token["han"]:
            yield self._term(word, "han")
        elif word in MONTHS or (lower.capitalize() == word and lower in MONTHS):
            yield self._term(f"#{MONTHS[lower]:g}", "number", Number(MONTHS[lower]))
        elif len(lower) > 1 or word.isupper():
            named = word[0].isupper() and not _BEGINS.search(self._text[max(0, token.start() - 4) : token.start()])
            yield self._term(stem(lower), "name" if named else "word")

    def _term(self, key: str, kind: Kind, number: Number | None = None, written: bool = False) -> Term:
        self._opening = self._opening or 1
        return Term(key, kind, self._clause, self._opening == 1, number, written)


def stem(word: str) -> str:
    """A form that a word shares with its inflections; not always a word itself."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    word = word[:-1] if len(word) > 3 and word.endswith("e") else word
    word = f"{word[:-1]}y" if len(word) > 3 and word.endswith("i") else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


@dataclass(frozen=True, slots=True)
class Number:
    """A value, its unit's dimension in `kind` (empty without a unit), and its amount there as `base`.

    `figures` are its significant digits, `plain` says that it is written as a year is.
    """

    value: float
    kind: str = ""
    unit: str = ""
    base: float = 0.0
    figures: int = 1
    plain: bool = True

    def stands(self, other: Number) -> bool:
        """Whether `other` says this amount: exactly, in another unit, or with more digits than this."""
        if self.value == other.value and (not self.kind or not other.kind or self.unit == other.unit):
            return True
        if self.kind != other.kind or (self.plain and other.plain and not self.kind and 1000 <= self.value <= 2100):
            return False  # a year is not rounded
        rounded = self.unit != other.unit or self.figures < other.figures
        return math.isclose(self.base, other.base, rel_tol=_NEAR if rounded else 1e-9)


def read_number(match: re.Match[str]) -> Number:
    """What a match of NUMBER amounts to."""
    value = _value(match)
    written = (match["digits"] or f"{value:g}").replace(",", "")
    for scale in re.findall(r"[a-z]+|[十百千万亿]", (match["scale"] or "").lower()):
        value *= _SCALES[scale]
    digits = written.replace(".", "")
    figures = len(digits.lstrip("0") if "." in written else digits.strip("0"))
    form = match["latin"] or match["han"] or ("%" if match["share"] or match["parts"] else "")
    kind, factor = _UNIT_OF.get(form, _UNIT_OF.get(form.lower(), ("", 1.0)))
    base = value * factor if factor else (value - 32) / 1.8
    return Number(value, kind, f"{kind}{factor}", base, max(1, figures), not match["scale"] and "." not in written)


def _value(match: re.Match[str]) -> float:
    if match["digits"]:
        return float(match["digits"].replace(",", ""))
    if match["words"]:
        return sum(WORDS[word] for word in match["words"].lower().split("-"))
    return _in_signs(match["signs"])


def _in_signs(signs: str) -> float:
    """三百零五, 一九四九, 二万五千."""
    if not set(signs) & set("十百千万亿"):
        return float("".join(str(_DIGITS[sign]) for sign in signs))
    total = part = digit = 0.0
    for sign in signs:
        if sign in _DIGITS:
            digit = float(_DIGITS[sign])
        elif sign in "万亿":
            total, part, digit = (total + part + digit) * _SCALES[sign], 0.0, 0.0
        else:
            part, digit = part + (digit or 1.0) * _SCALES[sign], 0.0
    return total + part + digit
