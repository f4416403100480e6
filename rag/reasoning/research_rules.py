"""Research without a model: by names, shared terms, and quotes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from rag.locales import say
from rag.reasoning.extractive import ExtractiveReasoner, Sentence
from rag.reasoning.hops import Planned, RulePlanner
from rag.reasoning.research import (
    SUMMARY,
    Aspect,
    Choice,
    Part,
    Plan,
    Progress,
    Query,
    Reading,
    SubQuestion,
    Task,
)
from rag.text import first_sentence, literal, question_language
from rag.types import Notice, Passage

_DISTILLED: Final = 2  # sentences that a step is remembered by


class RuleResearcher:
    """What `research_chat.ChatResearcher` does, without a model."""

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self._quoter = quoter

    async def plan(self, question: str, titles: Sequence[str]) -> Plan:
        """A step, and an aspect, for each thing that the question asks about."""
        planned = self._planner.plan(question)
        aspects = tuple(Aspect(f"a{n}", one.text, "clause") for n, one in enumerate(planned, 1))
        return Plan(aspects, tuple(_step(one, question) for one in planned))

    async def word(self, task: Task) -> Query:
        return Query(task.step.text)

    async def read(self, task: Task, passages: Sequence[Passage]) -> Reading:
        if not passages:
            return Reading()
        found = (await asyncio.to_thread(self._chosen, task.step.text, passages))[:_DISTILLED]
        sentences = tuple((one.passage, one.quoted.text) for one in found)
        met = [one.id for one in task.aspects if any(await self._quoter.grade(one.text, passages))]
        return Reading(sentences, first_sentence(sentences[0][1], SUMMARY) if sentences else "", tuple(met))

    async def decide(self, progress: Progress, *, revisions: int) -> Choice:
        """Do what was planned; then follow the names that were found, while they are new."""
        language = question_language(progress.question)
        if progress.open_steps:
            return Choice("continue", say(Notice("research_by_plan"), language))
        found = [list(passages) for passages in progress.found]
        planned = await asyncio.to_thread(self._planner.revise, progress.question, progress.asked, found)
        if not planned or not revisions:
            return Choice("finish", say(Notice("research_no_new_name"), language))
        steps = tuple(_step(one, progress.question) for one in planned)
        return Choice("revise", say(Notice("research_new_name"), language), steps)

    async def report(self, question: str, parts: Sequence[Part], passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Quotes by sub-question, no sentence twice.

        Where the rules made up the sub-question, its quotes have to bear on the question, and stand below the title of
        their page.
        """
        said, between = set[str](), ""
        for part in parts:
            of_question = part.heading in question
            about = "" if of_question else question
            quotes = await self._quoter.quotes(part.heading, part.numbers, passages, said, about=about)
            heading = part.heading if of_question else passages[part.numbers[0] - 1].title
            above = [f"## {literal(heading)}"] if quotes and len(parts) > 1 else []
            for piece in (*above, *quotes):
                yield between + piece
                between = "\n\n"

    def _chosen(self, question: str, passages: Sequence[Passage]) -> list[Sentence]:
        return list(self._quoter.chosen(question, passages))

    def unnamed(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """As `Quoter.unnamed`."""
        return self._quoter.unnamed(question, passages)


def _step(planned: Planned, question: str) -> SubQuestion:
    return SubQuestion(planned.text, say(planned.justification, question_language(question)))
