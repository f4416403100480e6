"""A sentence as comparable tokens: content words by their stems, Chinese signs, names, and numbers by value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rag.agent.citing import chinese, english

Kind = Literal["word", "name", "number", "han"]

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_FRACTION = re.compile("[¼½¾⅓⅔⅛⅜⅝⅞]")
_NUMBER = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_WORD = re.compile(rf"[^\W\d_{_HAN}]+(?:['’][^\W\d_{_HAN}]+)?")
_BREAK = re.compile(r"[,;:，；：()（）—–。.!?！？“”\"\n|]")
_STARTS = re.compile(r"[.!?:。！？：\"“(（\n|]\s*$")
_CURRENCY = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yuan"}
_CHINESE_UNIT = re.compile("|".join(sorted(map(re.escape, chinese.UNITS), key=len, reverse=True)))
_FUNCTION = re.compile("|".join(map(re.escape, chinese.FUNCTION_WORDS)))
_SCALE = re.compile(r"\s*(hundred|thousand|million|billion|trillion|万|亿)(?![a-z])", re.IGNORECASE)
_SCALES = {**english.SCALES, "万": 1e4, "亿": 1e8}
_PERCENT = re.compile("百分之")
_LATIN_UNIT = re.compile(r"\s*-?\s*(%|per cent\b|[A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class Token:
    """`key` is what equal tokens share; `groups` mark its synonyms. A `number` has its value and unit."""

    key: str
    kind: Kind
    raw: str
    clause: int
    groups: frozenset[str] = frozenset()
    value: float = 0.0
    unit: str = ""
    opens: bool = False

    @property
    def aligned(self) -> str:
        """What stands for it in an alignment: the first of its synonym groups."""
        return min(self.groups) if self.groups else self.key

    def same(self, other: Token) -> bool:
        if self.kind == "number" or other.kind == "number":
            units = not self.unit or not other.unit or self.unit == other.unit
            return self.kind == other.kind and self.value == other.value and units
        return self.key == other.key or bool(self.groups & other.groups)


class Reading:
    """The tokens of `text`; `negated` are the places in `tokens` before which a negation stands."""

    def __init__(self, text: str) -> None:
        self.text = _prepared(text)
        self.tokens: list[Token] = []
        self.negated: list[int] = []
        self._clause = 0
        for token in self._read():
            self.tokens.append(token)

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
    def lowered(self) -> frozenset[str]:
        """Stems of all Latin words, function words too."""
        return frozenset(english.stem(word.group().lower()) for word in _WORD.finditer(self.text))

    @cached_property
    def is_chinese(self) -> bool:
        return bool(re.search(f"[{_HAN}]", self.text))

    def _read(self) -> Iterator[Token]:
        at, text = 0, self.text
        while at < len(text):
            token, at_next = self._next(at)
            if token is not None:
                yield token
            elif at_next == at:
                self._clause += bool(_BREAK.match(text, at))
                at_next = at + 1
            at = at_next

    def _next(self, at: int) -> tuple[Token | None, int]:
        """The token that begins at `at`, if one does, and where to go on; `at` itself where nothing stands."""
        if match := _NUMBER.match(self.text, at):
            value = float(match.group().replace(",", ""))
            return self._number(value, match.start(), match.end())
        if match := _WORD.match(self.text, at):
            return self._word(match)
        if re.match(f"[{_HAN}]", self.text[at]):
            return self._han(at)
        return None, at

    def _number(self, value: float, start: int, end: int, unit: str = "") -> tuple[Token, int]:
        if scale := _SCALE.match(self.text, end):
            value, end = value * _SCALES[scale[1].lower()], scale.end()
        before = self.text[max(0, start - 4) : start].rstrip()
        unit = unit or _CURRENCY.get(before[-1:], "")
        if not unit and (match := _CHINESE_UNIT.match(self.text, end) or _CHINESE_UNIT.match(self.text, end + 1)):
            unit, end = chinese.UNITS[match.group()], match.end()
        elif not unit and (match := _LATIN_UNIT.match(self.text, end)):
            word = match[1].lower().replace("per cent", "percent")
            unit = english.UNITS.get(word, "") or english.UNITS.get(word.removesuffix("s"), "")
            end = match.end() if unit else end
        return Token(f"#{value:g}", "number", self.text[start:end], self._clause, value=value, unit=unit), end

    def _word(self, match: re.Match[str]) -> tuple[Token | None, int]:
        raw, end = match.group(), match.end()
        lower = re.sub(r"['’]s$", "", raw.lower())
        opens = not self.text[: match.start()].strip() or bool(_STARTS.search(self.text[: match.start()]))
        if lower.replace("'", "").replace("’", "") in english.NEGATORS:
            self.negated.append(len(self.tokens))
            return None, end
        if lower in english.MONTHS and self._is_month(match):
            value = float(english.MONTHS[lower])
            return Token(f"#{value:g}", "number", raw, self._clause, value=value, unit="month"), end
        if lower in english.NUMBER_WORDS:
            return self._spelled(lower, match)
        capital = raw[0].isupper() and (not opens or (raw.isupper() and len(raw) > 1))
        if lower in english.FUNCTION_WORDS and not (raw.isupper() and len(raw) > 1):
            return None, end
        key = english.stem(lower)
        kind: Kind = "name" if capital else "word"
        groups = english.SYNONYM_GROUPS.get(key, frozenset()) if kind == "word" else frozenset()
        return Token(key, kind, raw, self._clause, groups, opens=opens and raw[0].isupper()), end

    def _is_month(self, match: re.Match[str]) -> bool:
        """March and May are also words: a month begins with a capital, and these two stand beside a number."""
        beside = self.text[max(0, match.start() - 6) : match.start()] + self.text[match.end() : match.end() + 6]
        return match.group()[0].isupper() and (match.group() not in ("March", "May") or bool(re.search(r"\d", beside)))

    def _spelled(self, word: str, match: re.Match[str]) -> tuple[Token, int]:
        """Twenty-five, two hundred."""
        value, end = english.NUMBER_WORDS[word], match.end()
        if 20 <= value < 100 and (unit := re.match(r"[\s-]([a-z]+)\b", self.text[end:])):
            ones = 1.0 if unit[1] == "one" else english.NUMBER_WORDS.get(unit[1], 0.0)
            if 0 < ones < 10:
                return self._number(value + ones, match.start(), end + unit.end())
        return self._number(value, match.start(), end)

    def _han(self, at: int) -> tuple[Token | None, int]:
        text = self.text
        if match := _PERCENT.match(text, at):
            digits = _NUMBER.match(text, match.end())
            signs = chinese.NUMERAL.match(text, match.end())
            value = float(digits.group()) if digits else chinese.numeral(signs.group()) if signs else None
            found = digits or signs
            if value is not None and found:
                return self._number(value, at, found.end(), "%")
        plain = chinese.NO_NUMERAL.match(text, at) or chinese.NOT_NEGATION.match(text, at)
        if plain is None and (match := chinese.NUMERAL.match(text, at)) and not self._is_article(match):
            value = chinese.numeral(match.group())
            if value is not None:
                return self._number(value, at, match.end())
        if plain is None and (match := chinese.NEGATION.match(text, at)):
            self.negated.append(len(self.tokens))
            return None, match.end()
        if found_words := self._synonyms.get(at):
            word, end = found_words
            return Token(word, "word", word, self._clause, chinese.SYNONYM_GROUPS[word]), end
        if match := _FUNCTION.match(text, at):
            return None, match.end()
        return Token(text[at], "han", text[at], self._clause), at + 1

    def _is_article(self, match: re.Match[str]) -> bool:
        beside = self.text[match.end() : match.end() + 1]
        ordinal = self.text[max(0, match.start() - 1) : match.start()] == "第"
        return match.group() == "一" and beside not in ("月", "日", "年", "世") and not ordinal

    @cached_property
    def _synonyms(self) -> dict[int, tuple[str, int]]:
        words = chinese.synonym_words(self.text)
        return {start: (word, end) for start, end, word in words if len(word) > 1}


def _prepared(text: str) -> str:
    """Without Markdown and compatibility forms; ½ becomes .5."""
    text = _FRACTION.sub(_decimal, text)
    text = unicodedata.normalize("NFKC", text)
    return re.sub(r"\*\*|__|`|^\s*#{1,6}\s+|^\s*[-*+•]\s+", "", text, flags=re.MULTILINE)


def _decimal(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()]
    value = f"{unicodedata.numeric(match.group()):.3g}"
    return value[1:] if before.isdecimal() else value


def squash(text: str) -> str:
    """Letters and digits alone, so that quotes match whatever became of white space, marks and Markdown."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).lower()
