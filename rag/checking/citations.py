"""Citations of an answer: from a reasoner's marks to quotes from the pages, with a verdict on each statement.

A reasoner cites passages by number. Each statement is compared with the sentences of the passages it cites, and the
sentences that support it become the quotes. A mark without support is replaced if another passage supports the
statement, and dropped otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from rag.checking.rules import SUPPORTED, Finding, ParsedClaim, ParsedPassage, Quote, judge, support_score
from rag.checking.statements import (
    MAX_CHARS,
    Sentence,
    ends_in_colon,
    extract_claim,
    find_addresses,
    find_marks,
    find_repeats,
    find_statements,
    normalise_marks,
    remove_links,
    remove_spans,
    wrap_code,
)
from rag.checking.verifier import RANK, Claim, ClaimJudgement, Verifier, batch_claims
from rag.errors import ModelError
from rag.text import find_section
from rag.types import CheckedBy, Citation, Passage, Statement

log = logging.getLogger(__name__)

CLEAR_SCORE: Final = 0.6
"""Minimum score for citing a passage that the statement does not name."""
MAX_QUOTES: Final = 3
MAX_SEARCHES: Final = 60
"""Maximum number of statements per answer that are compared with passages which they do not name."""
_NO_SUPPORT: Final = Finding("unsupported", 0.0, "nothing_close")
_VERBATIM: Final = Finding("supported", 1.0, "verbatim")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """An answer's text with its marks numbered in order, the citations they refer to, and its statements."""

    text: str
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain data, for a graph's state."""
        citations, statements = map(asdict, self.citations), map(asdict, self.statements)
        return {"text": self.text, "citations": list(citations), "statements": list(statements)}


@dataclass(slots=True)
class ScoredStatement:
    """A statement with the quotes that support it, their joint verdict, and the kind of verifier that gave it."""

    sentence: Sentence
    finding: Finding = _NO_SUPPORT
    quotes: list[Quote] = field(default_factory=list)
    by: CheckedBy = "rules"
    relevant: bool = True

    @property
    def is_counted(self) -> bool:
        """True for a statement. A sentence like a remark or a heading counts if its passage supports it by the rules,
        or if a model says that it is unsupported; a transition only in the second case."""
        if not self.sentence.may_be_remark:
            return self.sentence.is_statement
        supported = self.finding.verdict == "supported"
        return supported and not ends_in_colon(self.sentence.bare) if self.by == "rules" else not supported


