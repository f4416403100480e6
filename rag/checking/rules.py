"""Judge by rules if sentences support a statement: the part of it that they have, and what plainly differs.

A statement is worth the share of its content words that are in the best one to three sentences of a passage; names,
and numbers in digits or with a unit, count double. Rules can see that something was not found. They cannot see
contradictions, except in values and signs: if a sentence is close to a statement, another value in the same place
means something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import starmap
from operator import or_
from typing import Final

from rag.checking.terms import Term, Terms, TokenIndex, read
from rag.text import is_chinese, sentence_spans, without_struck
from rag.types import Passage, Verdict

_RIVALS: Final = ("<>≤≥=≠", "←→↑↓↔", "✓✗✔✘☑☒✅❌")
_BLANK: Final = "\t"
_LONGEST_NAME: Final = 6  # tokens of a name that changes places
_JOINS: Final = frozenset("and or & 和 与 及 或".split())


def is_replaced(said: Form, sentences: Iterable[Form]) -> bool:
    """Return True if a sentence is the statement word for word, except for a value or sign of another meaning."""
    if not said.blanks:
        return False
    found = [pairs for sentence in sentences if (pairs := said.beside(sentence)) is not None]
    return bool(found) and all(any(starmap(_differ, pairs)) for pairs in found)


class Form:
    """A text with blanks in the place of its values and signs; those that stand together share one."""

    def __init__(self, text: Terms) -> None:
        self.blanks: list[list[Term]] = []
        self.tabular = text.tabular
        letters: list[str] = []
        for token in text.tokens:
            if token.value is None and token.kind != "sign":
                letters.append(token.letters)
            elif letters[-1:] == [_BLANK]:
                self.blanks[-1].append(token)
            else:
                letters.append(_BLANK)
                self.blanks.append([token])
        self.words = "".join(f"{word}\n" for word in letters)

    def beside(self, other: Form) -> list[tuple[list[Term], list[Term]]] | None:
        """The contents of both texts' blanks if this is a part of the other, or else None."""
        at = f"\n{other.words}".find(f"\n{self.words}")
        if at < 0:
            return None
        start = other.words[:at].count(f"{_BLANK}\n")
        return list(zip(self.blanks, other.blanks[start:], strict=False))


def _differ(mine: Sequence[Term], theirs: Sequence[Term]) -> bool:
    """Return True if one of mine is missing from theirs, and one of theirs that could replace it from mine."""
    signs, their_signs = ({term.key for term in some if term.kind == "sign"} for some in (mine, theirs))
    if any((signs - their_signs) & set(some) and (their_signs - signs) & set(some) for some in _RIVALS):
        return True
    values, others = ([term.value for term in some if term.value] for some in (mine, theirs))
    if len(values) == len(others):
        return any(
            one.rivals(two) and not one.stands(two, copied=True) for one, two in zip(values, others, strict=True)
        )
    left = [value for value in values if not any(value.stands(other, copied=True) for other in others)]
    over = [other for other in others if not any(value.stands(other, copied=True) for value in values)]
    return any(value.rivals(other) for value in left for other in over)


def is_exchanged(said: Terms, sentence: Terms) -> bool:
    """Return True if it is the sentence, or a part of it, with two names or values exchanged."""
    mine = [token.letters for token in said.tokens]
    theirs = [token.letters for token in sentence.tokens]
    if mine == theirs or Counter(mine) - Counter(theirs):
        return False
    for start in range(len(theirs) - len(mine) + 1):
        part = theirs[start : start + len(mine)]
        first = next((at for at, token in enumerate(mine) if token != part[at]), len(mine))
        last = next((at for at in range(len(mine), 0, -1) if mine[at - 1] != part[at - 1]), 0)
        if first < last and _are_swapped(said.tokens[first:last], mine[first:last], part[first:last], said):
            return True
    return False


