"""RAGAS's and ALCE's metrics: the statements of an answer, checked against its passages and a reference.

Verdicts come from a `Supports`: rules, or the available verifier. A verdict of None means not judged; a metric without
any verdict is None, never 0.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag.background import BACKGROUND
from rag.checking.citations import Check
from rag.checking.statements import find_statements
from rag.checking.verifier import RANK, Claim, Verifier, batch_claims
from rag.errors import ModelError
from rag.types import Answer, CheckedBy, Passage, Verdict

Verdicts = Sequence[Verdict | None]
Supports = Callable[[Sequence[Claim], Sequence[Passage]], Verdicts]
"""Returns a verdict on each claim from its passages (1-based in `Claim.cited`); None if not judged."""

Encode = Callable[[str, Sequence[str]], NDArray[np.float32] | None]
"""Returns L2-normalised vectors of a question and of texts, (1 + texts, d); None if the model can't read them."""

_PARTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class CitedStatement:
    """A statement of an answer, the passages that it cites (1-based), and the displayed verdict, made by `by`."""

    text: str
    cited: tuple[int, ...] = ()
    verdict: Verdict | None = None
    by: CheckedBy = "rules"


def normalise_text(text: str) -> str:
    """Normalise text for the comparison of quotes: NFKC, lower case, no white space."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).lower()


# Judges


def by_rules(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
    """Judge claims by the rules of `rag.checking`, without a model."""
    return [_judge_by_rules(claim.statement, [passages[n - 1] for n in claim.cited]) for claim in claims]


def _judge_by_rules(statement: str, passages: Sequence[Passage]) -> Verdict | None:
    check = Check(statement, passages, find_passages=lambda _: range(1, len(passages) + 1))
    counted = (item.finding.verdict for item in check.scored_statements if item.is_counted)
    return min(counted, key=RANK.__getitem__, default=None)


def by_verifier(verifier: Verifier, tokens: int) -> Supports:
    """Return a judge that asks a verifier, in requests of up to `tokens`; unanswered claims get None. It blocks."""

    async def judge(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
        verdicts: list[Verdict | None] = []
        for batch in batch_claims(claims, passages, tokens):
            try:
                results = [entry.verdict if entry else None for entry in await verifier.verify(batch, passages)]
            except ModelError:
                results = []
            verdicts += [*results, *[None] * len(batch)][: len(batch)]
        return verdicts

    return lambda claims, passages: BACKGROUND.wait(judge(claims, passages)) if claims else []


# Statements


def passage_of(text: str, name: str = "reference") -> Passage:
    return Passage(name, "", name, "", "", "", (), text, 0, len(text))


def split_answer(answer: Answer) -> list[CitedStatement]:
    """Return an answer's checked statements; if it has none, its sentences with their citations."""
    places: dict[int, int] = {}  # of citations: the passage that contains the quote, else overlaps it or is of its page
    for quote in answer.citations:
        own = [(n, passage) for n, passage in enumerate(answer.passages, 1) if passage.url_hash == quote.url_hash]
        whole = [n for n, passage in own if passage.start <= quote.start and quote.end <= passage.end]
        parts = [n for n, passage in own if passage.start < quote.end and quote.start < passage.end]
        if own:
            places[quote.n] = (whole or parts or [n for n, _ in own])[0]

    def cite(marks: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[n] for n in marks if n in places))

    if answer.statements:
        return [CitedStatement(answer.text[s.start : s.end], cite(s.marks), s.verdict, s.by) for s in answer.statements]
    return [CitedStatement(s.bare, cite(s.marks)) for s in find_statements(answer.text) if s.is_statement]


def statements_of(text: str) -> list[str]:
    """Return the statements of a text, without citation marks; if it has none, such as a name, the whole text."""
    statements = [sentence.bare for sentence in find_statements(text) if sentence.is_statement]
    return statements or [text.strip()][: bool(re.search(r"\w", text))]


def check_all(statements: Sequence[str], passages: Sequence[Passage], supports: Supports) -> Verdicts:
    """Check each statement against all passages."""
    everywhere = tuple(range(1, len(passages) + 1))
    claims = [Claim(place, statement, everywhere) for place, statement in enumerate(statements)]
    return supports(claims, passages) if passages else ["unsupported"] * len(claims)


# Metrics


