"""Rules that judge whether sentences support a statement, by the terms they share and by clear differences.

A statement's score is the share of its content words in the best one to three sentences of a passage; names, and
numbers in digits or with a unit, count double. Rules detect missing content, but few contradictions: in a sentence that
is close to the statement, another value or sign in the same place, a negation in only one of them, or exchanged parts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, starmap
from operator import or_
from typing import Final, Literal

from rag.quantities.detection import find_sign, find_values, normalise
from rag.quantities.values import HAN, Value
from rag.text import find_list_places, is_chinese, lazy_regex, sentence_spans, strip_struck, unit_spans
from rag.types import Passage, Verdict

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
_CLAUSE_WORDS: Final = frozenset("and but or while which who where 而 并 且".split())
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
        if token["break"] or lower in _CLAUSE_WORDS:
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


_OPPOSITE_SIGNS: Final = ("<>≤≥=≠", "←→↑↓↔", "✓✗✔✘☑☒✅❌")
_BLANK: Final = "\t"
_MAX_NAME_TOKENS: Final = 6  # tokens of a name that is exchanged
_CONJUNCTIONS: Final = frozenset("and or & 和 与 及 或".split())


def has_changed_value(claim: Form, sentences: Iterable[Form]) -> bool:
    """Return True if a sentence is the statement word for word, except for a value or sign with another meaning."""
    if not claim.blanks:
        return False
    matches = [pairs for sentence in sentences if (pairs := claim.align(sentence)) is not None]
    return bool(matches) and all(any(starmap(_differ, pairs)) for pairs in matches)


class Form:
    """A text with blanks in place of its values and signs; adjacent ones share a blank."""

    def __init__(self, text: Terms) -> None:
        self.blanks: list[list[Term]] = []
        self.is_table_row = text.is_table_row
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

    def align(self, other: Form) -> list[tuple[list[Term], list[Term]]] | None:
        """Return the contents of the blanks of both texts if this one is a part of the other, else None."""
        place = f"\n{other.words}".find(f"\n{self.words}")
        if place < 0:
            return None
        start = other.words[:place].count(f"{_BLANK}\n")
        return list(zip(self.blanks, other.blanks[start:], strict=False))


def _differ(mine: Sequence[Term], theirs: Sequence[Term]) -> bool:
    """Return True if each side has a term that the other lacks, and one could replace the other."""
    signs, their_signs = ({term.key for term in some if term.kind == "sign"} for some in (mine, theirs))
    if any((signs - their_signs) & set(some) and (their_signs - signs) & set(some) for some in _OPPOSITE_SIGNS):
        return True
    values, others = ([term.value for term in some if term.value] for some in (mine, theirs))
    if len(values) == len(others):
        return any(
            one.conflicts_with(two) and not one.matches(two, is_quote=True)
            for one, two in zip(values, others, strict=True)
        )
    missing = [value for value in values if not any(value.matches(other, is_quote=True) for other in others)]
    added = [other for other in others if not any(value.matches(other, is_quote=True) for value in values)]
    return any(value.conflicts_with(other) for value in missing for other in added)


def has_swapped_parts(claim: Terms, sentence: Terms) -> bool:
    """Return True if the claim is the sentence, or a part of it, with two names or values exchanged."""
    mine = [token.letters for token in claim.tokens]
    theirs = [token.letters for token in sentence.tokens]
    if mine == theirs or Counter(mine) - Counter(theirs):
        return False
    for start in range(len(theirs) - len(mine) + 1):
        part = theirs[start : start + len(mine)]
        first = next((at for at, token in enumerate(mine) if token != part[at]), len(mine))
        last = next((at for at in range(len(mine), 0, -1) if mine[at - 1] != part[at - 1]), 0)
        if first < last and _are_swapped(claim.tokens[first:last], mine[first:last], part[first:last], claim):
            return True
    return False


def _are_swapped(tokens: Sequence[Term], mine: Sequence[str], theirs: Sequence[str], claim: Terms) -> bool:
    """Return True for X M Y against Y M X if X and Y are not phrases, and M does not just join a list."""
    for left in range(1, min(_MAX_NAME_TOKENS, len(mine) - 1) + 1):
        for right in range(1, min(_MAX_NAME_TOKENS, len(mine) - left - 1) + 1):
            end = len(mine) - right
            ends_change = mine[end:] == theirs[:right] and mine[:left] == theirs[-left:]
            if ends_change and mine[left:end] == theirs[right : len(theirs) - left]:
                phrases = any(token.kind == "function" for token in (*tokens[:left], *tokens[end:]))
                return not phrases and not _is_list(tokens[left:end], claim)
    return False


def _is_list(middle: Sequence[Term], claim: Terms) -> bool:
    """Return True if there are only conjunctions and whole list items."""
    sizes = Counter(term.clause for term in claim.terms)
    return all(
        token.letters in _CONJUNCTIONS or (token.kind != "function" and sizes[token.clause] == 1) for token in middle
    )


SUPPORTED: Final = 0.54
"""Minimum score of a supported statement; a sixth of the true statements of models are below it."""
PARTLY: Final = 0.2
_MAX_SENTENCES: Final = 3  # neighbouring sentences that a statement may summarise
_SENTENCE_PENALTY: Final = 0.75  # words that each further sentence must add
_ELSEWHERE_WEIGHT: Final = 0.3  # of a word in a sentence that is not quoted
_CLOSE_SCORE: Final = 0.75  # from here on, both have the same subject, and a clear difference counts
_COPY_SCORE: Final = 0.9
_DOUBT_FACTOR: Final = 0.99 * SUPPORTED  # of a score if something is clearly not in the source


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict. `score` (0 to 1) orders statements by their support; `reason` as in Statement."""

    verdict: Verdict
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The part of a statement in the sentences `first` to `last`; `term_bits` has a bit for each of its terms."""

    term_bits: int
    first: int = 0
    last: int = 0


class ParsedClaim:
    """A statement with its terms and their weights."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all_terms: Terms = read_terms(text)
        self.form = Form(self.all_terms)
        self.terms: list[Term] = list({term.key: term for term in self.all_terms.terms}.values())
        self.is_chinese = is_chinese(text)
        self._double_weight_bits = sum(
            1 << i for i, term in enumerate(self.terms) if term.kind == "name" or term.is_explicit
        )
        self._total_weight = self._weight((1 << len(self.terms)) - 1)
        self.word_bits = sum(
            1 << i for i, term in enumerate(self.terms) if term.kind in ("word", "han") and not term.value
        )

    def share(self, term_bits: int, elsewhere: int = 0, extra_sentences: int = 0) -> float:
        """Return the share of the statement in the quotes, 0 to 1, minus a penalty for each further sentence."""
        total = (
            self._weight(term_bits)
            + _ELSEWHERE_WEIGHT * self._weight(elsewhere & ~term_bits)
            - _SENTENCE_PENALTY * extra_sentences
        )
        return max(0.0, total / self._total_weight) if self._total_weight else 0.0

    def _weight(self, term_bits: int) -> int:
        return term_bits.bit_count() + (term_bits & self._double_weight_bits).bit_count()


