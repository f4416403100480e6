"""From marks that a reasoner wrote to quotes that stand in the pages.

A reasoner cites passages by number. Here each marked statement is held against the sentences of the
passages it names; what supports it becomes the quote, and a mark that nothing supports is dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag.text import detect_language, split_sentences, terms
from rag.types import Citation, Passage

_MARK = re.compile(r"\s*[\[【]\s*\^?(\d{1,3}(?:\s*[,，、;；]\s*\d{1,3})*)\s*[\]】]")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be been by for from had has have in into is it its of on or that the their there these "
    "this those to was were which who will with".split()
)
MINIMUM_SUPPORT = 0.25
"""Below this share of a statement's terms, a sentence does not support what cites it."""
UNMARKED_SUPPORT = 0.7
"""From this share on, a sentence supports a statement that cites nothing."""


def cite(text: str, passages: Sequence[Passage]) -> tuple[str, tuple[Citation, ...]]:
    """Map the marks of `text` to quotes; returns the text with marks numbered in order, and the citations.

    Marks are `[n]`, 1-based places in `passages`, after or inside the statement they support. Marks that
    name no passage, or one that does not support the statement, are dropped; a statement without a mark
    gets one where a sentence clearly supports it. Links and images lose their targets: a model cites
    by number only.
    """
    text = _LINK.sub(r"\1", text)
    sources = [_Source(passage) for passage in passages]
    numbering = _Numbering()
    out, at = [], 0
    for statement in _statements(text):
        out.append(text[at : statement.start])
        quotes = _supporting(statement, sources)
        marks = "".join(f"[{numbering.number(quote)}]" for quote in quotes)
        out.append(statement.bare + marks)
        at = statement.stop
    out.append(text[at:])
    return "".join(out).strip(), tuple(numbering.citations)


@dataclass(frozen=True, slots=True)
class _Statement:
    """`text[start:stop]` with its marks; `bare` is what it says, `marks` the passages it names."""

    start: int
    stop: int
    bare: str
    marks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Quote:
    source: _Source
    start: int
    end: int


def _statements(text: str) -> list[_Statement]:
    marks = list(_MARK.finditer(text))
    masked = _MARK.sub(lambda mark: " " * len(mark.group()), text)
    spans = split_sentences(masked)
    found = []
    for i, (start, end) in enumerate(spans):
        limit = spans[i + 1][0] if i + 1 < len(spans) else len(text)
        own = [mark for mark in marks if start <= mark.start() < limit]
        stop = max([end, *(mark.end() for mark in own)])
        bare = _MARK.sub("", text[start:stop]).strip()
        numbers = [int(number) for mark in own for number in _NUMBER.findall(mark[1])]
        found.append(_Statement(start, stop, bare, tuple(dict.fromkeys(numbers))))
    return found


class _Source:
    """A passage with its sentences, looked at once."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @cached_property
    def sentences(self) -> list[tuple[int, int, str, frozenset[str]]]:
        text = self.passage.text
        spans = split_sentences(text)
        return [(a, b, _squash(text[a:b]), _content(text[a:b])) for a, b in spans]

    @cached_property
    def language(self) -> str:
        return detect_language(self.passage.text)

    def best(self, statement: str) -> tuple[float, int, int]:
        """The sentence that supports `statement` most: its support (0 to 1) and where it stands."""
        squashed, content = _squash(statement), _content(statement)
        best = (0.0, 0, len(self.passage.text))
        for start, end, body, words in self.sentences:
            if (squashed and squashed in body) or (len(body) >= 12 and body in squashed):
                return 1.0, start, end
            support = len(content & words) / len(content) if content else 0.0
            if support > best[0]:
                best = (support, start, end)
        return best


def _supporting(statement: _Statement, sources: Sequence[_Source]) -> list[_Quote]:
    if not re.search(r"\w", statement.bare) or statement.bare.lstrip().startswith("#"):
        return []
    if statement.marks:
        named = [sources[n - 1] for n in statement.marks if 0 < n <= len(sources)]
        return [quote for source in named if (quote := _quote(statement.bare, source))]
    best = max(((*source.best(statement.bare), source) for source in sources), key=lambda b: b[0], default=None)
    if best is None or best[0] < UNMARKED_SUPPORT or len(_content(statement.bare)) < 3:
        return []
    return [_Quote(best[3], best[1], best[2])]


def _quote(statement: str, source: _Source) -> _Quote | None:
    support, start, end = source.best(statement)
    if detect_language(statement) != source.language:
        support = max(support, MINIMUM_SUPPORT)  # across languages terms tell nothing; the mark is believed
    return _Quote(source, start, end) if support >= MINIMUM_SUPPORT else None


class _Numbering:
    """Gives each quote its number, in order of appearance."""

    def __init__(self) -> None:
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[str, int, int], int] = {}

    def number(self, quote: _Quote) -> int:
        passage = quote.source.passage
        start, end = passage.start + quote.start, passage.start + quote.end
        key = (passage.url_hash, start, end)
        if key not in self._numbers:
            n = self._numbers[key] = len(self.citations) + 1
            words = passage.text[quote.start : quote.end]
            self.citations.append(
                Citation(n, passage.url, passage.url_hash, passage.title, words, start, end, passage.section)
            )
        return self._numbers[key]


def _squash(text: str) -> str:
    """Letters and digits alone, so that quotes match whatever became of white space, marks and Markdown."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).lower()


def _content(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if term not in _FUNCTION_WORDS)
