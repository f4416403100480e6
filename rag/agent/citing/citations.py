"""From marks that a reasoner wrote to quotes that stand in the pages, and what each statement is worth.

A reasoner cites passages by number. Here each statement is held against the sentences of the passages it
names: what bears it out becomes the quote. A mark that nothing bears out is replaced where another
passage does, and dropped elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rag.agent.citing.source import Quote, Said, Source, joint
from rag.agent.citing.statements import Stated, find_statements
from rag.agent.citing.support import Finding
from rag.types import Citation, Passage, Statement, Verdict

_LINK = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)")
_BARE_URL = re.compile(r"<?\b(?:https?://|www\.)[^\s<>\[\]，。；、）)]+>?", re.IGNORECASE)
CLEARLY: Final = 0.7
"""The share from which on a passage that was not named is cited after all."""
LIFTED: Final = 0.2
"""Below this share a model's word alone does not make a passage support what it hardly mentions."""
MAX_QUOTES: Final = 3


@dataclass(slots=True)
class Doubt:
    """A statement that code cannot settle by the letter, with the text that it rests on."""

    place: int
    statement: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer's text with its marks numbered in order, what they lead to, and its statements."""

    text: str
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()


@dataclass(slots=True)
class _Weighed:
    """A statement with the quotes that bear it out, and what they are worth together."""

    stated: Stated
    finding: Finding
    quotes: list[Quote] = field(default_factory=list)


class Check:
    """The statements of one answer, weighed; a model's opinion may be added before it is put together.

    Marks are `[n]`, 1-based places in `passages`, after or inside the statement they support. Links and
    images lose their targets, and addresses are taken out: a model cites by number only. May take tens of
    milliseconds: call it in a thread.
    """

    def __init__(self, text: str, passages: Sequence[Passage]) -> None:
        self._text = _BARE_URL.sub("", _LINK.sub(r"\1", text))
        self._sources = [Source(passage) for passage in passages]
        self._weighed = [self._weigh(stated) for stated in find_statements(self._text)]

    def doubts(self) -> list[Doubt]:
        """The statements that a model should judge: those neither verbatim nor plainly wrong."""
        return [
            Doubt(place, weighed.stated.bare, tuple(_surroundings(quote) for quote in weighed.quotes))
            for place, weighed in enumerate(self._weighed)
            if weighed.quotes and weighed.finding.reason != "verbatim" and not weighed.finding.against
        ]

    def settle(self, verdicts: Mapping[int, Verdict]) -> None:
        """Take a model's verdicts, by the places of the doubts.

        It may confirm what code saw in part and reject what code let through. What code found contradicted
        stays so; where a rare word stands in another's place, or next to nothing is shared, it is `partly` at best.
        """
        for doubt in self.doubts():
            if doubt.place in verdicts:
                weighed = self._weighed[doubt.place]
                weighed.finding = _settled(weighed.finding, verdicts[doubt.place])

    def result(self) -> Checked:
        """The answer as it is shown."""
        numbering = _Numbering()
        statements: list[Statement] = []
        out, length, at = [], 0, 0
        for weighed in self._weighed:
            stated = weighed.stated
            shown = weighed.quotes if weighed.finding.verdict != "unsupported" else []
            marks = tuple(dict.fromkeys(numbering.number(quote) for quote in shown))
            gap = self._text[at : stated.start]
            written = _with_marks(stated.bare, marks)
            if stated.checked:
                start = length + len(gap)
                finding = weighed.finding
                end = start + len(stated.bare)
                statements.append(Statement(start, end, finding.verdict, marks, finding.reason))
            out += [gap, written]
            length += len(gap) + len(written)
            at = stated.stop
        return _stripped("".join([*out, self._text[at:]]), numbering.citations, statements)

    def _weigh(self, stated: Stated) -> _Weighed:
        nothing = Finding("unsupported", 0.0, "nothing_close")
        if not stated.checked:
            return _Weighed(stated, nothing)
        said = Said(stated.bare)
        named = [self._sources[n - 1].best(said) for n in stated.marks if 0 < n <= len(self._sources)]
        kept = [quote for quote in named if quote.finding.verdict == "supported"]
        if kept:
            return _Weighed(stated, max((q.finding for q in kept), key=lambda f: f.rank), kept[:MAX_QUOTES])
        if together := _together(said, named):
            return _Weighed(stated, together, named[:MAX_QUOTES])
        others = [s.best(said) for i, s in enumerate(self._sources, 1) if i not in stated.marks]
        if other := _clear(others):
            return _Weighed(stated, other.finding, [other])
        best = max(named, key=lambda quote: quote.finding.rank, default=None)
        return _Weighed(stated, best.finding, [best]) if best else _Weighed(stated, nothing)


def cite(text: str, passages: Sequence[Passage]) -> tuple[str, tuple[Citation, ...]]:
    """The checked text and its citations, without a model's opinion."""
    checked = check(text, passages)
    return checked.text, checked.citations


def check(text: str, passages: Sequence[Passage]) -> Checked:
    """Check every statement of `text` by code alone; see Check."""
    return Check(text, passages).result()


def _together(said: Said, named: Sequence[Quote]) -> Finding | None:
    parts = [quote for quote in named if not quote.finding.against and quote.finding.share >= LIFTED]
    if len(parts) < 2 or len(parts) < len(named):
        return None
    finding = joint(said, parts)
    return finding if finding.verdict == "supported" else None


def _clear(quotes: Sequence[Quote]) -> Quote | None:
    """The best of passages that were not named, if it is beyond doubt."""
    best = max(quotes, key=lambda quote: quote.finding.rank, default=None)
    clear = best is not None and best.finding.verdict == "supported" and best.finding.share >= CLEARLY
    return best if clear else None


def _settled(finding: Finding, opinion: Verdict) -> Finding:
    if opinion == "supported" and finding.verdict == "unsupported":
        lifted = finding.share >= LIFTED
        return Finding("partly", finding.share, "model") if lifted else finding
    if opinion == "partly" and finding.verdict == "unsupported":
        return finding
    if opinion == "supported" and finding.reason == "exchanged":
        return finding
    return Finding(opinion, finding.share, "model")


def _surroundings(quote: Quote, around: int = 300) -> str:
    text = quote.source.passage.text
    return text[max(0, quote.start - around) : quote.end + around]


def _with_marks(bare: str, marks: Sequence[int]) -> str:
    """The marks stand behind the sentence, in a row of a table within its last cell."""
    shown = "".join(f"[{n}]" for n in marks)
    if bare.startswith("|") and bare.endswith("|") and marks:
        return f"{bare[:-1].rstrip()} {shown} |"
    return bare + shown


def _stripped(text: str, citations: Sequence[Citation], statements: Sequence[Statement]) -> Checked:
    lead = len(text) - len(text.lstrip())
    moved = tuple(replace(one, start=one.start - lead, end=one.end - lead) for one in statements)
    return Checked(text.strip(), tuple(citations), moved)


class _Numbering:
    """Gives each quote its number, in order of appearance."""

    def __init__(self) -> None:
        self.citations: list[Citation] = []
        self._numbers: dict[tuple[str, int, int], int] = {}

    def number(self, quote: Quote) -> int:
        passage = quote.source.passage
        start, end = passage.start + quote.start, passage.start + quote.end
        key = (passage.url_hash, start, end)
        if key not in self._numbers:
            n = self._numbers[key] = len(self.citations) + 1
            words = quote.text
            self.citations.append(
                Citation(n, passage.url, passage.url_hash, passage.title, words, start, end, passage.section)
            )
        return self._numbers[key]
