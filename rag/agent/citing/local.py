"""A local model as a Verifier."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rag.agent.citing.verifier import Claim, Judgement
from rag.models.verifier import Pair, SupportModel
from rag.types import CheckedBy, Passage


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
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text