class EvidenceIndex:
    """An index of a passage's sentences."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = [read_terms(sentence) for sentence in sentences]
        self.is_chinese = is_chinese("".join(sentences))
        self._values = [(value, place) for place, s in enumerate(self.sentences) for value in s.values]
        self._words: dict[str, set[int]] = {}
        for place, sentence in enumerate(self.sentences):
            for term in sentence.terms:
                self._words.setdefault(term.key, set()).add(place)

    @cached_property
    def forms(self) -> list[Form]:
        return [Form(sentence) for sentence in self.sentences]

    def places(self, term: Term) -> Iterable[int]:
        places = self._words.get(term.key, ())
        if term.value and not places:
            return [place for value, place in self._values if term.value.matches(value)]
        return places

    def best_coverage(self, claim: ParsedClaim) -> Coverage:
        """Return the one to three neighbouring sentences that contain most of the statement."""
        words = [0] * len(self.sentences)
        for i, term in enumerate(claim.terms):
            for place in self.places(term):
                words[place] |= 1 << i
        return max(
            _windows(words),
            key=lambda coverage: claim.share(coverage.term_bits, extra_sentences=coverage.last - coverage.first),
            default=Coverage(0),
        )

    def term_bits(self, claim: ParsedClaim) -> int:
        """Return a bit for each of the statement's terms that is in any sentence."""
        return sum(1 << i for i, term in enumerate(claim.terms) if any(True for _ in self.places(term)))