def _are_swapped(tokens: Sequence[Term], mine: Sequence[str], theirs: Sequence[str], said: Terms) -> bool:
    """Return True if one is X M Y and the other Y M X, X and Y are no phrases, and M does not just join a list."""
    for left in range(1, min(_LONGEST_NAME, len(mine) - 1) + 1):
        for right in range(1, min(_LONGEST_NAME, len(mine) - left - 1) + 1):
            end = len(mine) - right
            ends_change = mine[end:] == theirs[:right] and mine[:left] == theirs[-left:]
            if ends_change and mine[left:end] == theirs[right : len(theirs) - left]:
                phrases = any(token.kind == "function" for token in (*tokens[:left], *tokens[end:]))
                return not phrases and not _is_list(tokens[left:end], said)
    return False


def _is_list(middle: Sequence[Term], said: Terms) -> bool:
    """Return True if it has only conjunctions and whole parts of a list."""
    sizes = Counter(term.clause for term in said.terms)
    return all(token.letters in _JOINS or (token.kind != "function" and sizes[token.clause] == 1) for token in middle)


SUPPORTED: Final = 0.54
"""The share from which on a statement is taken as borne out: a sixth of what models say truly falls below it."""
PARTLY: Final = 0.2
_LONGEST: Final = 3  # neighbouring sentences that a statement may sum up
_FURTHER: Final = 0.75  # of a word that each further sentence must bring
_ELSEWHERE: Final = 0.3  # of a word that stands in another sentence than those that are quoted
_CLOSE: Final = 0.75  # from here on the sentences speak of the same, and what plainly differs tells
_COPIED: Final = 0.9
_DOUBTED: Final = 0.99 * SUPPORTED  # what a full share is still worth where something plainly does not stand there


@dataclass(frozen=True, slots=True)
class Finding:
    """`score` (0 to 1) orders statements by how well they are borne out; `reason` as in Statement."""

    verdict: Verdict
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a statement stands in the sentences `first` to `last`: bits of its terms."""

    words: int
    first: int = 0
    last: int = 0


class Said:
    """A statement, read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.read: Terms = read(text)
        self.form = Form(self.read)
        self.terms: list[Term] = list({term.key: term for term in self.read.terms}.values())
        self.chinese = is_chinese(text)
        self._double = sum(1 << i for i, term in enumerate(self.terms) if term.kind == "name" or term.written)
        self._whole = self._weight((1 << len(self.terms)) - 1)
        self.words = sum(1 << i for i, term in enumerate(self.terms) if term.kind in ("word", "han") and not term.value)

    def share(self, words: int, elsewhere: int = 0, further: int = 0) -> float:
        """How much of the statement some quotes hold, 0 to 1, less what makes up for so many further sentences."""
        there = self._weight(words) + _ELSEWHERE * self._weight(elsewhere & ~words) - _FURTHER * further
        return max(0.0, there / self._whole) if self._whole else 0.0

    def _weight(self, words: int) -> int:
        return words.bit_count() + (words & self._double).bit_count()


class Evidence:
    """A passage's sentences, to look statements up in."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = [read(sentence) for sentence in sentences]
        self.chinese = is_chinese("".join(sentences))
        self._values = [(value, place) for place, s in enumerate(self.sentences) for value in s.values]
        self._words: dict[str, set[int]] = {}
        for place, sentence in enumerate(self.sentences):
            for term in sentence.terms:
                self._words.setdefault(term.key, set()).add(place)

    @cached_property
    def forms(self) -> list[Form]:
        return [Form(sentence) for sentence in self.sentences]

    def places(self, term: Term) -> Iterable[int]:
        """The sentences in which it stands."""
        found = self._words.get(term.key, ())
        if term.value and not found:
            return [place for value, place in self._values if term.value.stands(value)]
        return found

    def best(self, said: Said) -> Coverage:
        """The one to three neighbouring sentences that hold most of the statement."""
        words = [0] * len(self.sentences)
        for i, term in enumerate(said.terms):
            for place in self.places(term):
                words[place] |= 1 << i
        return max(
            _windows(words),
            key=lambda held: said.share(held.words, further=held.last - held.first),
            default=Coverage(0),
        )

    def words(self, said: Said) -> int:
        """Bits of the statement's terms that are in any of its sentences."""
        return sum(1 << i for i, term in enumerate(said.terms) if any(True for _ in self.places(term)))


