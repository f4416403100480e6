"""Strings that a regular expression may be slow on, derived from the expression itself.

A backtracking search is slow if a stretch of text matches in many ways, or is rescanned from every position in it. So
each string repeats a part of the pattern, after a prefix that leads to that part and before a mismatch.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

# Characters to try classes and categories with, in addition to those in the pattern.
_POOL = " \n\t.a1A_-,:*\"'#|(<[`/=>)]中。，\u00e9\u3000\x00"
_MISFITS = ("\x00", "")
_VARIANTS = 3
_MAX_PIECE = 400
_MAX_STRINGS = 240
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


@dataclass(frozen=True, slots=True)
class Hostile:
    """`start`, then `piece` repeated, then `end`."""

    start: str
    piece: str
    end: str
    as_bytes: bool

    def text(self, length: int) -> str | bytes:
        """Return about `length` characters."""
        times = max(1, (length - len(self.start) - len(self.end)) // len(self.piece))
        text = self.start + self.piece * times + self.end
        return text.encode("latin-1", "replace") if self.as_bytes else text

    @property
    def description(self) -> str:
        return f"{self.start!r} + {self.piece!r} * n + {self.end!r}"


def hostile_strings(pattern: str | bytes, flags: int) -> list[Hostile]:
    """Return up to `_MAX_STRINGS` strings for a pattern, deterministically."""
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
    """A writer of text that matches parts of a parsed pattern."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self._groups: dict[int, str] = {}

    def pumps(self, items: Any, before: str = "") -> Iterator[tuple[str, str]]:
        """Yield (prefix, text to repeat) for each repeat, and for each beginning of a sequence."""
        for code, value in items:
            matching = self._write_item(code, value)
            if code in _REPEATS:
                yield before, self._write(value[2]) or matching
                yield before, matching
            for inner in _inner(code, value):
                yield from self.pumps(inner, before)
            before += matching
            yield "", before
            yield before, matching

    def alphabet(self, items: Any) -> list[str]:
        """Return the characters of the pool, and of the pattern, that the pattern's classes match."""
        characters: dict[str, None] = {}
        for code, value in _walk(items):
            if code is sre.LITERAL:
                characters[chr(value)] = None
            elif code is sre.IN:
                characters.update(dict.fromkeys(self._members(value)))
        return list(characters)[:40]

    def _write(self, items: Any) -> str:
        return "".join(self._write_item(code, value) for code, value in items)

    def _write_item(self, code: Any, value: Any) -> str:
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
            return self._write(self.random.choice(value[1]))
        if code is sre.SUBPATTERN:
            text = self._write(value[-1])
            self._groups[value[0]] = text
            return text
        if code is sre.ATOMIC_GROUP:
            return self._write(value)
        if code in _REPEATS:
            least, most, body = value
            return "".join(self._write(body) for _ in range(min(int(most), max(int(least), 1), 40)))
        if code is sre.GROUPREF:
            return self._groups.get(value, "")
        return ""  # positions and lookarounds

    def _members(self, items: Any) -> list[str]:
        """Return the characters of the pool that a class matches, and the ends of its ranges."""
        is_negated = bool(items) and items[0][0] is sre.NEGATE
        literals = [] if is_negated else [chr(one) for code, value in items for one in _ends(code, value)]
        return list(dict.fromkeys(one for one in (*_POOL, *literals) if _in_class(items, one) != is_negated))


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
    """Return the sequences inside a part of a parsed pattern."""
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


def _walk(items: Any) -> Iterator[tuple[Any, Any]]:
    for code, value in items:
        yield code, value
        for inner in _inner(code, value):
            yield from _walk(inner)
