"""From marks that a reasoner wrote to quotes that stand in the pages, and what each statement is worth.

A reasoner cites passages by number. Here each statement is held against the sentences of the passages it
names: what bears it out becomes the quote. A mark that nothing bears out is replaced where another
passage does, and dropped elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rag.agent.citing.addresses import held_addresses, without_links
from rag.agent.citing.code import with_code_marked
from rag.agent.citing.comparing.support import Finding
from rag.agent.citing.marks import find_marks
from rag.agent.citing.source import Quote, Said, Source, joint
from rag.agent.citing.statements import LONGEST, Stated, find_statements, without_list_sign, without_reply
from rag.types import Citation, Passage, Statement, Verdict

CLEARLY: Final = 0.7
"""The share from which on a passage that was not named is cited after all."""
LIFTED: Final = 0.2
"""Below this share a model's word alone does not make a passage support what it hardly mentions."""
MAX_QUOTES: Final = 3
MOST_SEARCHED: Final = 60
"""Statements of one answer whose support is looked for in passages that they do not name."""


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

    @property
    def counts(self) -> bool:
        """Whether it is a statement: what only reads like a remark is one where its passage settles it."""
        settled = self.finding.verdict == "supported" or (bool(self.stated.marks) and self.finding.against)
        return self.stated.checked or (self.stated.excused and settled)


class Check:
    """The statements of one answer, weighed; a model's opinion may be added before it is put together.

    Marks are `[n]`, 1-based places in `passages`, after or inside the statement they support. Links and
    images lose their targets, and addresses that no passage holds are taken out: a model cites by number only.
    Code stays as it is. May take tens of milliseconds: call it in a thread.
    """

    def __init__(self, text: str, passages: Sequence[Passage]) -> None:
        texts = [passage.text for passage in passages]
        self._text = without_links(with_code_marked(text, texts), held_addresses(texts))
        self._sources = [Source(passage) for passage in passages]
        self._quotes: dict[tuple[str, int], Quote] = {}
        self._looked_elsewhere = 0
        self._weighed = [self._weigh(stated) for stated in find_statements(self._text, find_marks(self._text, texts))]

    def doubts(self) -> list[Doubt]:
        """The statements that a model should judge: those neither verbatim nor plainly wrong."""
        return [
            Doubt(place, weighed.stated.bare, tuple(_surroundings(quote) for quote in weighed.quotes))
            for place, weighed in enumerate(self._weighed)
            if weighed.counts
            and weighed.quotes
            and weighed.finding.reason != "verbatim"
            and not weighed.finding.against
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
            shown = weighed.quotes if weighed.counts and weighed.finding.verdict != "unsupported" else []
            marks = tuple(dict.fromkeys(numbering.number(quote) for quote in shown))
            gap = self._text[at : stated.start]
            written = _with_marks(stated.bare, marks)
            if weighed.counts:
                start = length + len(gap)
                finding = weighed.finding
                end = start + len(written if _is_row(stated.bare) else stated.bare)
                statements.append(Statement(start, end, finding.verdict, marks, finding.reason))
            out += [gap, written]
            length += len(gap) + len(written)
            at = stated.stop
        return _stripped("".join([*out, self._text[at:]]), numbering.citations, statements)

    def _weigh(self, stated: Stated) -> _Weighed:
        nothing = Finding("unsupported", 0.0, "nothing_close")
        if not (stated.checked or stated.excused) or len(stated.bare) > LONGEST:
            return _Weighed(stated, nothing)
        text = without_list_sign(stated.bare)
        finding, quotes = self._borne_out(Said(text), stated.marks)
        rest = without_reply(text)
        if finding.reason != "verbatim" and rest != text:
            finding, quotes = self._borne_out(Said(rest), stated.marks)
        return _Weighed(stated, finding, quotes)

    def _borne_out(self, said: Said, marks: Sequence[int]) -> tuple[Finding, list[Quote]]:
        """What the passages that were named say to it; another one where it says it clearly."""
        named = [self._best(said, n) for n in marks if 0 < n <= len(self._sources)]
        kept = [quote for quote in named if quote.finding.verdict == "supported"]
        if kept:
            return max((q.finding for q in kept), key=lambda f: f.rank), kept[:MAX_QUOTES]
        if together := _together(said, named):
            return together, named[:MAX_QUOTES]
        if other := _clear(self._elsewhere(said, marks)):
            return other.finding, [other]
        best = max(named, key=lambda quote: quote.finding.rank, default=None)
        return (best.finding, [best]) if best else (Finding("unsupported", 0.0, "nothing_close"), [])

    def _elsewhere(self, said: Said, marks: Sequence[int]) -> list[Quote]:
        """What the passages that were not named say to it: all of them, for as many statements as people read."""
        self._looked_elsewhere += 1
        if self._looked_elsewhere > MOST_SEARCHED:
            return []
        return [self._best(said, n) for n in range(1, len(self._sources) + 1) if n not in marks]

    def _best(self, said: Said, n: int) -> Quote:
        """What passage `n` says to it, looked up once for a sentence that comes again."""
        key = (said.text, n)
        if key not in self._quotes:
            self._quotes[key] = self._sources[n - 1].best(said)
        return self._quotes[key]


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
    if _is_row(bare) and marks:
        return f"{bare[:-1].rstrip()} {shown} |"
    return bare + shown


def _is_row(bare: str) -> bool:
    return bare.startswith("|") and bare.endswith("|") and len(bare) > 1


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
