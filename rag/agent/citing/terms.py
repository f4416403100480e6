"""A text as what is compared: its content words by their stems, Chinese signs, and numbers by what they amount to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from rag.agent.citing.numbers import MONTHS, NUMBER, Number, read_number

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