def share_supported(verdicts: Verdicts, partly: float = 0.0) -> float | None:
    """Return the share of supported statements; partly supported ones count as `partly`."""
    weights = {"supported": 1.0, "partly": partly, "unsupported": 0.0}
    values = [weights[verdict] for verdict in verdicts if verdict is not None]
    return sum(values) / len(values) if values else None


def faithfulness(
    statements: Sequence[CitedStatement], passages: Sequence[Passage], supports: Supports
) -> dict[str, float | None]:
    """Return strict and lenient faithfulness, where "partly" counts as 0 and 0.5."""
    verdicts = [statement.verdict for statement in statements]
    if not any(verdicts):
        verdicts = list(check_all([statement.text for statement in statements], passages, supports))
    return {"faithfulness": share_supported(verdicts), "faithfulness_lenient": share_supported(verdicts, _PARTLY)}


def factual_f1(statements: Sequence[str], reference: str, supports: Supports) -> float | None:
    """Return F1 of an answer's statements (RAGAS's answer correctness, β = 1): true positives are statements that the
    reference supports, false negatives those of the reference that the answer does not support."""
    if not (expected := statements_of(reference)):
        return None
    right = check_all(statements, [passage_of(reference)], supports)
    recalled = check_all(expected, [passage_of(" ".join(statements))] if statements else [], supports)
    if None in (*right, *recalled):
        return None
    true = right.count("supported")
    wrong, missed = len(right) - true, len(recalled) - recalled.count("supported")
    return true / (true + (wrong + missed) / 2) if true else 0.0


def correctness(factual: float | None, similarity: float | None) -> float | None:
    """Return RAGAS's answer correctness: F1 of the statements, and cosine of answer and reference, weighted 3:1."""
    return None if factual is None or similarity is None else 0.75 * factual + 0.25 * similarity


def noise_sensitivity(
    statements: Sequence[str], reference: str, passages: Sequence[Passage], relevant: Sequence[bool], supports: Supports
) -> dict[str, float | None]:
    """Return RAGAS's noise sensitivity in both modes: the share of statements that are wrong but supported by a
    relevant passage, or only by irrelevant ones. Lower is better."""
    names = ("noise_sensitivity", "noise_sensitivity_irrelevant")
    right = check_all(statements, [passage_of(reference)], supports)
    if not right or None in right:
        return dict.fromkeys(names)
    wrong = [text for text, verdict in zip(statements, right, strict=True) if verdict != "supported"]
    pairs = [Claim(place, text, (n,)) for place, text in enumerate(wrong) for n in range(1, len(passages) + 1)]
    verdicts = supports(pairs, passages)
    if None in verdicts:
        return dict.fromkeys(names)
    supported = {
        (pair.place, relevant[pair.cited[0] - 1]) for pair, v in zip(pairs, verdicts, strict=True) if v == "supported"
    }
    by_relevant = sum((place, True) in supported for place in range(len(wrong)))
    by_others = sum((place, False) in supported and (place, True) not in supported for place in range(len(wrong)))
    return dict(zip(names, (by_relevant / len(statements), by_others / len(statements)), strict=True))


def citations(
    statements: Sequence[CitedStatement], passages: Sequence[Passage], supports: Supports
) -> dict[str, float | None]:
    """Return ALCE's metrics (Gao et al. 2023). Recall: the share of statements that their citations together support.
    Precision: the share of citations whose statement is supported, by this one alone or not without it."""
    claims: list[Claim] = []  # on all citations of a statement, on each one alone, and without each one
    for place, statement in enumerate(statements):
        alone = [(n,) for n in statement.cited]
        ways = dict.fromkeys([statement.cited, *alone, *(_others(statement.cited, n) for n in statement.cited)])
        claims += [Claim(place, statement.text, cited) for cited in ways if cited]
    verdicts = supports(claims, passages)
    if None in verdicts or not statements:
        return {"citation_precision": None, "citation_recall": None}
    supported = {(claim.place, claim.cited): v == "supported" for claim, v in zip(claims, verdicts, strict=True)}
    are_supported = [bool(s.cited) and supported[place, s.cited] for place, s in enumerate(statements)]
    is_needed = [
        are_supported[place] and (supported[place, (n,)] or not supported[place, _others(statement.cited, n)])
        for place, statement in enumerate(statements)
        for n in statement.cited
    ]
    return {
        "citation_precision": sum(is_needed) / len(is_needed) if is_needed else None,
        "citation_recall": sum(are_supported) / len(statements),
    }


def _others(numbers: Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(number for number in numbers if number != n)
