"""A passage, and the sentences of it that bear a statement out best."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from rag.agent.citing.comparing.amounts import turned
from rag.agent.citing.comparing.coverage import stands
from rag.agent.citing.comparing.letters import Atom, Letters, atoms, squash
from rag.agent.citing.comparing.reading import Reading
from rag.agent.citing.comparing.stances import stance
from rag.agent.citing.comparing.support import PARTLY, SUPPORTED, Finding, judge
from rag.text import split_sentences
from rag.types import Passage

_WINDOWS = (2, 3)  # neighbouring sentences that a statement may sum up
_CLOSE = 0.3  # share of a single sentence from which on its neighbourhood is looked at
_CLEARLY = 0.15  # by how much more a sentence must share to contradict what another one bears out
_QUOTATION = 8  # letters of what is quoted, from which on it must stand there
_QUOTED = re.compile(r"[“\"「『]([^“”\"「」『』\n]{12,}|[\u4e00-\u9fff][^“”\"「」『』\n]{7,})[”\"」』]")


@dataclass(frozen=True, slots=True)
class Quote:
    """`source.passage.text[start:end]`, and what it says to the statement."""

    source: Source
    start: int
    end: int
    finding: Finding

    @property
    def text(self) -> str:
        return self.source.passage.text[self.start : self.end]


class Said:
    """A statement, read once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.atoms = list(atoms(text))

    @cached_property
    def reading(self) -> Reading:
        return Reading(self.text)

    @cached_property
    def quoted(self) -> list[list[Atom]]:
        """What it puts between quotation marks, where that is long enough to be a quotation."""
        return [list(atoms(match[1])) for match in _QUOTED.finditer(self.text) if len(squash(match[1])) >= _QUOTATION]


class Source:
    """A passage with its sentences, each looked at once."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.spans = split_sentences(passage.text)
        self._readings: dict[tuple[int, int], Reading] = {}

    @cached_property
    def letters(self) -> Letters:
        return Letters([self.passage.text[start:end] for start, end in self.spans])

    @cached_property
    def context(self) -> Reading:
        return Reading("\n".join((self.passage.title, *self.passage.section, self.passage.text)))

    def best(self, said: Said) -> Quote:
        """The sentence, or the few neighbouring ones, that bear `said` out best."""
        if verbatim := self._verbatim(said):
            return verbatim
        singles = [self._quote(said, i, i) for i in range(len(self.spans))]
        best = max(singles, key=lambda quote: quote.finding.rank, default=None)
        if best is None:
            return Quote(self, 0, len(self.passage.text), Finding("unsupported", 0.0, "nothing_close"))
        if best.finding.reason == "language" and not best.finding.share:
            best = Quote(self, 0, len(self.passage.text), best.finding)
        closest = max(singles, key=lambda quote: quote.finding.share)
        contradicted = _is_contradicted(best.finding, closest.finding)
        if best.finding.verdict != "supported" or contradicted:
            best = closest if contradicted else max([best, *self._wider(said, singles)], key=lambda q: q.finding.rank)
        return self._without_false_quotes(said, best)

    def _wider(self, said: Said, singles: list[Quote]) -> Iterator[Quote]:
        for size in _WINDOWS:
            for i in range(len(singles) - size + 1):
                if any(quote.finding.share >= _CLOSE for quote in singles[i : i + size]):
                    yield self._quote(said, i, i + size - 1)

    def _quote(self, said: Said, first: int, last: int) -> Quote:
        start, end = self.spans[first][0], self.spans[last][1]
        return Quote(self, start, end, judge(said.reading, self._reading(start, end), self.context))

    def _reading(self, start: int, end: int) -> Reading:
        if (start, end) not in self._readings:
            self._readings[start, end] = Reading(self.passage.text[start:end])
        return self._readings[start, end]

    def _verbatim(self, said: Said) -> Quote | None:
        """The sentences that hold `said` to the letter; a part of one counts where the rest turns nothing."""
        if not said.reading.tokens:
            return None
        for place in self.letters.find(said.atoms):
            first, last, whole = self.letters.covering(*place)
            start, end = self.spans[first][0], self.spans[last][1]
            if whole or not self._turns(said.reading, self._reading(start, end)):
                return Quote(self, start, end, Finding("supported", 1.0, "verbatim"))
        return None

    def _turns(self, said: Reading, sentence: Reading) -> bool:
        """Whether the rest of the sentence denies its part, or says it less firmly."""
        numbers = all(stands(number, sentence) for number in said.numbers) and not turned(said, sentence)
        return not numbers or len(sentence.negated) != len(said.negated) or bool(stance(said, sentence))

    def _without_false_quotes(self, said: Said, quote: Quote) -> Quote:
        """What is quoted must stand there to the letter, whatever the words around it share."""
        stand = all(any(self.letters.find(body)) for body in said.quoted)
        if stand or quote.finding.verdict != "supported":
            return quote
        share = min(quote.finding.share, PARTLY)
        return Quote(self, quote.start, quote.end, Finding("unsupported", share, "quotation"))


def _is_contradicted(best: Finding, closest: Finding) -> bool:
    """Whether the sentence that shares most says otherwise."""
    if best.verdict == "supported":
        return closest.against and closest.share > best.share + _CLEARLY
    return (closest.against or closest.reason == "exchanged") and closest.share >= SUPPORTED


def joint(said: Said, quotes: list[Quote]) -> Finding:
    """Whether quotes of several passages bear `said` out together."""
    together = Reading("\n".join(quote.text for quote in quotes))
    context = Reading("\n".join(quote.source.context.text for quote in quotes))
    return judge(said.reading, together, context)
