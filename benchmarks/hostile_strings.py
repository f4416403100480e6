"""Strings that a regular expression may be slow for, made from the expression itself.

A backtracking search is slow where one stretch of text can be read in many ways, or is read again from each
place in it: repeats of a part of the pattern, after what leads to that part, before something that fits nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

# What classes and categories are tried with, beside the characters that the pattern names.
_POOL = " \n\t.a1A_-,:*\"'#|(<[`/=>)]中。，\u00e9\u3000\x00"
_MISFITS = ("\x00", "")
_VARIANTS = 3
_MAX_PIECE = 400
_MAX_STRINGS = 240
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


@dataclass(frozen=True, slots=True)
class Hostile:
    """`start`, then `piece` again and again, then `end`."""

    start: str
    piece: str
    end: str
    as_bytes: bool

    def text(self, length: int) -> str | bytes:
        """About `length` characters."""
        times = max(1, (length - len(self.start) - len(self.end)) // len(self.piece))
        text = self.start + self.piece * times + self.end
        return text.encode("latin-1", "replace") if self.as_bytes else text

    @property
    def shown(self) -> str:
        return f"{self.start!r} + {self.piece!r} * n + {self.end!r}"


def hostile_strings(pattern: str | bytes, flags: int) -> list[Hostile]:
    """At most some hundred strings for a pattern, the same each time."""
    as_bytes = isinstance(pattern, bytes)
    parsed = _parser.parse(pattern, flags & ~re.TEMPLATE if hasattr(re, "TEMPLATE") else flags)
    writer = _Writer(random.Random(7))
    pieces: dict[tuple[str, str], None] = {}
    for _ in range(_VARIANTS):
        pieces.update(dict.fromkeys(writer.pumps(parsed)))
    pieces.update(dict.fromkeys(("", one) for one in writer.alphabet(parsed)))
    pairs = [(start[-_MAX_PIECE:], piece) for start, piece in pieces if 0 < len(piece) <= _MAX_PIECE]
    strings = [Hostile(start, piece, end, as_bytes) for start, piece in pairs for end in _MISFITS]
    return strings if len(strings) <= _MAX_STRINGS else writer.random.sample(strings, _MAX_STRINGS)


class _Writer:
    """Writes text that fits parts of a parsed pattern."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self._groups: dict[int, str] = {}

    def pumps(self, items: Any, before: str = "") -> Iterator[tuple[str, str]]:
        """(what leads there, what to repeat) for each repeat, and for each beginning of a sequence."""
        for code, value in items:
            written = self._one(code, value)
            if code in _REPEATS:
                yield before, self._written(value[2]) or written
                yield before, written
            for inner in _inner(code, value):
                yield from self.pumps(inner, before)
            before += written
            yield "", before
            yield before, written

    def alphabet(self, items: Any) -> list[str]:
        """The characters of the pool, and of the pattern itself, that the pattern's classes take."""
        found: dict[str, None] = {}
        for code, value in _all(items):
            if code is sre.LITERAL:
                found[chr(value)] = None
            elif code is sre.IN:
                found.update(dict.fromkeys(self._members(value)))
        return list(found)[:40]

    def _written(self, items: Any) -> str:
        return "".join(self._one(code, value) for code, value in items)

    def _one(self, code: Any, value: Any) -> str:
        if code is sre.LITERAL:
            return chr(value)
        if code is sre.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        if code is sre.ANY:
            return "a"
        if code is sre.IN:
            members = self._members(value)
            return self.random.choice(members) if members else "a"
        if code is sre.BRANCH:
            return self._written(self.random.choice(value[1]))
        if code is sre.SUBPATTERN:
            text = self._written(value[-1])
            self._groups[value[0]] = text
            return text
        if code is sre.ATOMIC_GROUP:
            return self._written(value)
        if code in _REPEATS:
            least, most, body = value
            return "".join(self._written(body) for _ in range(min(int(most), max(int(least), 1), 40)))
        if code is sre.GROUPREF:
            return self._groups.get(value, "")
        return ""  # places, and what is only looked at

    def _members(self, items: Any) -> list[str]:
        """What a class takes of the pool, and the ends of what it names."""
        negated = bool(items) and items[0][0] is sre.NEGATE
        named = [] if negated else [chr(one) for code, value in items for one in _ends(code, value)]
        return list(dict.fromkeys(one for one in (*_POOL, *named) if _in_class(items, one) != negated))


def _ends(code: Any, value: Any) -> Iterable[int]:
    return (value,) if code is sre.LITERAL else value if code is sre.RANGE else ()


def _in_class(items: Any, character: str) -> bool:
    return any(_fits(code, value, character) for code, value in items if code is not sre.NEGATE)


def _fits(code: Any, value: Any, character: str) -> bool:
    if code is sre.LITERAL:
        return ord(character) == value
    if code is sre.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    return bool(_CATEGORIES[value].match(character))


_CATEGORIES = {
    sre.CATEGORY_DIGIT: re.compile(r"\d"),
    sre.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    sre.CATEGORY_SPACE: re.compile(r"\s"),
    sre.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    sre.CATEGORY_WORD: re.compile(r"\w"),
    sre.CATEGORY_NOT_WORD: re.compile(r"\W"),
}


def _inner(code: Any, value: Any) -> list[Any]:
    """The sequences inside a part of a parsed pattern."""
    if code is sre.BRANCH:
        return list(value[1])
    if code is sre.SUBPATTERN:
        return [value[-1]]
    if code is sre.ATOMIC_GROUP:
        return [value]
    if code in _REPEATS:
        return [value[2]]
    if code in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if code is sre.GROUPREF_EXISTS:
        return [one for one in value[1:] if one]
    return []


def _all(items: Any) -> Iterator[tuple[Any, Any]]:
    for code, value in items:
        yield code, value
        for inner in _inner(code, value):
            yield from _all(inner)