class Check:
    """The statements of one answer in `text`, scored by rules; a verifier's judgements may replace those scores.

    Marks are `[n]`, 1-based indexes of `passages`, after or inside the statement they support. Links and images lose
    their targets, and addresses that are in no passage are removed, since a model cites by number only. Code is kept,
    and repeated sentences are dropped. `find_passages` returns the passages of a statement instead of its marks; the
    text is then unchanged. The constructor may take tens of milliseconds: call it in a thread.
    """

    def __init__(
        self, text: str, passages: Sequence[Passage], *, find_passages: Callable[[str], Sequence[int]] | None = None
    ) -> None:
        texts = [passage.text for passage in passages]
        self._find_passages = find_passages
        self.text = text if find_passages else _normalise(text, passages)
        self._sources = [ParsedPassage(passage) for passage in passages]
        self._searches = 0
        sentences = find_statements(self.text, find_marks(self.text, texts))
        if not find_passages and (repetitions := find_repeats(sentences)):
            self.text = remove_spans(self.text, repetitions)
            sentences = find_statements(self.text, find_marks(self.text, texts))
        self.scored_statements = list(map(self._score, sentences))

    def unsupported_spans(self) -> list[tuple[int, int]]:
        """Return the spans in `text` of unsupported statements, with their marks."""
        unsupported = (
            scored for scored in self.scored_statements if scored.is_counted and scored.finding.verdict == "unsupported"
        )
        return [(scored.sentence.start, scored.sentence.stop) for scored in unsupported]

    def claims(self) -> list[Claim]:
        """Return the claims for a verifier: all statements and remarks, except verbatim copies of a source."""
        return [
            Claim(place, scored.sentence.bare, tuple(self._numbers_of(scored.sentence) or self._all_numbers))
            for place, scored in enumerate(self.scored_statements)
            if (scored.sentence.is_statement or scored.sentence.may_be_remark)
            and scored.finding.reason != "verbatim"
            and len(scored.sentence.bare) <= MAX_CHARS
            and self._sources
        ]

    async def consult(self, verifier: Verifier, question: str, tokens: int) -> None:
        """Have the verifier judge all claims, in batches that fit into `tokens`. Raises ModelError."""
        passages = [source.passage for source in self._sources]
        for claims in list(batch_claims(self.claims(), passages, tokens)):
            judgements = await verifier.verify(claims, passages, question)
            for claim, judgement in zip(claims, judgements, strict=False):
                if judgement is not None:
                    self._apply(claim, judgement, verifier.verifier_kind)

    def _apply(self, claim: Claim, judgement: ClaimJudgement, by: CheckedBy) -> None:
        scored = self.scored_statements[claim.place]
        score = judgement.score
        if score is None:  # the rules' score orders statements with the same verdict
            score = round((RANK[judgement.verdict] + scored.finding.score) / 3, 4)
        scored.finding = Finding(judgement.verdict, score, "model")
        scored.by, scored.relevant = by, judgement.relevant
        if not scored.quotes:  # show the closest sentence, although the rules found no support
            parsed = ParsedClaim(extract_claim(claim.statement))
            quotes = [self._sources[n - 1].best_quote(parsed) for n in claim.cited]
            scored.quotes = sorted(quotes, key=lambda quote: -parsed.share(quote.coverage.term_bits))[:1]

    def result(self) -> CheckedText:
        """Return the text with numbered citations and the verdict of each statement."""
        citations: dict[tuple[str, int, int], Citation] = {}
        statements: list[Statement] = []
        parts, length, place = [], 0, 0
        for scored in self.scored_statements:
            sentence, finding = scored.sentence, scored.finding
            quotes = scored.quotes if scored.is_counted and finding.verdict != "unsupported" else []
            marks = tuple(dict.fromkeys(_cite(quote, citations).n for quote in quotes))
            gap = self.text[place : sentence.start]
            marked = _with_marks(sentence.bare, marks)
            if scored.is_counted:
                start = length + len(gap)
                end = start + len(marked if _is_row(sentence.bare) else sentence.bare)
                details = (finding.reason, scored.by, finding.score, scored.relevant)
                statements.append(Statement(start, end, finding.verdict, marks, *details))
            parts += [gap, marked]
            length += len(gap) + len(marked)
            place = sentence.stop
        text = "".join([*parts, self.text[place:]])
        lead = len(text) - len(text.lstrip())
        shifted = tuple(replace(item, start=item.start - lead, end=item.end - lead) for item in statements)
        return CheckedText(text.strip(), tuple(citations.values()), shifted)

    @property
    def _all_numbers(self) -> range:
        return range(1, len(self._sources) + 1)

    def _numbers_of(self, sentence: Sentence) -> list[int]:
        numbers = self._find_passages(sentence.bare) if self._find_passages else sentence.marks
        return [n for n in numbers if n in self._all_numbers]

    def _score(self, sentence: Sentence) -> ScoredStatement:
        if not (sentence.is_statement or sentence.may_be_remark) or len(sentence.bare) > MAX_CHARS:
            return ScoredStatement(sentence)
        claim, numbers = ParsedClaim(extract_claim(sentence.bare)), self._numbers_of(sentence)
        quotes = [self._sources[n - 1].best_quote(claim) for n in numbers]
        finding, quotes = _best_quotes(claim, quotes)
        if finding.verdict != "supported" and (quote := self._find_elsewhere(claim, numbers)):
            return ScoredStatement(sentence, _judge_quote(claim, quote), [quote])
        return ScoredStatement(sentence, finding, quotes)

    def _find_elsewhere(self, claim: ParsedClaim, numbers: Sequence[int]) -> Quote | None:
        """Return the best quote of the passages that the statement does not name, if its support is clear."""
        self._searches += 1
        others = [n for n in self._all_numbers if n not in numbers] if self._searches <= MAX_SEARCHES else []
        quotes = (self._sources[n - 1].best_quote(claim) for n in others)
        best = max(quotes, key=lambda quote: _judge_quote(claim, quote).score, default=None)
        return best if best and _judge_quote(claim, best).score >= CLEAR_SCORE else None