def _windows(words: Sequence[int]) -> Iterable[Coverage]:
    for first in range(len(words)):
        held = 0
        for last in range(first, min(first + _LONGEST, len(words))):
            held |= words[last]
            yield Coverage(held, first, last)


def judge(said: Said, quotes: Sequence[Quote], named: Sequence[Evidence]) -> Finding:
    """What some quotes are worth to the statement together; `named` are all passages that it may rest on."""
    alike = any((quote.held.words & said.words).bit_count() > 1 for quote in quotes)
    if all(one.chinese != said.chinese for one in named) and not alike:
        return _across_languages(said, named)
    share = support_score(said, quotes, named)
    reason = _against(said, share, [sentence for quote in quotes for sentence in quote.sentences], named)
    share = round(share * _DOUBTED if reason else share, 4)
    verdict: Verdict = "supported" if share >= SUPPORTED else "partly" if share >= PARTLY else "unsupported"
    return Finding(verdict, share, reason or ("nothing_close" if verdict == "unsupported" else "words"))


def support_score(said: Said, quotes: Sequence[Quote], named: Sequence[Evidence] = ()) -> float:
    """How much of the statement some quotes hold together, in as few sentences as possible."""
    words, elsewhere = reduce(or_, (quote.held.words for quote in quotes)), 0
    for evidence in named:
        elsewhere |= evidence.words(said)
    return said.share(words, elsewhere, sum(quote.held.last - quote.held.first + 1 for quote in quotes) - 1)


def missing_numbers(said: Said, named: Sequence[Evidence]) -> bool:
    """Return True if a value is in no passage: neither as written, nor converted, nor rounded."""
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
    if missing_numbers(said, named) or is_replaced(said.form, (form for one in named for form in one.forms)):
        return "numbers"
    denies, denied = bool(said.read.denials), any(sentence.denials for sentence in sentences)
    if (denies and not denied and share >= _CLOSE) or (
        denied and not denies and share >= _COPIED and len(sentences) == 1
    ):
        return "negation"
    moved = share >= _CLOSE and not said.chinese and any(_moved(said, sentence) for sentence in sentences)
    if moved or any(is_exchanged(said.read, sentence) for sentence in sentences) or missing_clause(said, named):
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
    held: Coverage
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
        return Evidence([self._valid(start, end) for start, end in self.spans])

    def _valid(self, start: int, end: int) -> str:
        """A sentence without what is struck out; a row of a table that began further up, with its header."""
        before, text = self.passage.text[:end], without_struck(self.passage.text, start, end)
        goes_on = self.passage.header and before.startswith("|") and "\n\n" not in before
        return f"{text} {self.passage.header}" if goes_on else text

    @cached_property
    def _tokens(self) -> TokenIndex:
        return TokenIndex([without_struck(self.passage.text, start, end) for start, end in self.spans])

    def best(self, said: Said) -> Quote:
        """The sentence, or the few neighbouring ones, that bear `said` out best; all of it where none does."""
        if said.terms and (verbatim := self._verbatim(said)):
            return verbatim
        held = self.evidence.best(said)
        if not held.words:
            return Quote(self, 0, len(self.passage.text), held)
        return Quote(self, self.spans[held.first][0], self.spans[held.last][1], held)

    def _verbatim(self, said: Said) -> Quote | None:
        """Whole sentences that are the statement, token by token."""
        for first, last, whole in self._tokens.places(said.read):
            if whole:
                return Quote(self, self.spans[first][0], self.spans[last][1], Coverage(0, first, last), verbatim=True)
        return None
