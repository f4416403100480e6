"""A text as what is compared: its content words by their stems, Chinese signs, values by what they amount to, and
signs such as < and →.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

from rag.quantities.reading import HAN, find_values, normalised, sign_of
from rag.quantities.values import Value
from rag.text import sentence_spans, without_struck

Kind = Literal["word", "name", "number", "han", "sign", "function"]

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
_QUOTED: Final = re.compile(r"(?:^|\n)[ \t]*>$")
_HAN_CHAR: Final = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True)
class Term:
    """A word, sign or value of a text: `letters` to the letter, and `key` what it shares with its other forms.

    `clause` counts the clauses, `opens` says that it stands in a clause's first unbroken run of content words; `value`
    is what a number, a date or an identifier amounts to.
    """

    letters: str
    key: str
    kind: Kind
    clause: int
    opens: bool = False
    value: Value | None = None

    @property
    def written(self) -> bool:
        """True for what is plainly meant as a value: in digits, or with a unit."""
        return self.value is not None and self.value.written


class Terms:
    """A text as the `tokens` of it that mean anything, in order; `terms` are those with content, `denials` counts its
    negations."""

    def __init__(self, text: str) -> None:
        reader = _Reader(normalised(text))
        self.tokens = tuple(reader.tokens())
        self.denials = reader.denials
        self.terms = tuple(token for token in self.tokens if token.kind != "function")
        self.values = [term.value for term in self.terms if term.value]
        self.signs = {term.key for term in self.terms if term.kind == "sign"}
        self.tabular = text.lstrip().startswith("|")


@lru_cache(maxsize=2048)
def read(text: str) -> Terms:
    """The terms of a sentence, remembered: passages come again."""
    return Terms(text)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.denials = 0
        self._clause = 0
        self._opening = 0  # 0: not begun, 1: within the first run of content words, 2: behind it

    def tokens(self) -> Iterator[Term]:
        at = 0
        for value in find_values(self._text):
            yield from self._between(at, value.start)
            in_han = _HAN_CHAR.match(self._text, value.start) and not value.written
            yield self._term(value.key, value.key, "han" if in_han else "number", value)
            at = max(at, value.end)
        yield from self._between(at, len(self._text))

    def _between(self, at: int, end: int) -> Iterator[Term]:
        while at < end:
            if token := _TOKEN.match(self._text, at, end):
                yield from self._of(token)
                at = token.end()
            else:
                if (sign := sign_of(self._text[at])) and not _QUOTED.search(self._text, max(0, at - 8), at + 1):
                    yield self._term(sign, sign, "sign")
                at += 1

    def _of(self, token: re.Match[str]) -> Iterator[Term]:
        word = token.group()
        lower = word.lower().removesuffix("'s")
        self.denials += lower in _DENIES or lower.endswith("n't")
        if token["break"] or lower in _JOINS:
            self._clause, self._opening = self._clause + 1, 0
        elif lower in _FUNCTION_WORDS or lower in _FUNCTION_SIGNS:
            self._opening = 2 if self._opening else 0
        elif token["han"]:
            yield self._term(word, word, "han")
            return
        elif len(lower) > 1 or word.isupper():
            named = word[0].isupper() and not _BEGINS.search(self._text[max(0, token.start() - 4) : token.start()])
            yield self._term(lower, stem(lower), "name" if named else "word")
            return
        if not token["break"]:
            yield Term(lower, lower, "function", self._clause)

    def _term(self, letters: str, key: str, kind: Kind, value: Value | None = None) -> Term:
        self._opening = self._opening or 1
        return Term(letters, key, kind, self._clause, self._opening == 1, value)


def stem(word: str) -> str:
    """A form that a word shares with its inflections; not always a word itself."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    word = word[:-1] if len(word) > 3 and word.endswith("e") else word
    word = f"{word[:-1]}y" if len(word) > 3 and word.endswith("i") else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


class TokenIndex:
    """The tokens of a text, sentence by sentence."""

    def __init__(self, sentences: Sequence[str]) -> None:
        joined = [_joined(read(sentence)) for sentence in sentences]
        self._text = "\n" + "".join(joined)
        self._ends = list(accumulate(map(len, joined)))

    def places(self, said: Terms) -> Iterator[tuple[int, int, bool]]:
        """The first and last sentence of each place with the tokens of `said` in a row, and True if these are the
        whole sentences."""
        sought = "\n" + _joined(said)
        at = self._text.find(sought) if said.tokens else -1
        while at >= 0:
            end = at + len(sought) - 1
            first, last = bisect_right(self._ends, at), bisect_left(self._ends, end)
            yield first, last, at in (0, *self._ends[first - 1 : first]) and self._ends[last] == end
            at = self._text.find(sought, at + 1)


def stands_in(said: str, text: str) -> bool:
    """Return True if `text` has the words of `said` in a row, and its values with or without their units: 5 and 5 °C
    are in "it was 5 °C", and not in "it was −5 °C"."""
    mine, theirs = read(said).tokens, read(text).tokens
    starts = range(len(theirs) - len(mine) + 1) if mine else ()
    return any(all(map(_says, mine, theirs[start:])) for start in starts)


def _says(mine: Term, theirs: Term) -> bool:
    if mine.value is not None and theirs.value is not None:
        return mine.value.stands(theirs.value)
    return mine.letters == theirs.letters


def whole_sentences(said: str, page: str) -> str:
    """Return the page's own sentences that contain `said`, or an empty text."""
    spans = sentence_spans(page)
    index = TokenIndex([without_struck(page, start, end) for start, end in spans])
    first, last, _ = next(index.places(read(said)), (-1, -1, False))
    return page[spans[first][0] : spans[last][1]] if first >= 0 else ""


def _joined(terms: Terms) -> str:
    return "".join(f"{token.letters}\n" for token in terms.tokens)
