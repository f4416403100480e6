"""The tokens of a sentence: content words by their stems, Chinese signs, names, and numbers by value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from rag.agent.citing.comparing import bounds, chinese, english, moments, numerals, quantities
from rag.agent.citing.comparing.letters import HAN
from rag.agent.citing.comparing.measures import same_amount
from rag.agent.citing.comparing.moments import Quantity

Kind = Literal["word", "name", "number", "han"]

_PREFIX = r"(?:(?:non|anti|counter|un|dis|mis|pre|post|ex|semi|pro|sub|bi)-)?"
WORD = re.compile(rf"{_PREFIX}[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)?[+#]*", re.IGNORECASE)
_BREAK = re.compile(r"[,;:，；：()（）—。.!?！？“”\"\n|]|(?<=\s)-(?=\s)")
_STARTS = re.compile(r"[.!?:。！？：\"“(（\n|]\s*$")
# What a number, a weekday or a time of day in Chinese begins with.
_COUNTING = frozenset("〇零一二三四五六七八九两十百千万亿半周星礼") | moments.PART_BEGINNINGS
_FAR = 80  # characters before a word in which the beginning of its sentence shows
_FUNCTION = re.compile("|".join(map(re.escape, chinese.FUNCTION_WORDS)))
HAN_SIGN = re.compile(f"[{HAN}]")
_RANGE = re.compile(r"\s*(?:-|~|to|至|到|and|until)\s*$")
_SPAN = re.compile(r"\s*(?:-|~|to|or|and|至|到|或)\s*")
_STRICT = frozenset(("weekday", "年代", "version"))


@dataclass(frozen=True, slots=True)
class Token:
    """`key` is what equal tokens share; `groups` mark its synonyms. A `number` has its value and unit.

    `start:end` is where it stands in the reading's text. `digits` is a number as written, where zeros at its
    end count; `marks` is how the words around bound it.
    """

    key: str
    kind: Kind
    raw: str
    clause: int
    groups: frozenset[str] = frozenset()
    value: float = 0.0
    unit: str = ""
    opens: bool = False
    start: int = 0
    end: int = 0
    digits: str = ""
    marks: frozenset[str] = frozenset()

    @property
    def aligned(self) -> str:
        """What stands for it in an alignment: the first of its synonym groups."""
        return min(self.groups) if self.groups else self.key

    def same(self, other: Token) -> bool:
        if self.kind == "number" or other.kind == "number":
            return self.kind == other.kind and self._same_number(other)
        return self.key == other.key or bool(self.groups & other.groups)

    def _same_number(self, other: Token) -> bool:
        units = {self.unit, other.unit}
        if "v" in (self.digits[:1], other.digits[:1]) or "version" in units:
            return self._written == other._written
        if self.digits and other.digits and self.digits.rstrip("0") == other.digits.rstrip("0"):
            return self.digits == other.digits
        if units & {moments.CLOCK, moments.TIME}:
            return moments.same_time(self.value, self.unit, other.value, other.unit)
        if units & _STRICT and len(units) > 1:
            return False
        return same_amount(self.value, self.unit, other.value, other.unit)

    @property
    def _written(self) -> str:
        return self.digits.removeprefix("v") or f"{self.value:.15g}"


class Tokenizer:
    """Reads `text` from its beginning to its end; see `Reading` for what it finds."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.negated: list[int] = []
        self.forbidden: set[int] = set()
        self._clause = 0
        self._plain = 0  # up to here stands a word that only looks like a denial
        for token in self._read():
            self.tokens.append(token)
        self.tokens = _with_shared_units(text, self.tokens)

    def _read(self) -> Iterator[Token]:
        at, text = 0, self.text
        while at < len(text):
            if text[at] == " ":
                at += 1
                continue
            tokens, at_next = self._next(at)
            yield from tokens
            if not tokens and at_next == at:
                self._clause += bool(_BREAK.match(text, at))
                at_next = at + 1
            at = at_next

    def _next(self, at: int) -> tuple[list[Token], int]:
        """The tokens that begin at `at`, if any do, and where to go on; `at` itself where nothing stands."""
        if skipped := self._skipped.get(at):
            return [], skipped
        if found := self._quantities(at):
            return [self._numbered(one) for one in found], found[-1].end
        if match := WORD.match(self.text, at):
            token, end = self._word(match)
        elif HAN_SIGN.match(self.text, at):
            token, end = self._han(at)
        else:
            return [], at
        return [token] if token else [], end

    @cached_property
    def _skipped(self) -> dict[int, int]:
        """Where words that belong to a number begin and end."""
        patterns = (quantities.SIGN, bounds.BOUND)
        return {match.start(): match.end() for pattern in patterns for match in pattern.finditer(self.text)}

    def _quantities(self, at: int) -> list[Quantity]:
        """The number, time or weekday that begins at `at`; a date in digits is three of them."""
        text, digit = self.text, self.text[at].isdigit()
        if digit and (found := moments.date(text, at)):
            return found
        if not (digit or text[at].isalpha() or text[at] in ".至到-"):
            return []
        if text[at] in "至到-":
            follows = bool(self.tokens) and self.tokens[-1].unit == "weekday" and self.tokens[-1].end == at
            return _listed(moments.next_weekday(text, at) if follows else None)
        if not digit and (at and text[at - 1].isascii() and text[at - 1].isalpha()):
            return []
        if text[at].isascii() and not digit and text[at] != ".":
            return _listed(self._in_latin(at))
        if text[at].isalpha() and text[at] not in _COUNTING:
            return []
        known = self._half_before(at)
        return _listed(
            (moments.clock(text, at, known) if digit else moments.weekday(text, at))
            or moments.chinese_clock(text, at, known)
            or (quantities.in_digits(text, at) if digit or text[at] == "." else None)
            or (None if text[at].isascii() else quantities.in_chinese(text, at))
        )

    def _in_latin(self, at: int) -> Quantity | None:
        text = self.text
        capital = text[at].isupper()
        return (
            (moments.weekday(text, at) if capital else None)
            or (moments.named_clock(text, at) if text[at] in "nNmM" else None)
            or (self._month(at) if capital else None)
            or quantities.in_words(text, at)
        )

    def _half_before(self, at: int) -> str:
        last = self.tokens[-1] if self.tokens else None
        if last is None or last.unit != moments.CLOCK or not _RANGE.fullmatch(self.text[last.end : at]):
            return ""
        return moments.half_of(Quantity(last.start, last.end, last.value, last.unit))

    def _month(self, at: int) -> Quantity | None:
        match = WORD.match(self.text, at)
        if (
            not match
            or match.group().lower() not in numerals.MONTHS
            or not moments.is_month(self.text, at, match.end())
        ):
            return None
        return Quantity(at, match.end(), float(numerals.MONTHS[match.group().lower()]), "month")

    def _numbered(self, found: Quantity) -> Token:
        return Token(
            f"#{found.value:.15g}", "number", self.text[found.start : found.end], self._clause, value=found.value,
            unit=found.unit, start=found.start, end=found.end, digits=found.digits,
            marks=bounds.marks(self.text, found.start, found.end),
        )  # fmt: skip

    def _word(self, match: re.Match[str]) -> tuple[Token | None, int]:
        raw, end = match.group(), match.end()
        lower = lowered(raw)
        opens = raw[0].isupper() and self._opens(match.start())
        if denied := english.DENIES.match(self.text, match.start()):
            return self._denied(denied.end(), lower in english.FORBIDS)
        if lower.replace("'", "") in english.NEGATORS:
            at = english.NO_DENIAL.match(self.text, match.start())
            return (None, at.end()) if at else self._denied(end, lower in english.FORBIDS)
        letter = len(raw) == 1 and (raw.isupper() or self._is_listed(match)) and self._is_name(match)
        capital = letter or (raw[0].isupper() and (not opens or (raw.isupper() and len(raw) > 1)))
        if lower in english.FUNCTION_WORDS and not letter and not (raw.isupper() and len(raw) > 1):
            return None, end
        key = english.stem(lower)
        kind: Kind = "name" if capital else "word"
        groups = english.SYNONYM_GROUPS.get(key, frozenset()) if kind == "word" else frozenset()
        start = match.start()
        return Token(key, kind, raw, self._clause, groups, opens=opens, start=start, end=end), end

    def _opens(self, at: int) -> bool:
        """Whether a sentence, or a part of one, begins here: a capital says nothing there."""
        before = self.text[max(0, at - _FAR) : at]
        return not before.strip() or bool(_STARTS.search(before))

    def _denied(self, end: int, forbids: bool) -> tuple[None, int]:
        self.negated.append(len(self.tokens))
        if forbids:
            self.forbidden.add(len(self.tokens))
        return None, end

    def _is_listed(self, match: re.Match[str]) -> bool:
        """Section 4 (a)."""
        return self.text[max(0, match.start() - 1) : match.start()] == "(" and self.text[match.end() :].startswith(")")

    def _is_name(self, match: re.Match[str]) -> bool:
        """Plan A and Type I are names; an article at the beginning and a pronoun are not."""
        before, after = self.text[: match.start()], self.text[match.end() :]
        if match.group() == "I":
            return bool(re.search(r"[A-Z][a-z]+ $|\b(?:type|class|phase|part|stage|grade|level|group) $", before))
        if match.group() == "A":
            return bool(before.strip() and not _STARTS.search(before)) or not re.match(r"\s+\w", after)
        return not before.endswith("'")

    def _han(self, at: int) -> tuple[Token | None, int]:
        text = self.text
        if at >= self._plain and (looks := chinese.NOT_NEGATION.match(text, at)):
            self._plain = looks.end()
        if at >= self._plain and (match := chinese.NEGATION.match(text, at)):
            return self._denied(match.end(), bool(chinese.FORBIDS.match(match.group())))
        if match := chinese.NAMED.match(text, at):
            end = match.end(match.lastgroup or 0)
            return Token(text[at:end], "name", text[at:end], self._clause, start=at, end=end), end
        if found_words := self._synonyms.get(at):
            word, end = found_words
            return Token(word, "word", word, self._clause, chinese.SYNONYM_GROUPS[word], start=at, end=end), end
        if match := _FUNCTION.match(text, at):
            return None, match.end()
        return Token(text[at], "han", text[at], self._clause, start=at, end=at + 1), at + 1

    @cached_property
    def _synonyms(self) -> dict[int, tuple[str, int]]:
        words = chinese.synonym_words(self.text)
        return {start: (word, end) for start, end, word in words if len(word) > 1}


def _listed(found: Quantity | None) -> list[Quantity]:
    return [found] if found else []


def _with_shared_units(text: str, tokens: list[Token]) -> list[Token]:
    """The unit of a span's end is that of its beginning: 3 to 5 percent, 2 to 5 pm."""
    shared = list(tokens)
    for i in range(len(tokens) - 2, -1, -1):
        first, last = tokens[i], shared[i + 1]
        if first.kind != "number" or first.unit or last.kind != "number" or last.unit in ("", "year", "month", "day"):
            continue
        if first.value < 1000 and _SPAN.fullmatch(text[first.end : last.start]):
            later = last.unit == moments.CLOCK and first.value < 12 < last.value and first.value + 12 < last.value
            value = first.value + 12 if later else first.value
            shared[i] = replace(first, key=f"#{value:.15g}", value=value, unit=last.unit)
    return shared


def lowered(raw: str) -> str:
    return raw.lower().removesuffix("'s").replace("-", "")
