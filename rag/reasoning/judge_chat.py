"""Judging by a chat model."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from rag.checking.verbatim import whole_sentences
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.judge import Judgement, Score
from rag.types import Passage

_LONGEST = 400  # characters of what is missing


class PassageReply(BaseModel):
    """What is said of one passage."""

    number: int
    score: Score = Field(description="2 answers the question, 1 bears on it and lacks something, 0 beside the point")
    missing: str = Field(default="", description="for a 1: one question, complete in itself, for what it lacks")
    reason: str = Field(default="", description="why, in a few words")
    quote: str = Field(default="", description="for 1 and 2: the sentence of the passage, copied to the letter")


class JudgeReply(BaseModel):
    """One verdict for each passage."""

    passages: list[PassageReply]


class ChatJudge:
    """Judges with one call for all the passages that it is given."""

    def __init__(self, chat: ChatReasoner) -> None:
        self._chat = chat

    async def judge(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Judge each of the passages, which were found for `question`, a part of the `whole`. Raises ModelError.

        A passage that the model passed over is beside the point; a quote that does not stand in it is dropped.
        """
        reply = await self._chat.filled(JudgeReply, requests.judge(self._chat.texts, question, whole, passages))
        said = {one.number: one for one in reply.passages}
        return [_judgement(said.get(number), passage) for number, passage in enumerate(passages, 1)]


def _judgement(said: PassageReply | None, passage: Passage) -> Judgement:
    if said is None:
        return Judgement(0)
    quote = whole_sentences(said.quote, passage.text)
    missing = " ".join(said.missing.split())[:_LONGEST] if said.score == 1 else ""
    return Judgement(said.score, missing, " ".join(said.reason.split())[:_LONGEST], quote)