def _windows(words: Sequence[int]) -> Iterable[Coverage]:
    for first in range(len(words)):
        bits = 0
        for last in range(first, min(first + _MAX_SENTENCES, len(words))):
            bits |= words[last]
            yield Coverage(bits, first, last)


def judge(claim: ParsedClaim, quotes: Sequence[Quote], evidence: Sequence[EvidenceIndex]) -> Finding:
    """Judge a statement by several quotes together; `evidence` are all passages that may support it."""
    is_alike = any((quote.coverage.term_bits & claim.word_bits).bit_count() > 1 for quote in quotes)
    if all(source.is_chinese != claim.is_chinese for source in evidence) and not is_alike:
        return _judge_across_languages(claim, evidence)
    share = support_score(claim, quotes, evidence)
    reason = _find_difference(claim, share, [sentence for quote in quotes for sentence in quote.sentences], evidence)
    share = round(share * _DOUBT_FACTOR if reason else share, 4)
    verdict: Verdict = "supported" if share >= SUPPORTED else "partly" if share >= PARTLY else "unsupported"
    return Finding(verdict, share, reason or ("nothing_close" if verdict == "unsupported" else "words"))


def support_score(claim: ParsedClaim, quotes: Sequence[Quote], evidence: Sequence[EvidenceIndex] = ()) -> float:
    """Return the share of the statement that the quotes contain together, minus a penalty for each further sentence."""
    term_bits, elsewhere = reduce(or_, (quote.coverage.term_bits for quote in quotes)), 0
    for source in evidence:
        elsewhere |= source.term_bits(claim)
    return claim.share(
        term_bits, elsewhere, sum(quote.coverage.last - quote.coverage.first + 1 for quote in quotes) - 1
    )


def lacks_number(claim: ParsedClaim, evidence: Sequence[EvidenceIndex]) -> bool:
    """Return True if a value is in no passage, whether as written, converted or rounded."""
    numbers = (term for term in claim.terms if term.is_explicit)
    return any(not any(source.places(term) for source in evidence) for term in numbers)


def lacks_clause(claim: ParsedClaim, evidence: Sequence[EvidenceIndex]) -> bool:
    """Return True if a clause was added: none of its terms is in any passage, but all other terms are."""
    clauses: dict[int, list[bool]] = {}
    for term in claim.terms:
        clauses.setdefault(term.clause, []).append(any(source.places(term) for source in evidence))
    added = [place for place, matches in clauses.items() if len(matches) > 1 and not any(matches)]
    others = [match for place, matches in clauses.items() if place not in added for match in matches]
    return bool(added) and len(others) > 1 and all(others)


