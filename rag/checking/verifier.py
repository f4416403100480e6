"""Verifiers that judge whether passages support statements: a chat model, a local model, or rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pydantic import BaseModel, Field

from rag.models.cross_encoders import Pair, SupportModel
from rag.prompts.requests import Prompt, build_on_passages, passage_block
from rag.prompts.texts import PromptTexts
from rag.text import estimate_tokens, is_chinese, strip_struck
from rag.types import CheckedBy, Passage, Verdict

RANK: Final[dict[Verdict, int]] = {"unsupported": 0, "partly": 1, "supported": 2}
_RULES_TOKENS: Final = 600  # of a request without its passages and statements
_ANSWER_PASSAGES: Final = 10  # passages of an answer


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement to judge: `place` is its index in the answer, `cited` are the passages to compare with, 1-based."""

    place: int
    statement: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """A verdict on a claim. `score` (0 to 1), if any, orders claims in line with verdicts; `relevant` is false if the
    claim is off-topic."""

    verdict: Verdict
    score: float | None = None
    relevant: bool = True


@runtime_checkable
class Verifier(Protocol):
    """A judge of statements. The best available one is used: the connected chat model, a local model, or rules."""

    @property
    def verifier_kind(self) -> CheckedBy:
        """The kind of verifier, for display."""
        ...

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        """Return a judgement for each claim, in order; None for a claim without one.

        `passages` are all passages that the answer was written from. CPU-bound work belongs in a thread. Raises only
        ModelError, if the model does not answer.
        """
        ...


class Judged(BaseModel):
    """The verdict on one statement."""

    number: int = Field(description="the number of the statement")
    verdict: Verdict = Field(
        description="supported: its passages state all of it; partly: they state a part of it; unsupported: they do not"
        " state it, or contradict it"
    )
    relevant: bool = Field(default=True, description="false if it has nothing to do with the question")


class Judgements(BaseModel):
    """One verdict for each statement."""

    verdicts: list[Judged] = Field(description="one entry for each statement number")


def batch_claims(claims: Sequence[Claim], passages: Sequence[Passage], tokens: int) -> Iterator[list[Claim]]:
    """Yield the claims in order, in batches that fit into `tokens` together with the passages that they cite."""
    sizes = [estimate_tokens(passage.text) + 40 for passage in passages]
    batch: list[Claim] = []
    for claim in claims:
        candidate = [*batch, claim]
        cited = {n for member in candidate for n in member.cited}
        size = sum(sizes[n - 1] for n in cited) + sum(estimate_tokens(member.statement) + 12 for member in candidate)
        if batch and size > tokens - _RULES_TOKENS:
            yield batch
            candidate = [claim]
        batch = candidate
    if batch:
        yield batch


def build_check(texts: PromptTexts, claims: Sequence[Claim], passages: Sequence[Passage], question: str) -> Prompt:
    """Ask for a verdict on each claim. Statements and passages are wrapped so that they remain quotes."""
    cited = sorted({n for claim in claims for n in claim.cited})
    if len(passages) <= _ANSWER_PASSAGES:  # the same block as the answer's, which its server may have cached
        cited = list(range(1, len(passages) + 1))
    block, marker = passage_block([passages[n - 1] for n in cited], numbers=cited)
    lines = []
    for number, claim in enumerate(claims, 1):
        cites = "".join(f"[{n}]" for n in claim.cited) if len(claim.cited) < len(passages) else ""
        lines.append(f"{number}. {' '.join(claim.statement.split()).replace('<', '‹')} {cites}".rstrip())
    statements = "".join(claim.statement for claim in claims)
    question_label, statements_label = ("问题", "陈述") if is_chinese(statements) else ("Question", "Statements")
    head = f"{question_label}: {question}\n\n" if question else ""
    request = f"{head}{statements_label}:\n" + "\n".join(lines).replace(marker, "passage")
    base = texts.for_job("passages", question or statements)
    return build_on_passages(
        [texts.for_job("check", statements)], base, block, request, marker=marker, count=len(claims)
    )


def read_judgements(filled: Judgements, count: int) -> list[ClaimJudgement | None]:
    """Return the judgements in order; the harshest if a number has several."""
    harshest: dict[int, Judged] = {}
    for verdict in filled.verdicts:
        if verdict.number not in harshest or RANK[verdict.verdict] < RANK[harshest[verdict.number].verdict]:
            harshest[verdict.number] = verdict
    verdicts = (harshest.get(number) for number in range(1, count + 1))
    return [ClaimJudgement(verdict.verdict, None, verdict.relevant) if verdict else None for verdict in verdicts]


class LocalVerifier:
    """A Verifier that compares each claim with the passages that it cites, including their titles."""

    verifier_kind: CheckedBy = "local"

    def __init__(self, model: SupportModel) -> None:
        self._model = model

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
        pairs = [
            Pair(claim.statement, tuple(_text_of(passages[n - 1]) for n in claim.cited), question) for claim in claims
        ]
        results = await asyncio.to_thread(self._model.supports, pairs)
        return [ClaimJudgement(result.verdict, result.score) for result in results]


def _text_of(passage: Passage) -> str:
    return "\n".join(filter(None, (passage.title, passage.header, strip_struck(passage.text))))
