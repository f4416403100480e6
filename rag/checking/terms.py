"""Terms of a text for comparison: stems, Chinese characters, normalised values, and signs such as < and →."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

from rag.patterns import lazy_regex
from rag.quantities.detection import find_sign, find_values, normalise
from rag.quantities.numerals import HAN
from rag.quantities.values import Value
from rag.text import sentence_spans, strip_struck

Kind = Literal["word", "name", "number", "han", "sign", "function"]

_TOKEN = lazy_regex(
    rf"(?P<word>(?:[^\W\d_{HAN}]\.){{2,}}|[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)*[+#]*)|(?P<han>[{HAN}])|(?P<break>[,;:()，；：（）。.!?！？\n])"
)
_FUNCTION_WORDS: Final = frozenset(
    """a an the of in on at to for from by with and or but as is are was were be been being it its this that these
    those he she his her they their there which who whom whose what when where while also no not never can could may
    might will would should do does did has have had than then so such into about over under after before during between
    more most other some any all each both only very i you we our your my me us if because however yes""".split()
)
_FUNCTION_SIGNS: Final = frozenset("的了是在和与也都就着吗呢吧啊之而及或把被")
_NEGATIONS: Final = frozenset("no not never without none neither nor cannot 不 没 未".split())
_CONJUNCTIONS: Final = frozenset("and but or while which who where 而 并 且".split())
_ENDINGS: Final = ("ing", "ed", "ies", "es", "s", "ly")
_START = lazy_regex(r"(?:^|[.!?:\"“\n*•>|#-])\s{0,4}$")
_QUOTE: Final = lazy_regex(r"(?:^|\n)[ \t]*>$")
_HAN_CHAR: Final = lazy_regex(f"[{HAN}]")


@dataclass(frozen=True, slots=True)
class Term:
    """A word, sign or value of a text: `letters` as written, and `key`, which all of its forms share.

    `clause` is the number of the clause, `is_opening` is true in a clause's first unbroken run of content words;
    `value` is set for a number, a date or an identifier.
    """

    letters: str
    key: str
    kind: Kind
    clause: int
    is_opening: bool = False
    value: Value | None = None

    @property
    def is_explicit(self) -> bool:
        """True for a clear value: in digits, or with a unit."""
        return self.value is not None and self.value.is_explicit


class Terms:
    """The `tokens` of a text in order; `terms` are those with content, `negations` counts its negations."""

    def __init__(self, text: str) -> None:
        reader = _Reader(normalise(text))
        self.tokens = tuple(reader.tokens())
        self.negations = reader.negations
        self.terms = tuple(token for token in self.tokens if token.kind != "function")
        self.values = [term.value for term in self.terms if term.value]
        self.signs = {term.key for term in self.terms if term.kind == "sign"}
        self.is_table_row = text.lstrip().startswith("|")


@lru_cache(maxsize=2048)
def read_terms(text: str) -> Terms:
    """Return the terms of a sentence; cached, since passages recur."""
    return Terms(text)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.negations = 0
        self._clause = 0
        self._run = 0  # 0: before, 1: in, 2: after the first run of content words

    def tokens(self) -> Iterator[Term]:
        place = 0
        for value in find_values(self._text):
            yield from self._read_between(place, value.start)
            in_han = _HAN_CHAR.match(self._text, value.start) and not value.is_explicit
            yield self._make_term(value.key, value.key, "han" if in_han else "number", value)
            place = max(place, value.end)
        yield from self._read_between(place, len(self._text))

    def _read_between(self, place: int, end: int) -> Iterator[Term]:
        while place < end:
            if token := _TOKEN.match(self._text, place, end):
                yield from self._read_token(token)
                place = token.end()
            else:
                if (sign := find_sign(self._text[place])) and not _QUOTE.search(
                    self._text, max(0, place - 8), place + 1
                ):
                    yield self._make_term(sign, sign, "sign")
                place += 1

    def _read_token(self, token: re.Match[str]) -> Iterator[Term]:
        word = token.group()
        lower = word.lower().removesuffix("'s")
        self.negations += lower in _NEGATIONS or lower.endswith("n't")
        if token["break"] or lower in _CONJUNCTIONS:
            self._clause, self._run = self._clause + 1, 0
        elif lower in _FUNCTION_WORDS or lower in _FUNCTION_SIGNS:
            self._run = 2 if self._run else 0
        elif token["han"]:
            yield self._make_term(word, word, "han")
            return
        elif len(lower) > 1 or word.isupper():
            named = word[0].isupper() and not _START.search(self._text[max(0, token.start() - 4) : token.start()])
            yield self._make_term(lower, stem(lower), "name" if named else "word")
            return
        if not token["break"]:
            yield Term(lower, lower, "function", self._clause)

    def _make_term(self, letters: str, key: str, kind: Kind, value: Value | None = None) -> Term:
        self._run = self._run or 1
        return Term(letters, key, kind, self._clause, self._run == 1, value)


def stem(word: str) -> str:
    """Return a form that a word shares with its inflections; not always a word itself."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    word = word[:-1] if len(word) > 3 and word.endswith("e") else word
    word = f"{word[:-1]}y" if len(word) > 3 and word.endswith("i") else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


class TokenIndex:
    """A searchable index of the tokens of a text by sentence."""

    def __init__(self, sentences: Sequence[str]) -> None:
        sentence_letters = [_join_letters(read_terms(sentence)) for sentence in sentences]
        self._text = "\n" + "".join(sentence_letters)
        self._ends = list(accumulate(map(len, sentence_letters)))

    def places(self, phrase: Terms) -> Iterator[tuple[int, int, bool]]:
        """Yield the first and last sentence of each occurrence of `phrase`, and True if it is whole sentences."""
        pattern = "\n" + _join_letters(phrase)
        place = self._text.find(pattern) if phrase.tokens else -1
        while place >= 0:
            end = place + len(pattern) - 1
            first, last = bisect_right(self._ends, place), bisect_left(self._ends, end)
            yield first, last, place in (0, *self._ends[first - 1 : first]) and self._ends[last] == end
            place = self._text.find(pattern, place + 1)


def occurs_in(phrase: str, text: str) -> bool:
    """Return True if `text` contains the tokens of `phrase` in a row; a value matches with or without its unit: 5 and
    5 °C are in "it was 5 °C", but not in "it was −5 °C"."""
    tokens, text_tokens = read_terms(phrase).tokens, read_terms(text).tokens
    starts = range(len(text_tokens) - len(tokens) + 1) if tokens else ()
    return any(all(map(_matches, tokens, text_tokens[start:])) for start in starts)


def _matches(token: Term, other: Term) -> bool:
    if token.value is not None and other.value is not None:
        return token.value.matches(other.value)
    return token.letters == other.letters


def find_sentences(phrase: str, page: str) -> str:
    """Return the page's sentences that contain `phrase`, or an empty string."""
    spans = sentence_spans(page)
    index = TokenIndex([strip_struck(page, start, end) for start, end in spans])
    first, last, _ = next(index.places(read_terms(phrase)), (-1, -1, False))
    return page[spans[first][0] : spans[last][1]] if first >= 0 else ""


def _join_letters(terms: Terms) -> str:
    return "".join(f"{token.letters}\n" for token in terms.tokens)
