"""Whether passages bear statements out, asked of whatever can judge: a chat model, a local model, or rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pydantic import BaseModel, Field

from rag.models.verifier import Pair, SupportModel
from rag.prompts.requests import Prompt, on_passages, passage_block
from rag.prompts.texts import PromptTexts
from rag.text import estimate_tokens, is_chinese, without_struck
from rag.types import CheckedBy, Passage, Verdict

RANK: Final[dict[Verdict, int]] = {"unsupported": 0, "partly": 1, "supported": 2}
_RULES_TOKENS: Final = 600  # of a request that are neither passages nor statements
_AS_ANSWERED: Final = 10  # passages of an answer


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that is to be judged: `place` among the answer's, `cited` the 1-based passages that it rests on."""

    place: int
    statement: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """`score` (0 to 1), where one is known, orders all that were judged as their verdicts do; `relevant` says
    whether the statement bears on the question."""

    verdict: Verdict
    score: float | None = None
    relevant: bool = True


@runtime_checkable
class Verifier(Protocol):
    """Judges statements. The best that is there answers: the connected chat model, a local model, else rules."""

    @property
    def checks_by(self) -> CheckedBy:
        """What the screen says about who checked."""
        ...

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        """A judgement for each claim, in order; None where nothing was said of it.

        `passages` are all that the answer was written from. Work that keeps a processor busy belongs in a
        thread. Raises ModelError, and nothing else, when the model does not answer.
        """
        ...


class Judged(BaseModel):
    """What is said of one statement."""

    number: int = Field(description="the statement's number")
    verdict: Verdict = Field(
        description="supported: its passages say all of it; partly: they say a part; unsupported: they do not say it"
        " or say otherwise"
    )
    relevant: bool = Field(default=True, description="false if it does not bear on the question")


class Judgements(BaseModel):
    """One entry for each statement."""

    verdicts: list[Judged] = Field(description="one entry for each statement's number")


def batches(claims: Sequence[Claim], passages: Sequence[Passage], tokens: int) -> Iterator[list[Claim]]:
    """The claims in order, in as few requests as hold them and the passages that they cite."""
    sizes = [estimate_tokens(passage.text) + 40 for passage in passages]
    batch: list[Claim] = []
    for claim in claims:
        together = [*batch, claim]
        cited = {n for one in together for n in one.cited}
        needed = sum(sizes[n - 1] for n in cited) + sum(estimate_tokens(one.statement) + 12 for one in together)
        if batch and needed > tokens - _RULES_TOKENS:
            yield batch
            together = [claim]
        batch = together
    if batch:
        yield batch


def judging(texts: PromptTexts, claims: Sequence[Claim], passages: Sequence[Passage], question: str) -> Prompt:
    """Ask for a verdict on each claim. Statements and passages are quotes, wrapped so that they stay quotes."""
    cited = sorted({n for claim in claims for n in claim.cited})
    if len(passages) <= _AS_ANSWERED:  # the same block as the answer's, which its server may have kept
        cited = list(range(1, len(passages) + 1))
    block, marker = passage_block([passages[n - 1] for n in cited], numbers=cited)
    lines = [_line(number, claim, len(passages)) for number, claim in enumerate(claims, 1)]
    said = "".join(claim.statement for claim in claims)
    asked, stated = ("问题", "陈述") if is_chinese(said) else ("Question", "Statements")
    head = f"{asked}: {question}\n\n" if question else ""
    asked_now = f"{head}{stated}:\n" + "\n".join(lines).replace(marker, "passage")
    base = texts.of("passages", question or said)
    return on_passages([texts.of("check", said)], base, block, asked_now, marker=marker, count=len(claims))


def _line(number: int, claim: Claim, count: int) -> str:
    cites = "".join(f"[{n}]" for n in claim.cited) if len(claim.cited) < count else ""
    return f"{number}. {' '.join(claim.statement.split()).replace('<', '‹')} {cites}".rstrip()


def read_judgements(filled: Judgements | None, count: int) -> list[Judgement | None]:
    """The judgements in order; the harshest where a number was judged twice."""
    said: dict[int, Judged] = {}
    for one in filled.verdicts if filled else []:
        if one.number not in said or RANK[one.verdict] < RANK[said[one.number].verdict]:
            said[one.number] = one
    found = (said.get(number) for number in range(1, count + 1))
    return [Judgement(one.verdict, None, one.relevant) if one else None for one in found]


class LocalVerifier:
    """Implements Verifier: each claim is held against the passages that it cites, with their titles."""

    checks_by: CheckedBy = "local"

    def __init__(self, model: SupportModel) -> None:
        self._model = model

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        pairs = [
            Pair(claim.statement, tuple(_read(passages[n - 1]) for n in claim.cited), question) for claim in claims
        ]
        found = await asyncio.to_thread(self._model.supports, pairs)
        return [Judgement(one.verdict, one.score) for one in found]


def _read(passage: Passage) -> str:
    return "\n".join(filter(None, (passage.title, passage.header, without_struck(passage.text))))
