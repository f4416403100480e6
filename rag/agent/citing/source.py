"""A passage, and the sentences of it that bear a statement out best."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from rag.agent.citing.rules import Evidence, Held, Said
from rag.agent.citing.terms import HAN, Terms
from rag.text import sentence_spans
from rag.types import Passage

_LETTERS = re.compile(rf"[+-]?\d+(?:[.,:/]\d+)*%?|[^\W\d_{HAN}]+[+#]*|[{HAN}]|[%$€£¥°]")


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
