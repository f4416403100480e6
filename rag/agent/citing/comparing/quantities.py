"""Numbers in digits and in words, with their signs, scales, units and eras."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rag.agent.citing.comparing import chinese, measures, numerals
from rag.agent.citing.comparing.letters import COUNTS, HAN
from rag.agent.citing.comparing.moments import Quantity

NUMBER = re.compile(r"\d+(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_VERSION = re.compile(r"\d+(?:\.\d+){2,}")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])", re.IGNORECASE)
_SCALE = re.compile(r"(?:\s*|-)(hundred|thousand|million|billion|trillion|dozen|bn)(?![a-z])", re.IGNORECASE)
_CHINESE_SCALE = re.compile(r"\s*[多余]?\s*([百千万亿]+)(?![货里米克瓦卡兆帕伏安牛分度])")
_SMALLER = re.compile(r"(\d+(?:\.\d+)?)\s*([百千万])")
_MONEY_SCALE = re.compile(r"\s?([kKmMbB])(?:n)?(?![A-Za-z])")
_THOUSANDS = re.compile(r"[kK](?![A-Za-z])")
_MINUS = re.compile(r"(?:\b(?:minus|negative)\s+|零下\s*|负\s*)$", re.IGNORECASE)
_HYPHEN = re.compile(rf"(?:(?:^|[\s(\[\"“=:,，：（]|(?<![{COUNTS}])[{HAN}])[$€£¥]?|^)-$")
SIGN = re.compile(r"(?:minus|negative)(?=\s+\d)|(?:零下|负)(?=\s*[\d〇一二三四五六七八九十])", re.IGNORECASE)
"""A sign in words, which is read with its number."""
_BELOW = re.compile(
    r"\s*+(?:degrees?\s*+)?(?:(?:celsius|centigrade|fahrenheit|°?\s?[CF])\s*+)?below (?:zero|freezing)", re.IGNORECASE
)
_ERA = re.compile(
    r"(?:\s*(?:-|to)\s*\d+)?(?:\s*(?:century|centuries|millennium))?\s*(?:B\.?\s?C\.?(?:\s?E)?|BCE)(?![A-Za-z])"
)
_BEFORE_CHRIST = re.compile(r"(?:[公西]元前|(?:^|[于至到从自在(（,，、-])前)\s*$")
_YEAR_SIGN = re.compile(r"\s*(?:年(?![间来内里])|世纪)")
_DECADE = re.compile(r"'?s(?![A-Za-z])")
_VERSIONED = re.compile(
    r"(?:\b(?:v|ver|version|versions|release|releases|build|revision|firmware|draft)\.?|版本?|版本号)[\s:为是]*$",
    re.IGNORECASE,
)
_VERSION_AFTER = re.compile(r"\s*版")
_SPELLED = re.compile(r"[a-z]+", re.IGNORECASE)
_JOINT = re.compile(r"(?:\s+and\s+|[\s-])(?=[a-z])", re.IGNORECASE)
_FRACTION = re.compile(r"[\s-](half|halves|thirds?|quarters?|fourths?|fifths?|tenths?)\b", re.IGNORECASE)
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
_HALF = re.compile(r"half(?= of\b| the\b| (?:its|their|his|her|our|all)\b)|half(?=\s+an?\s+([a-z]+))", re.IGNORECASE)
_ONE_AND_A_HALF = re.compile(r"(?:an?|one)\s+([a-z]+) and a half\b", re.IGNORECASE)
_AND_A_HALF = re.compile(r"\s+and a half\b", re.IGNORECASE)
_SHARE = re.compile(
    r"(?P<parts>[百千]|[\d二三四五六七八九十]+)分之(?P<of>\d+(?:\.\d+)?|[零〇一二三四五六七八九十百点两]+)"
)
_MAJOR = re.compile("一半|半数")
_HALF_UNIT = re.compile("半(?=个?(?:小时|钟头|年|月|公里|里|公斤|斤|吨|世纪|天|米|升))")
_THEN_HALF = re.compile("个?半(?=个?(?:小时|钟头|年|月|公里|里|公斤|斤|吨|世纪|天|米|升))")
_UNIT_HALF = re.compile("半(?![夜岛径])")
_POINT = re.compile("点([零〇一二三四五六七八九]+)")
_FIRST_WORDS: Final = frozenset((*numerals.NUMBER_WORDS, *numerals.SCALES, "one", "a", "an", "half"))
_COMMON_WORDS: Final = frozenset(("won", "second", "cup", "mark"))


@dataclass(frozen=True, slots=True)
class _Found:
    """A number before its unit is read; `scaled` where a word such as million has been taken in."""

    start: int
    end: int
    value: float
    scaled: bool = False
    unit: str = ""


def in_digits(text: str, at: int) -> Quantity | None:
    """The number that begins with a digit at `at`."""
    if match := _VERSION.match(text, at):
        return Quantity(at, match.end(), float(".".join(match.group().split(".")[:2])), "version", match.group())
    match = NUMBER.match(text, at)
    if not match:
        return None
    value, end = float(match.group().replace(",", "")), match.end()
    money = _money(text, at)
    if (
        not money
        and (decade := _DECADE.match(text, end))
        and "." not in match.group()
        and value % 10 == 0
        and value >= 20
    ):
        return Quantity(at, decade.end(), value, "年代")
    if ordinal := _ORDINAL.match(text, end):
        end = ordinal.end()
    found = _scaled(text, _Found(at, end, value), money)
    return _measured(text, found, money, match.group())


def _money(text: str, at: int) -> str:
    before = text[max(0, at - 4) : at].rstrip().removesuffix("-")
    return next((unit for sign, unit in measures.SIGNS.items() if before.endswith(sign)), "")


def _scaled(text: str, found: _Found, money: str) -> _Found:
    value, end, scaled = found.value, found.end, found.scaled
    while scale := _SCALE.match(text, end):
        value, end, scaled = value * numerals.SCALES[scale[1].lower()], scale.end(), True
    if not scaled and (scale := _THOUSANDS.match(text, end)):
        return _Found(found.start, scale.end(), value * 1e3, True)
    if not scaled and money and (scale := _MONEY_SCALE.match(text, end)):
        times = {"k": 1e3, "m": 1e6, "b": 1e9}[scale[1].lower()]
        return _Found(found.start, scale.end(), value * times, True)
    if not measures.chinese_unit(text, end)[0] and (scale := _CHINESE_SCALE.match(text, end)):
        value, end, scaled = value * _times(scale[1]), scale.end(), True
        while smaller := _SMALLER.match(text, end):
            value, end = value + float(smaller[1]) * _times(smaller[2]), smaller.end()
    return _Found(found.start, end, value, scaled, found.unit)


def _times(signs: str) -> float:
    product = 1.0
    for sign in signs:
        product *= {"百": 1e2, "千": 1e3, "万": 1e4, "亿": 1e8}[sign]
    return product


def _measured(text: str, found: _Found, money: str = "", written: str = "") -> Quantity:
    """With its unit, and the sign that stands before it or the era behind it."""
    value, end = found.value, found.end
    unit = found.unit or money
    if not unit:
        unit, end = _unit(text, end, value)
    if (half := _UNIT_HALF.match(text, end)) and unit in ("hour", "year", "km", "month", "day"):
        value, end = value + 0.5, half.end()
    before = text[max(0, found.start - 12) : found.start]
    if era := _ERA.match(text, found.end):
        start = era.end() if not re.search(r"\d", era.group()) else found.end
        return Quantity(found.start, start, -value, "century" if "cent" in era.group() else "year")
    if _BEFORE_CHRIST.search(before) and _YEAR_SIGN.match(text, found.end) and (value > 19 or "元" in before):
        return Quantity(found.start, end, -value, unit)
    if _MINUS.search(before) or _HYPHEN.search(before) or _BELOW.match(text, found.end):
        value = -value
    return Quantity(found.start, end, value, unit, "" if found.scaled else _digits(text, found, unit, written))


def _unit(text: str, at: int, value: float) -> tuple[str, int]:
    unit, end = measures.chinese_unit(text, at)
    if not unit:
        unit, end = measures.latin_unit(text, at)
    year_like = 1000 <= value <= 2100 and value == int(value)
    if year_like and text[at:end].strip().lower() in _COMMON_WORDS:
        return "", at
    return unit, end


def _digits(text: str, found: _Found, unit: str, written: str) -> str:
    """As it is written, where trailing zeros tell one from another: versions, and numbers of no unit."""
    if _VERSIONED.search(text[max(0, found.start - 12) : found.start]) or _VERSION_AFTER.match(text, found.end):
        return f"v{written}"
    return written if "." in written and not unit else ""


def in_words(text: str, start: int) -> Quantity | None:
    """Twenty-five, two hundred and six, one million, a dozen, two thirds, half of them."""
    first = _SPELLED.match(text, start)
    if first is None or first.group().lower() not in _FIRST_WORDS:
        return None
    if half := _HALF.match(text, start):
        if half[1]:
            unit, end = measures.latin_unit(text, half.start(1))
            return Quantity(start, end, 0.5, unit) if unit else None
        return Quantity(start, half.end(), 50.0, "%")
    if half := _ONE_AND_A_HALF.match(text, start):
        unit, _ = measures.latin_unit(text, half.start(1))
        return Quantity(start, half.end(), 1.5, unit) if unit else None
    words = _number_words(text, start)
    if not words:
        return None
    value, end = _valued([word for word, _ in words]), words[-1][1]
    if len(words) == 1 and (part := _FRACTION.match(text, end)) and value < 10:
        return Quantity(start, part.end(), 100 * value / _PARTS[part[1].lower().rstrip("s")], "%")
    if words[0][0] in ("one", "a", "an") and len(words) == 1:
        return None
    if half := _AND_A_HALF.match(text, end):
        value, end = value + 0.5, half.end()
    return _measured(text, _scaled(text, _Found(start, end, value), ""))


def _number_words(text: str, start: int) -> list[tuple[str, int]]:
    """The number words from `start` on, each with its end; `a` counts before a scale."""
    words: list[tuple[str, int]] = []
    at = start
    while match := _SPELLED.match(text, at):
        word = match.group().lower()
        if word in ("first", "second") and words and _size(words[-1][0]) in range(20, 100, 10):
            word = "one" if word == "first" else "two"
        if not _continues(words, word):
            break
        words.append((word, match.end()))
        joint = _JOINT.match(text, match.end())
        if not joint or (joint.group().strip() == "and" and word not in numerals.SCALES):
            break
        at = joint.end()
    if words and words[0][0] in ("a", "an"):
        counts = _FRACTION.match(text, words[0][1]) if len(words) == 1 else words[1][0] in numerals.SCALES
        return words if counts else []
    return [] if words and words[0][0] in numerals.SCALES and words[0][0] != "dozen" else words


def _continues(words: list[tuple[str, int]], word: str) -> bool:
    """Whether `word` goes on with the number: two hundred six does, two six are two numbers."""
    if word in numerals.SCALES or not words:
        return word in numerals.SCALES or word in numerals.NUMBER_WORDS or word in ("one", "a", "an")
    last = words[-1][0]
    if word != "one" and word not in numerals.NUMBER_WORDS:
        return False
    return last in numerals.SCALES or (_size(last) in range(20, 100, 10) and _size(word) < 10)


def _size(word: str) -> float:
    return 1.0 if word == "one" else numerals.NUMBER_WORDS.get(word, 0.0)


def _valued(words: list[str]) -> float:
    total, part = 0.0, 0.0
    for word in words:
        if word not in numerals.SCALES:
            part += 1.0 if word in ("a", "an") else _size(word)
        elif numerals.SCALES[word] in (12.0, 100.0):
            part = (part or 1.0) * numerals.SCALES[word]
        else:
            total, part = total + (part or 1.0) * numerals.SCALES[word], 0.0
    return total + part


def in_chinese(text: str, at: int) -> Quantity | None:
    """A number in Chinese signs at `at`: 三百零五, 三点五, 百分之二十, 半小时, 一半."""
    if match := _SHARE.match(text, at):
        of = float(match["of"]) if match["of"][0].isdigit() else _spoken(match["of"])
        parts = {"百": 100.0, "千": 1000.0}.get(match["parts"]) or _spoken(match["parts"])
        return Quantity(at, match.end(), 100 * of / parts, "%") if of is not None and parts else None
    if match := _MAJOR.match(text, at):
        return Quantity(at, match.end(), 50.0, "%")
    if match := _HALF_UNIT.match(text, at):
        unit, end = measures.chinese_unit(text, match.end())
        return Quantity(at, end, 0.5, unit) if unit else None
    if chinese.NO_NUMERAL.match(text, at) or not (match := chinese.NUMERAL.match(text, at)):
        return None
    if _is_article(text, match):
        return None
    value, end = chinese.numeral(match.group()), match.end()
    if value is None:
        return None
    if point := _POINT.match(text, end):
        value, end = float(f"{value:g}.{chinese.digits(point[1])}"), point.end()
    if half := _THEN_HALF.match(text, end):
        value, end = value + 0.5, half.end()
    return _measured(text, _scaled(text, _Found(at, end, value), ""))


def _spoken(text: str) -> float | None:
    if text.isdigit():
        return float(text)
    whole, _, rest = text.partition("点")
    value = chinese.numeral(whole) if whole else None
    return value if value is None or not rest else float(f"{value:g}.{chinese.digits(rest)}")


def _is_article(text: str, match: re.Match[str]) -> bool:
    """一 is a number before a unit that is counted, and an article elsewhere."""
    if match.group() != "一" or text[max(0, match.start() - 1) : match.start()] == "第":
        return False
    rest = text[match.end() : match.end() + 4]
    return not re.match(
        "等[奖功舱座]|级|期[工项]|楼|审|届|季度|个半|点[零〇一二三四五六七八九]|[月日年世]|个?小时|分钟|秒[^杀]|公里|千米|米[^饭粉]|公斤|[克吨元倍]|美元|周[^边围]|个月|百|千|万|亿",
        rest,
    )
