"""Judging without a model: by what of a question stands in a passage, and the new names that it leads on to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from rag.locales import say
from rag.reasoning.extractive import BEARS_ON_IT, ExtractiveReasoner
from rag.reasoning.hops import Lead, RulePlanner, bare
from rag.reasoning.judge import Judgement, Score
from rag.text import question_language
from rag.types import Notice, Passage

_ANSWERS: Final = 0.8
"""A passage with this share of the question's words, by IDF, answers it. On questions of HotpotQA and MuSiQue."""


class RuleJudge:
    """Judges by words, and quotes what was judged."""

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self._quoter = quoter

    async def judge(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        return await asyncio.to_thread(self._judged, question, whole, passages)

    def _judged(self, question: str, whole: str, passages: Sequence[Passage]) -> list[Judgement]:
        """Of a question that sets pages beside each other, each of these pages answers its side."""
        sides = self._planner.sides(question, passages)
        leads: dict[int, Lead] = {}
        for lead in sorted(self._planner.leads(whole, question, passages), key=lambda one: one.chance):
            leads[lead.passage] = lead
        told = zip(passages, self._quoter.shares(question, passages), strict=True)
        judged = [
            _judgement(question, share, bare(passage.title) in sides, leads.get(place))
            for place, (passage, share) in enumerate(told)
        ]
        return [replace(one, quote=self._quote(question, passages[at])) for at, one in enumerate(judged)]

    def _quote(self, question: str, passage: Passage) -> str:
        """The sentence that bears most on the question, as it stands there, without the marks of a list before it."""
        quoted = next((one.quoted for one in self._quoter.chosen(question, [passage])), None)
        if quoted is None:
            return ""
        return quoted.lines[0] if quoted.lines[0] in passage.text else quoted.text

    async def answer(
        self, parts: Sequence[tuple[str, Sequence[int]]], passages: Sequence[Passage]
    ) -> AsyncIterator[str]:
        """Quotes for each question of `parts` from the passages of these numbers, from 1; no sentence twice."""
        said, between = set[str](), ""
        for question, numbers in parts:
            for quote in await self._quoter.quotes(question, numbers, passages, said):
                yield between + quote
                between = "\n\n"

    def unnamed(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """As `Quoter.unnamed`."""
        return self._quoter.unnamed(question, passages)


def _judgement(question: str, share: float, is_side: bool, lead: Lead | None) -> Judgement:
    score: Score = 2 if is_side or share >= _ANSWERS else 1 if lead and share >= BEARS_ON_IT else 0
    code = ("judge_beside", "judge_leads", "judge_side" if is_side else "judge_holds")[score]
    params = {"percent": round(100 * share), "name": lead.name if lead else ""}
    reason = say(Notice(code, params), question_language(question))
    missing = lead.text if lead and score == 1 else ""
    return Judgement(score, missing, reason, worth=lead.chance if lead and score == 1 else 0.0)
