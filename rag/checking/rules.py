"""Whether sentences bear a statement out, by rules: what of it stands there, and what plainly does not.

A statement is worth the share of its content words, and of its neighbouring pairs of them, that stand in the best
one to three sentences of a passage; names and numbers count double. Pairs tell a sentence that was taken over from
one that only shares its words. Rules can see that something was not found. They cannot see what contradicts it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from operator import or_
from typing import Final, Protocol

from rag.checking.terms import HAN, Term, Terms, read
from rag.text import is_chinese, sentence_spans
from rag.types import Passage, Verdict

SUPPORTED: Final = 0.45
"""The share from which on a statement is taken as borne out: a sixth of what models say truly falls below it."""
PARTLY: Final = 0.2
_PAIRS: Final = 0.5  # what neighbouring pairs count beside the words themselves
_LONGEST: Final = 3  # neighbouring sentences that a statement may sum up
_SHORTER: Final = 0.05  # by how much more a longer quote, or one more, must hold
_CLOSE: Final = 0.6  # from here on the sentences speak of the same, and what plainly differs tells
_COPIED: Final = 0.9
_DOUBTED: Final = 0.99 * SUPPORTED  # what a full share is still worth where something plainly does not stand there
_LETTERS = re.compile(rf"[+-]?\d+(?:[.,:/]\d+)*%?|[^\W\d_{HAN}]+[+#]*|[{HAN}]|[%$€£¥°]")


@dataclass(frozen=True, slots=True)
class Finding:
    """`score` (0 to 1) orders statements by how well they are borne out; `reason` as in Statement."""

    verdict: Verdict
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """What of a statement stands in the sentences `first` to `last`: bits of its terms, and of its pairs."""

    words: int
    pairs: int
    first: int = 0
    last: int = 0


class Quoted(Protocol):
    """Some sentences, and what of a statement they hold."""

    @property
    def held(self) -> Held: ...

    @property
    def sentences(self) -> Sequence[Terms]: ...


class Said:
    """A statement, read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.read: Terms = read(text)
        self.terms: list[Term] = list({term.key: term for term in self.read.terms}.values())
        self.pairs = list(dict.fromkeys((a.key, b.key) for a, b in pairwise(self.read.terms)))
        self.chinese = is_chinese(text)
        self._double = sum(1 << i for i, term in enumerate(self.terms) if term.kind in ("name", "number"))
        self._whole = self._weight((1 << len(self.terms)) - 1)

    def share(self, held: Held) -> float:
        """How much of the statement is held, 0 to 1."""
        if not self._whole:
            return 0.0
        words = self._weight(held.words) / self._whole
        return words if not self.pairs else (1 - _PAIRS) * words + _PAIRS * held.pairs.bit_count() / len(self.pairs)

    def _weight(self, words: int) -> int:
        return words.bit_count() + (words & self._double).bit_count()


