"""Judgements of passages: whether each answers a question, and if it almost does, what it lacks.

A chat model judges. Without one, or if it fails, rules judge by the share of the question's words in a passage and the
new names there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Literal

from pydantic import BaseModel, Field

from rag.checking.rules import find_sentences
from rag.locales import say
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import MIN_SHARE, ExtractiveReasoner
from rag.reasoning.hops import CandidateName, RulePlanner, trim_title
from rag.text import question_language
from rag.types import Notice, Passage

Score = Literal[0, 1, 2]
"""2 answers the question, 1 is relevant but lacks something, 0 is not relevant."""

MAX_JUDGED: Final = 5
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


_MAX_CHARACTERS = 400  # characters of what is missing


class PassageReply(BaseModel):
    """The verdict on one passage."""

    number: int
    score: Score = Field(description="2 answers the question, 1 is relevant but lacks something, 0 is not relevant")
    missing: str = Field(default="", description="for a 1: one self-contained question about what it lacks")
    reason: str = Field(default="", description="the reason, in a few words")
    quote: str = Field(default="", description="for 1 and 2: the relevant sentence of the passage, copied verbatim")


class JudgeReply(BaseModel):
    """One verdict for each passage."""

    passages: list[PassageReply]


class ChatJudge:
    """A judge that asks a chat model, in one call for all passages."""

    def __init__(self, chat: ChatReasoner) -> None:
        self._chat = chat

    async def judge(self, question: str, main_question: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Judge the passages, which were found for `question`, a part of the `main_question`. Raises ModelError.

        A passage that the model skips is not relevant; a quote that is not in its passage is dropped.
        """
        reply = await self._chat.fill(JudgeReply, requests.judge(self._chat.texts, question, main_question, passages))
        verdicts = {verdict.number: verdict for verdict in reply.passages}
        judgements = []
        for number, passage in enumerate(passages, 1):
            verdict = verdicts.get(number, PassageReply(number=number, score=0))
            missing = " ".join(verdict.missing.split())[:_MAX_CHARACTERS] if verdict.score == 1 else ""
            reason = " ".join(verdict.reason.split())[:_MAX_CHARACTERS]
            quote = find_sentences(verdict.quote, passage.text)
            judgements.append(Judgement(verdict.score, missing, reason, quote))
        return judgements


_ANSWER_SHARE: Final = 0.8
"""Minimum share of the question's words, by IDF, in a passage that answers it; tuned on HotpotQA and MuSiQue."""


class RuleJudge:
    """A judge that compares words, and quotes the passages."""

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self.quoter = quoter

    async def judge(self, question: str, main_question: str, passages: Sequence[Passage]) -> list[Judgement]:
        return await asyncio.to_thread(self._judge, question, main_question, passages)

    def _judge(self, question: str, main_question: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Judge by words; each page that the question compares answers its side."""
        sides = self._planner.find_compared(question, passages)
        by_chance = sorted(self._planner.find_candidates(main_question, question, passages), key=attrgetter("chance"))
        candidates = {candidate.passage: candidate for candidate in by_chance}
        passage_shares = zip(passages, self.quoter.compute_shares(question, passages), strict=True)
        verdicts = [
            _judge_by_words(question, share, trim_title(passage.title) in sides, candidates.get(place))
            for place, (passage, share) in enumerate(passage_shares)
        ]
        return [replace(verdict, quote=self._quote(question, passages[i])) for i, verdict in enumerate(verdicts)]

    def _quote(self, question: str, passage: Passage) -> str:
        """Return the most relevant sentence of the passage, verbatim, without list marks before it."""
        quotable = next((sentence.unit for sentence in self.quoter.select(question, [passage])), None)
        if quotable is None:
            return ""
        return quotable.lines[0] if quotable.lines[0] in passage.text else quotable.text

    async def answer(
        self, parts: Sequence[tuple[str, Sequence[int]]], passages: Sequence[Passage]
    ) -> AsyncIterator[str]:
        """Yield quotes for each question of `parts` from the passages with these numbers, from 1; no sentence twice."""
        seen, separator = set[str](), ""
        for question, numbers in parts:
            for _, quote in await self.quoter.select_quotes(question, numbers, passages, seen):
                yield separator + quote
                separator = "\n\n"


def _judge_by_words(question: str, share: float, is_side: bool, candidate: CandidateName | None) -> Judgement:
    score: Score = 2 if is_side or share >= _ANSWER_SHARE else 1 if candidate and share >= MIN_SHARE else 0
    code = ("judge_beside", "judge_leads", "judge_side" if is_side else "judge_holds")[score]
    params = {"percent": round(100 * share), "name": candidate.name if candidate else ""}
    reason = say(Notice(code, params), question_language(question))
    if candidate and score == 1:
        return Judgement(score, candidate.text, reason, worth=candidate.chance)
    return Judgement(score, "", reason)