def _find_difference(
    claim: ParsedClaim, share: float, sentences: Sequence[Terms], evidence: Sequence[EvidenceIndex]
) -> str:
    """Return the reason (see Statement) for a clear difference between statement and sources, or an empty string."""
    forms = (form for source in evidence for form in source.forms)
    if lacks_number(claim, evidence) or has_changed_value(claim.form, forms):
        return "numbers"
    denies, source_denies = bool(claim.all_terms.negations), any(sentence.negations for sentence in sentences)
    if (denies and not source_denies and share >= _CLOSE_SCORE) or (
        source_denies and not denies and share >= _COPY_SCORE and len(sentences) == 1
    ):
        return "negation"
    has_moved_subject = (
        share >= _CLOSE_SCORE
        and not claim.is_chinese
        and any(_has_moved_subject(claim, sentence) for sentence in sentences)
    )
    if (
        has_moved_subject
        or any(has_swapped_parts(claim.all_terms, sentence) for sentence in sentences)
        or lacks_clause(claim, evidence)
    ):
        return "clause"
    return ""


def _has_moved_subject(claim: ParsedClaim, sentence: Terms) -> bool:
    """Return True if the sentence has the opening of the statement, but says the rest about something else."""
    opening = {term.key for term in claim.terms if term.is_opening and not term.clause}
    rest = {term.key for term in claim.terms if not term.clause} - opening
    begins = {term.key for term in sentence.terms if term.is_opening and not term.clause}
    clauses: dict[int, set[str]] = {}
    for term in sentence.terms:
        clauses.setdefault(term.clause, set()).add(term.key)
    matches = [keys | begins for keys in clauses.values() if rest and rest <= keys]
    is_present = any(opening & keys for keys in clauses.values())
    return is_present and bool(matches) and not any(opening & keys for keys in matches)


def _judge_across_languages(claim: ParsedClaim, evidence: Sequence[EvidenceIndex]) -> Finding:
    """Judge by numbers, and names in Latin letters; other words differ between languages."""
    terms = [term for term in claim.terms if term.is_explicit or (term.kind == "name" and term.key.isascii())]
    stand = all(any(source.places(term) for source in evidence) for term in terms)
    return Finding("partly", PARTLY, "language") if stand else Finding("unsupported", 0.0, "nothing_close")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote, `source.passage.text[start:end]`; `coverage` is the part of a statement in it, all if `verbatim`."""

    source: ParsedPassage
    start: int
    end: int
    coverage: Coverage
    verbatim: bool = False

    @property
    def text(self) -> str:
        return self.source.passage.text[self.start : self.end]

    @property
    def sentences(self) -> Sequence[Terms]:
        return self.source.evidence.sentences[self.coverage.first : self.coverage.last + 1]


class ParsedPassage:
    """A passage with its sentences, each parsed once."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.spans = unit_spans(passage.text)

    @cached_property
    def evidence(self) -> EvidenceIndex:
        leads = [one.lead for one in find_list_places(self.passage.text, self.spans)]
        sentences = [self._valid(start, end) for start, end in self.spans]
        return EvidenceIndex([f"{lead}: {one}" if lead else one for lead, one in zip(leads, sentences, strict=True)])

    def _valid(self, start: int, end: int) -> str:
        """Return a sentence without struck text; a row of a table that began before the passage gets its header."""
        before, text = self.passage.text[:end], strip_struck(self.passage.text, start, end)
        continues = self.passage.header and before.startswith("|") and "\n\n" not in before
        return f"{text} {self.passage.header}" if continues else text

    @cached_property
    def _tokens(self) -> TokenIndex:
        return TokenIndex([strip_struck(self.passage.text, start, end) for start, end in self.spans])

    def best_quote(self, claim: ParsedClaim) -> Quote:
        """Return the whole sentences that equal the statement token by token, else the one to three neighbouring ones
        that support it best, or the whole passage."""
        for first, last, whole in self._tokens.places(claim.all_terms) if claim.terms else ():
            if whole:
                return Quote(self, self.spans[first][0], self.spans[last][1], Coverage(0, first, last), verbatim=True)
        coverage = self.evidence.best_coverage(claim)
        if not coverage.term_bits:
            return Quote(self, 0, len(self.passage.text), coverage)
        return Quote(self, self.spans[coverage.first][0], self.spans[coverage.last][1], coverage)
