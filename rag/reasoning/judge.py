"""Judgements of passages: whether each answers a question, and if it almost does, what it lacks.

A chat model judges, or rules by the share of the question in a passage and the new names there. If the model fails,
the rules judge its level.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import BaseModel, Field

from rag.checking.terms import whole_sentences
from rag.locales import say
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import BEARS_ON_IT, ExtractiveReasoner
from rag.reasoning.hops import Lead, RulePlanner, bare
from rag.text import question_language
from rag.types import Notice, Passage

Score = Literal[0, 1, 2]
"""2 answers the question, 1 is relevant but lacks something, 0 is not relevant."""

JUDGED: Final = 5
"""Best passages of a search that are judged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's verdict on a passage. `missing`, for a 1, is a standalone question for what it lacks.

    `quote` is the sentence, verbatim, that answers or is relevant; `worth` (0 to 1) the likelihood that `missing` leads
    to the answer, if a judge can estimate it.
    """

    score: Score
    missing: str = ""
    reason: str = ""
    quote: str = ""
    worth: float = 0.0


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
    """A judge that asks a chat model, in one call for all passages."""

    def __init__(self, chat: ChatReasoner) -> None:
        self._chat = chat

    async def judge(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Judge each of the passages, which were found for `question`, a part of the `whole`. Raises ModelError.

        A passage that the model skips is not relevant; a quote that is not in its passage is dropped.
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


_ANSWERS: Final = 0.8
"""Minimum share of the question's words, by IDF, in a passage that answers it; from HotpotQA and MuSiQue questions."""


class RuleJudge:
    """A judge that compares words, and quotes the passages."""

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self._quoter = quoter

    async def judge(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        return await asyncio.to_thread(self._judged, question, whole, passages)

    def _judged(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Judge by words; each page that the question compares answers its side."""
        sides = self._planner.sides(question, passages)
        leads: dict[int, Lead] = {}
        for lead in sorted(self._planner.leads(whole, question, passages), key=lambda one: one.chance):
            leads[lead.passage] = lead
        told = zip(passages, self._quoter.shares(question, passages), strict=True)
        judged = [
            _judged_by_words(question, share, bare(passage.title) in sides, leads.get(place))
            for place, (passage, share) in enumerate(told)
        ]
        return [replace(one, quote=self._quote(question, passages[at])) for at, one in enumerate(judged)]

    def _quote(self, question: str, passage: Passage) -> str:
        """Return the most relevant sentence of the passage, verbatim, without list marks before it."""
        quoted = next((one.quoted for one in self._quoter.chosen(question, [passage])), None)
        if quoted is None:
            return ""
        return quoted.lines[0] if quoted.lines[0] in passage.text else quoted.text

    async def answer(
        self, parts: Sequence[tuple[str, Sequence[int]]], passages: Sequence[Passage]
    ) -> AsyncIterator[str]:
        """Yield quotes for each question of `parts` from the passages with these numbers, from 1; no sentence twice."""
        said, between = set[str](), ""
        for question, numbers in parts:
            for quote in await self._quoter.quotes(question, numbers, passages, said):
                yield between + quote
                between = "\n\n"

    def unnamed(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the names of the question that no passage has: see `ExtractiveReasoner`."""
        return self._quoter.unnamed(question, passages)


def _judged_by_words(question: str, share: float, is_side: bool, lead: Lead | None) -> Judgement:
    score: Score = 2 if is_side or share >= _ANSWERS else 1 if lead and share >= BEARS_ON_IT else 0
    code = ("judge_beside", "judge_leads", "judge_side" if is_side else "judge_holds")[score]
    params = {"percent": round(100 * share), "name": lead.name if lead else ""}
    reason = say(Notice(code, params), question_language(question))
    missing = lead.text if lead and score == 1 else ""
    return Judgement(score, missing, reason, worth=lead.chance if lead and score == 1 else 0.0)
