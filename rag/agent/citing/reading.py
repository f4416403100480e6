"""A sentence as comparable tokens: content words by their stems, Chinese signs, names, and numbers by value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from rag import text as script
from rag.agent.citing import bounds, chinese, english, moments, numerals, quantities
from rag.agent.citing.letters import HAN, plain, squash, without_markdown
from rag.agent.citing.measures import same_amount
from rag.agent.citing.moments import Quantity

__all__ = ["Reading", "Token", "squash"]

Kind = Literal["word", "name", "number", "han"]

_PREFIX = r"(?:(?:non|anti|counter|un|dis|mis|pre|post|ex|semi|pro|sub|bi)-)?"
_WORD = re.compile(rf"{_PREFIX}[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)?[+#]*", re.IGNORECASE)
_BREAK = re.compile(r"[,;:，；：()（）—。.!?！？“”\"\n|]|(?<=\s)-(?=\s)")
_STARTS = re.compile(r"[.!?:。！？：\"“(（\n|]\s*$")
_DOTTED = re.compile(r"\b(?:[A-Z]\.){2,}")
_FUNCTION = re.compile("|".join(map(re.escape, chinese.FUNCTION_WORDS)))
_HAN_SIGN = re.compile(f"[{HAN}]")
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


class Reading:
    """The tokens of `text`; `negated` are the places in `tokens` before which a negation stands.

    `forbidden` are those of them where something is prohibited: by a word that may stand behind it, too.
    """

    def __init__(self, text: str) -> None:
        self.text = _prepared(text)
        self.tokens: list[Token] = []
        self.negated: list[int] = []
        self.forbidden: set[int] = set()
        self._clause = 0
        self._plain = 0  # up to here stands a word that only looks like a denial
        for token in self._read():
            self.tokens.append(token)
        self.tokens = _with_shared_units(self.text, self.tokens)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(token.key for token in self.tokens)

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset(mark for token in self.tokens for mark in token.groups)

    @cached_property
    def numbers(self) -> list[Token]:
        return [token for token in self.tokens if token.kind == "number"]

    @cached_property
    def pairs(self) -> frozenset[str]:
        """Neighbouring Chinese signs, function words left out."""
        following = zip(self.tokens, self.tokens[1:], strict=False)
        return frozenset(a.key + b.key for a, b in following if a.kind == b.kind == "han")

    @cached_property
    def unbound(self) -> str:
        """The text without the words that bound its numbers."""
        return bounds.BOUND.sub(" ", self.text)

    @cached_property
    def lowered(self) -> frozenset[str]:
        """Stems of all Latin words, function words too."""
        return frozenset(english.stem(_lower(word.group())) for word in _WORD.finditer(self.unbound))

    @cached_property
    def is_chinese(self) -> bool:
        return script.is_chinese(self.text)

    @cached_property
    def has_han(self) -> bool:
        return bool(_HAN_SIGN.search(self.text))

    def _read(self) -> Iterator[Token]:
        at, text = 0, self.text
        while at < len(text):
            tokens, at_next = self._next(at)
            yield from tokens
            if not tokens and at_next == at:
                self._clause += bool(_BREAK.match(text, at))
                at_next = at + 1
            at = at_next

    def _next(self, at: int) -> tuple[list[Token], int]:
        """The tokens that begin at `at`, if any do, and where to go on; `at` itself where nothing stands."""
        if skipped := bounds.BOUND.match(self.text, at) or quantities.SIGN.match(self.text, at):
            return [], skipped.end()
        if found := self._quantities(at):
            return [self._numbered(one) for one in found], found[-1].end
        if match := _WORD.match(self.text, at):
            token, end = self._word(match)
        elif _HAN_SIGN.match(self.text, at):
            token, end = self._han(at)
        else:
            return [], at
        return [token] if token else [], end

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
        known = self._half_before(at)
        return _listed(
            (moments.clock(text, at, known) if digit else moments.weekday(text, at))
            or moments.chinese_clock(text, at, known)
            or (quantities.in_digits(text, at) if digit or text[at] == "." else None)
            or moments.named_clock(text, at)
            or (self._month(at) if text[at].isupper() else None)
            or (quantities.in_words(text, at) if text[at].isascii() else quantities.in_chinese(text, at))
        )

    def _half_before(self, at: int) -> str:
        last = self.tokens[-1] if self.tokens else None
        if last is None or last.unit != moments.CLOCK or not _RANGE.fullmatch(self.text[last.end : at]):
            return ""
        return moments.half_of(Quantity(last.start, last.end, last.value, last.unit))

    def _month(self, at: int) -> Quantity | None:
        match = _WORD.match(self.text, at)
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
        lower = _lower(raw)
        opens = not self.text[: match.start()].strip() or bool(_STARTS.search(self.text[: match.start()]))
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
        return Token(key, kind, raw, self._clause, groups, opens=opens and raw[0].isupper(), start=start, end=end), end

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


def _lower(raw: str) -> str:
    return re.sub(r"'s$", "", raw.lower()).replace("-", "")


def _prepared(text: str) -> str:
    """Without Markdown and compatibility forms; U.S. becomes US."""
    return _DOTTED.sub(lambda match: match.group().replace(".", ""), without_markdown(plain(text)))
