"""Number formats: digits with any thousands and decimal separators, Chinese numerals, and English words.

Also the simplification of traditional Chinese, which comes before the recognition of words.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from rag.patterns import lazy_regex

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
        return (parse_chinese(whole) + Decimal(f"0.{digits}")) * _parse_scale(part)
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


def _parse_scale(part: str) -> int:
    scale = 1
    for sign in part:
        scale *= HAN_PLACES.get(sign, 1)
    return scale


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
