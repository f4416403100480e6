"""Signs and words, before or behind, that make a number, a day or a time a bound, in both languages."""

from __future__ import annotations

import re
from typing import Final

_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff"
_MORE: Final = "more|greater|higher|larger|bigger|longer|older|later|heavier|taller|deeper|wider|faster|newer"
_LESS: Final = "less|fewer|lower|smaller|shorter|younger|earlier|lighter|slower"
_UP: Final = rf"(?:(?:{_MORE}) than|over|above|exceed(?:s|ed|ing)?|in excess of|[大高多长晚重]于|超[过出]了?|逾|超)"
_DOWN: Final = rf"(?:(?:{_LESS}) than|under|below|[小低少短早轻]于|不足|不到|[未不]满|未达)"
_NOT: Final = (
    r"(?:(?:\b(?:not|no|never|cannot)|n't)(?: (?:be|to|been|have|last|take|cost|weigh)){0,2} "
    r"|不得|不能|不可以?|不应|不会|不宜|不|未|没有?)"
)
_EQUAL: Final = r" ?(?:or equal to|或?等于)"
_MOST: Final = r"\b(?:up to|at (?:the )?most|max(?:imum)?\.?(?: of)?|within|as (?:many|much|high|long|far) as)"
_LEAST: Final = r"\b(?:at (?:the )?least|min(?:imum)?\.?(?: of)?|as (?:few|little|low) as)"
_FILL: Final = r"[ 为]{0,2}(?:a |an |the |about |approximately |roughly |around |just |约)?"
_BEFORE: Final = tuple(
    (re.compile(rf"(?:{pattern}){_FILL}$", re.IGNORECASE), bound)
    for pattern, bound in (
        (rf"≤|{_NOT}{_UP}|{_DOWN}{_EQUAL}|{_MOST}|[至最][多高]|顶多", "≤"),
        (rf"≥|{_NOT}{_DOWN}|{_UP}{_EQUAL}|{_LEAST}|[至最][少低]|起码|(?<![未不])满", "≥"),
        (rf"(?<![a-z]){_UP}|>", ">"),
        (rf"(?<![a-z]){_DOWN}|<", "<"),
    )
)
_AFTER: Final = tuple(
    (
        re.compile(rf"(?: [a-z]+)? ?(?:or|and) (?:{words})\b|(?: [a-z]+)? {most}\b|{han}"),
        bound,
    )
    for words, most, han, bound in (
        (f"{_MORE}|above|over|up|upwards?", "minimum", rf"[{_HAN}]{{0,2}}?(?:\(含\))?[及或]?[以之]上", "≥"),
        (f"{_LESS}|below|under", "maximum", rf"[{_HAN}]{{0,2}}?(?:\(含\))?[及或]?[以之][下内]|内", "≤"),
    )
)
_PLUS: Final = re.compile(r"\+(?!\w)")
_UNTIL: Final = re.compile(
    r"(?:\b(?:before|by|until|till|up to|prior to)|截至|直到|截止到?) ?(?:the )?$", re.IGNORECASE
)
_SINCE: Final = re.compile(r"(?:\b(?:after|since|as of|starting)|自从?) ?(?:the )?$", re.IGNORECASE)
_UNTIL_AFTER: Final = re.compile("[之以]?前|为止|[之以]?内")
_SINCE_AFTER: Final = re.compile("[之以]?后|以来|起")


def bound_before(before: str) -> tuple[str, int]:
    """The bound that `before` ends with, and how many characters say so; "" and 0 for none."""
    for pattern, bound in _BEFORE:
        if match := pattern.search(before):
            return bound, len(before) - match.start()
    return "", 0


def bound_after(text: str, at: int) -> tuple[str, int]:
    """The bound that `text[at:]` begins with, and where that ends; "" and `at` for none."""
    if plus := _PLUS.match(text, at):
        return "≥", plus.end()
    for pattern, bound in _AFTER:
        if match := pattern.match(text, at):
            return bound, match.end()
    return "", at


def bound_of_moment(before: str, text: str, at: int) -> str:
    """The side of a day or a time that is meant."""
    if _UNTIL.search(before) or _UNTIL_AFTER.match(text, at):
        return "≤"
    return "≥" if _SINCE.search(before) or _SINCE_AFTER.match(text, at) else ""