class Evidence:
    """A passage's sentences, to look statements up in."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = [read(sentence) for sentence in sentences]
        self.chinese = is_chinese("".join(sentences))
        self._numbers = [(t.number, i) for i, s in enumerate(self.sentences) for t in s.terms if t.number]
        self._words: dict[str, set[int]] = {}
        self._pairs: dict[tuple[str, str], set[int]] = {}
        for place, sentence in enumerate(self.sentences):
            keys = [term.key for term in sentence.terms]
            for key in keys:
                self._words.setdefault(key, set()).add(place)
            for one, other in pairwise(keys):
                self._pairs.setdefault((one, other), set()).add(place)
                self._pairs.setdefault((other, one), set()).add(place)

    def places(self, term: Term) -> Iterable[int]:
        """The sentences in which it stands."""
        found = self._words.get(term.key, ())
        if term.number and not found:
            return [place for number, place in self._numbers if term.number.stands(number)]
        return found

    def best(self, said: Said) -> Held:
        """The one to three neighbouring sentences that hold most of the statement."""
        words, pairs = [0] * len(self.sentences), [0] * len(self.sentences)
        for i, term in enumerate(said.terms):
            for place in self.places(term):
                words[place] |= 1 << i
        for i, pair in enumerate(said.pairs):
            for place in self._pairs.get(pair, ()):
                pairs[place] |= 1 << i
        return max(_windows(words, pairs), key=lambda held: _preferred(said, held), default=Held(0, 0))


def _preferred(said: Said, held: Held) -> float:
    return said.share(held) - _SHORTER * (held.last - held.first)


def _windows(words: Sequence[int], pairs: Sequence[int]) -> Iterable[Held]:
    for first in range(len(words)):
        held, paired = 0, 0
        for last in range(first, min(first + _LONGEST, len(words))):
            held, paired = held | words[last], paired | pairs[last]
            yield Held(held, paired, first, last)


def judge(said: Said, quotes: Sequence[Quoted], named: Sequence[Evidence]) -> Finding:
    """What some quotes are worth to the statement together; `named` are all passages that it may rest on."""
    if all(one.chinese != said.chinese for one in named) and not any(quote.held.pairs for quote in quotes):
        return _across_languages(said, named)
    share = shared(said, quotes)
    reason = _against(said, share, [sentence for quote in quotes for sentence in quote.sentences], named)
    share = share * _DOUBTED if reason else share
    verdict: Verdict = "supported" if share >= SUPPORTED else "partly" if share >= PARTLY else "unsupported"
    score = max(0.0, round(share - _SHORTER * (len(quotes) - 1), 4))
    return Finding(verdict, score, reason or ("nothing_close" if verdict == "unsupported" else "words"))


def shared(said: Said, quotes: Sequence[Quoted]) -> float:
    """How much of the statement some quotes hold together."""
    words, pairs = (reduce(or_, bits) for bits in zip(*((q.held.words, q.held.pairs) for q in quotes), strict=True))
    return said.share(Held(words, pairs))


def worth(said: Said, quotes: Sequence[Quoted]) -> float:
    """The same, less what makes up for each quote but the first."""
    return shared(said, quotes) - _SHORTER * (len(quotes) - 1)


def missing_numbers(said: Said, named: Sequence[Evidence]) -> bool:
    """Whether a number in digits stands in no passage: not its value, nor converted, nor rounded."""
    numbers = (term for term in said.terms if term.written)
    return any(not any(one.places(term) for one in named) for term in numbers)


def missing_clause(said: Said, named: Sequence[Evidence]) -> bool:
    """Whether of a clause nothing stands anywhere, and of all others everything: it was added to what stands there."""
    clauses: dict[int, list[bool]] = {}
    for term in said.terms:
        clauses.setdefault(term.clause, []).append(any(one.places(term) for one in named))
    added = [place for place, found in clauses.items() if len(found) > 1 and not any(found)]
    rest = [there for place, found in clauses.items() if place not in added for there in found]
    return bool(added) and len(rest) > 1 and all(rest)


def _against(said: Said, share: float, sentences: Sequence[Terms], named: Sequence[Evidence]) -> str:
    """What plainly does not stand there: a reason of Statement, or empty."""
    if missing_numbers(said, named):
        return "numbers"
    denies, denied = bool(said.read.denials), any(sentence.denials for sentence in sentences)
    if (denies and not denied and share >= _CLOSE) or (
        denied and not denies and share >= _COPIED and len(sentences) == 1
    ):
        return "negation"
    moved = share >= _CLOSE and not said.chinese and any(_moved(said, sentence) for sentence in sentences)
    if moved or missing_clause(said, named):
        return "clause"
    return ""


def _moved(said: Said, sentence: Terms) -> bool:
    """Whether what the statement opens with stands elsewhere in the sentence than what is said of it there."""
    opening = {term.key for term in said.terms if term.opens and not term.clause}
    rest = {term.key for term in said.terms if not term.clause} - opening
    begins = {term.key for term in sentence.terms if term.opens and not term.clause}
    clauses: dict[int, set[str]] = {}
    for term in sentence.terms:
        clauses.setdefault(term.clause, set()).add(term.key)
    holding = [keys | begins for keys in clauses.values() if rest and rest <= keys]
    stands = any(opening & keys for keys in clauses.values())
    return stands and bool(holding) and not any(opening & keys for keys in holding)


def _across_languages(said: Said, named: Sequence[Evidence]) -> Finding:
    """Words tell nothing there. Numbers, and names in Latin letters, must stand all the same."""
    kept = [term for term in said.terms if term.written or (term.kind == "name" and term.key.isascii())]
    stand = all(any(one.places(term) for one in named) for term in kept)
    return Finding("partly", PARTLY, "language") if stand else Finding("unsupported", 0.0, "nothing_close")


@dataclass(frozen=True, slots=True)
class Quote:
    """`source.passage.text[start:end]`, and what of a statement it holds; `verbatim`: all, to the letter."""

    source: Source
    start: int
    end: int
    held: Held
    verbatim: bool = False

    @property
    def text(self) -> str:
        return self.source.passage.text[self.start : self.end]

    @property
    def sentences(self) -> Sequence[Terms]:
        return self.source.evidence.sentences[self.held.first : self.held.last + 1]


class Source:
    """A passage with its sentences, each read once."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.spans = sentence_spans(passage.text)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence([self.passage.text[start:end] for start, end in self.spans])

    @cached_property
    def _letters(self) -> tuple[str, list[int]]:
        letters = [_letters(self.passage.text[start:end]) for start, end in self.spans]
        return "".join(letters), list(accumulate(map(len, letters)))

    def best(self, said: Said) -> Quote:
        """The sentence, or the few neighbouring ones, that bear `said` out best; all of it where none does."""
        if said.terms and (verbatim := self._verbatim(said.text)):
            return verbatim
        held = self.evidence.best(said)
        if not held.words:
            return Quote(self, 0, len(self.passage.text), held)
        return Quote(self, self.spans[held.first][0], self.spans[held.last][1], held)

    def _verbatim(self, text: str) -> Quote | None:
        """Whole sentences that say this to the letter, whatever became of white space, marks and Markdown."""
        (whole, ends), sought = self._letters, _letters(text)
        at = whole.find(sought) if sought else -1
        first = bisect_left([0, *ends], at)
        last = bisect_left(ends, at + len(sought))
        if at < 0 or [0, *ends][first] != at or ends[last] != at + len(sought):
            return None
        return Quote(self, self.spans[first][0], self.spans[last][1], Held(0, 0, first, last), verbatim=True)


def _letters(text: str) -> str:
    return "".join(f"{letters}\n" for letters in _LETTERS.findall(unicodedata.normalize("NFKC", text).lower()))