async def check_with(
    text: str, passages: Sequence[Passage], verifiers: Sequence[Verifier], question: str, tokens: int
) -> Check:
    """Check a text, with the judgements of the first verifier that answers, or by rules alone if none does."""
    check = await asyncio.to_thread(Check, text, passages)
    for verifier in verifiers:
        try:
            await check.consult(verifier, question, tokens)
            break
        except ModelError as error:
            log.info("The check by %s failed (%s)", verifier.verifier_kind, error.code)
    return check


def check(text: str, passages: Sequence[Passage]) -> CheckedText:
    """Check every statement of `text` by rules alone; see Check."""
    return Check(text, passages).result()


def _normalise(text: str, passages: Sequence[Passage]) -> str:
    """Return the text with all marks in one form, and without links."""
    texts = [passage.text for passage in passages]
    normalised = normalise_marks(wrap_code(text, texts), texts, [passage.title for passage in passages])
    return remove_links(normalised, find_addresses(texts))


def _best_quotes(claim: ParsedClaim, quotes: Sequence[Quote]) -> tuple[Finding, list[Quote]]:
    """Return the verdict and quotes of the named passages: the fewest that contain the most of the statement."""
    if not quotes:
        return _NO_SUPPORT, []
    if verbatim := [quote for quote in quotes if quote.verbatim]:
        return _VERBATIM, verbatim[:MAX_QUOTES]
    ranked = sorted(quotes, key=lambda quote: -support_score(claim, [quote]))
    best = max((ranked[:count] for count in range(1, MAX_QUOTES + 1)), key=lambda some: support_score(claim, some))
    evidence = [quote.source.evidence for quote in quotes]
    finding = judge(claim, best, evidence)
    if finding.verdict != "supported" and (joint := judge(claim, ranked[:MAX_QUOTES], evidence)).verdict == "supported":
        finding, best = joint, ranked[:MAX_QUOTES]
    if len(best) == 1 and finding.verdict == "supported":
        best = [quote for quote in ranked if support_score(claim, [quote]) >= SUPPORTED][:MAX_QUOTES] or best
    return finding, best


def _judge_quote(claim: ParsedClaim, quote: Quote) -> Finding:
    return _VERBATIM if quote.verbatim else judge(claim, [quote], [quote.source.evidence])


def _with_marks(bare: str, marks: Sequence[int]) -> str:
    """Append the marks to the sentence, or to the last cell of a table row."""
    citations = "".join(f"[{n}]" for n in marks)
    if _is_row(bare) and marks:
        return f"{bare[:-1].rstrip()} {citations} |"
    return bare + citations


def _is_row(bare: str) -> bool:
    return bare.startswith("|") and bare.endswith("|") and len(bare) > 1


def _cite(quote: Quote, citations: dict[tuple[str, int, int], Citation]) -> Citation:
    """Return the citation of a quote, which gets the next number in `citations` when it first appears."""
    passage = quote.source.passage
    start, end = passage.start + quote.start, passage.start + quote.end
    section = find_section(passage.text, passage.section, quote.start)
    fields = (passage.url, passage.url_hash, passage.title, quote.text, start, end, section, passage.library)
    return citations.setdefault((passage.url_hash, start, end), Citation(len(citations) + 1, *fields))
