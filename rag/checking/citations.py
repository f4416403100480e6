"""From marks that a reasoner wrote to quotes that stand in the pages, and what each statement is worth.

A reasoner cites passages by number. Here each statement is held against the sentences of the passages it
names: what bears it out becomes the quote. A mark that nothing bears out is replaced where another
passage does, and dropped elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from rag.checking.marks import find_marks, held_addresses, with_code_marked, with_plain_marks, without_links
from rag.checking.rules import SUPPORTED, Finding, Quote, Said, Source, judge, support_score
from rag.checking.statements import LONGEST, Stated, find_statements, leads_on, repeated, what_it_says, without
from rag.checking.verifier import RANK, Claim, Judgement, Verifier, batches
from rag.errors import ModelError
from rag.types import CheckedBy, Citation, Passage, Statement

log = logging.getLogger(__name__)

CLEARLY: Final = 0.6
"""The share from which on a passage that was not named is cited after all."""
MAX_QUOTES: Final = 3
MOST_SEARCHED: Final = 60
"""Statements of one answer whose support is looked for in passages that they do not name."""
_NOTHING: Final = Finding("unsupported", 0.0, "nothing_close")
_VERBATIM: Final = Finding("supported", 1.0, "verbatim")


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer's text with its marks numbered in order, what they lead to, and its statements."""

    text: str
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As a state keeps it."""
        citations, statements = map(asdict, self.citations), map(asdict, self.statements)
        return {"text": self.text, "citations": list(citations), "statements": list(statements)}


@dataclass(slots=True)
class ScoredStatement:
    """A statement with the quotes that bear it out, what they are worth together, and who says so."""

    stated: Stated
    finding: Finding = _NOTHING
    quotes: list[Quote] = field(default_factory=list)
    by: CheckedBy = "rules"
    relevant: bool = True

    @property
    def counts(self) -> bool:
        """Whether it is a statement: what only reads like a remark or a heading is one where its passage bears it
        out, and where a model says that it is not true; a transition in the second case alone."""
        if not self.stated.excused:
            return self.stated.checked
        supported = self.finding.verdict == "supported"
        return supported and not leads_on(self.stated.bare) if self.by == "rules" else not supported


class Check:
    """The statements of one answer, weighed by rules; a verifier's judgements may replace theirs.

    Marks are `[n]`, 1-based places in `passages`, after or inside the statement they support. Links and
    images lose their targets, and addresses that no passage holds are taken out: a model cites by number only.
    Code stays as it is, and a sentence that is said twice is said once. `rests_on` gives the passages of a statement
    instead of its marks, and then nothing of the text is changed. May take tens of milliseconds: call it in a thread.
    """

    def __init__(
        self, text: str, passages: Sequence[Passage], *, rests_on: Callable[[str], Sequence[int]] | None = None
    ) -> None:
        texts = [passage.text for passage in passages]
        self._rests_on = rests_on
        self._text = text if rests_on else _plain(text, passages)
        self._sources = [Source(passage) for passage in passages]
        self._looked_elsewhere = 0
        stated = find_statements(self._text, find_marks(self._text, texts))
        if not rests_on and (again := repeated(stated)):
            self._text = without(self._text, again)
            stated = find_statements(self._text, find_marks(self._text, texts))
        self.weighed = list(map(self._weigh, stated))

    @property
    def text(self) -> str:
        """What was weighed: the text without links."""
        return self._text

    def doubtful(self) -> list[tuple[int, int]]:
        """Where in `text` the statements stand, with their marks, that nothing bears out."""
        found = (one for one in self.weighed if one.counts and one.finding.verdict == "unsupported")
        return [(one.stated.start, one.stated.stop) for one in found]

    def claims(self) -> list[Claim]:
        """What a verifier should judge: all statements and remarks but those that stand there to the letter."""
        return [
            Claim(place, weighed.stated.bare, tuple(self._named(weighed.stated) or self._everywhere))
            for place, weighed in enumerate(self.weighed)
            if (weighed.stated.checked or weighed.stated.excused)
            and weighed.finding.reason != "verbatim"
            and len(weighed.stated.bare) <= LONGEST
            and self._sources
        ]

    async def consult(self, verifier: Verifier, question: str, tokens: int) -> None:
        """Ask about every claim, in as few calls of `tokens` as fit: what is said stands. Raises ModelError."""
        passages = [source.passage for source in self._sources]
        for claims in list(batches(self.claims(), passages, tokens)):
            said = await verifier.verify(claims, passages, question)
            for claim, judgement in zip(claims, said, strict=False):
                if judgement is not None:
                    self._settle(claim, judgement, verifier.checks_by)

    def _settle(self, claim: Claim, judgement: Judgement, by: CheckedBy) -> None:
        weighed = self.weighed[claim.place]
        score = judgement.score
        if score is None:  # among those of one verdict, what the rules found
            score = round((RANK[judgement.verdict] + weighed.finding.score) / 3, 4)
        weighed.finding = Finding(judgement.verdict, score, "model")
        weighed.by, weighed.relevant = by, judgement.relevant
        weighed.quotes = weighed.quotes or self._closest(claim)

    def result(self) -> Checked:
        """The answer as it is shown."""
        numbering = _Numbering()
        statements: list[Statement] = []
        out, length, at = [], 0, 0
        for weighed in self.weighed:
            stated, finding = weighed.stated, weighed.finding
            shown = weighed.quotes if weighed.counts and finding.verdict != "unsupported" else []
            marks = tuple(dict.fromkeys(numbering.number(quote) for quote in shown))
            gap = self._text[at : stated.start]
            written = _with_marks(stated.bare, marks)
            if weighed.counts:
                start = length + len(gap)
                end = start + len(written if _is_row(stated.bare) else stated.bare)
                how = (finding.reason, weighed.by, finding.score, weighed.relevant)
                statements.append(Statement(start, end, finding.verdict, marks, *how))
            out += [gap, written]
            length += len(gap) + len(written)
            at = stated.stop
        return _stripped("".join([*out, self._text[at:]]), numbering.citations, statements)

    @property
    def _everywhere(self) -> range:
        return range(1, len(self._sources) + 1)

    def _named(self, stated: Stated) -> list[int]:
        named = self._rests_on(stated.bare) if self._rests_on else stated.marks
        return [n for n in named if n in self._everywhere]

    def _weigh(self, stated: Stated) -> ScoredStatement:
        if not (stated.checked or stated.excused) or len(stated.bare) > LONGEST:
            return ScoredStatement(stated)
        said, named = Said(what_it_says(stated.bare)), self._named(stated)
        quotes = [self._sources[n - 1].best(said) for n in named]
        finding, quotes = _best_quotes(said, quotes)
        if finding.verdict != "supported" and (other := self._elsewhere(said, named)):
            return ScoredStatement(stated, _judge_quote(said, other), [other])
        return ScoredStatement(stated, finding, quotes)

    def _closest(self, claim: Claim) -> list[Quote]:
        """What to show for a statement that names no passage, and that another than the rules found borne out."""
        said = Said(what_it_says(claim.statement))
        quotes = [self._sources[n - 1].best(said) for n in claim.cited]
        return sorted(quotes, key=lambda quote: -said.share(quote.held.words))[:1]

    def _elsewhere(self, said: Said, named: Sequence[int]) -> Quote | None:
        """The best of the passages that were not named, if it is beyond doubt."""
        self._looked_elsewhere += 1
        others = [n for n in self._everywhere if n not in named] if self._looked_elsewhere <= MOST_SEARCHED else []
        quotes = (self._sources[n - 1].best(said) for n in others)
        best = max(quotes, key=lambda quote: _judge_quote(said, quote).score, default=None)
        return best if best and _judge_quote(said, best).score >= CLEARLY else None


async def check_with(
    text: str, passages: Sequence[Passage], verifiers: Sequence[Verifier], question: str, tokens: int
) -> Check:
    """The check of a text, with the judgements of the first verifier that answers; where none does, by the rules."""
    check = await asyncio.to_thread(Check, text, passages)
    for verifier in verifiers:
        try:
            await check.consult(verifier, question, tokens)
            break
        except ModelError as error:
            log.info("the check by %s failed (%s)", verifier.checks_by, error.code)
    return check


def check(text: str, passages: Sequence[Passage]) -> Checked:
    """Check every statement of `text` by rules alone; see Check."""
    return Check(text, passages).result()


def _plain(text: str, passages: Sequence[Passage]) -> str:
    """The text with marks of one shape, and without links."""
    texts = [passage.text for passage in passages]
    marked = with_plain_marks(with_code_marked(text, texts), texts, [passage.title for passage in passages])
    return without_links(marked, held_addresses(texts))


def _best_quotes(said: Said, quotes: Sequence[Quote]) -> tuple[Finding, list[Quote]]:
    """What the passages that were named say: one of them, or as few together as hold clearly more."""
    if not quotes:
        return _NOTHING, []
    if verbatim := [quote for quote in quotes if quote.verbatim]:
        return _VERBATIM, verbatim[:MAX_QUOTES]
    ranked = sorted(quotes, key=lambda quote: -support_score(said, [quote]))
    few = max((ranked[:count] for count in range(1, MAX_QUOTES + 1)), key=lambda some: support_score(said, some))
    named = [quote.source.evidence for quote in quotes]
    finding = judge(said, few, named)
    if finding.verdict != "supported" and (together := judge(said, ranked[:MAX_QUOTES], named)).verdict == "supported":
        finding, few = together, ranked[:MAX_QUOTES]
    if len(few) == 1 and finding.verdict == "supported":
        few = [quote for quote in ranked if support_score(said, [quote]) >= SUPPORTED][:MAX_QUOTES] or few
    return finding, few


def _judge_quote(said: Said, quote: Quote) -> Finding:
    return _VERBATIM if quote.verbatim else judge(said, [quote], [quote.source.evidence])


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
                Citation(
                    *(n, passage.url, passage.url_hash, passage.title, words),
                    *(start, end, passage.section, passage.library),
                )
            )
        return self._numbers[key]
