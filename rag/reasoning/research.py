"""Research: the values that a plan is made of, and planning, reading and deciding by rules,
which go by names, shared terms and quotes.

`research_chat` does the same with a chat model. Where the model fails, its step is done by the rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rag.locales import say
from rag.reasoning.extractive import ExtractiveReasoner, Sentence
from rag.reasoning.hops import Planned, RulePlanner
from rag.text import first_sentence, literal, question_language
from rag.types import Notice, Passage

AspectKind = Literal["name", "attribute", "clause", "comparison"]
Tool = Literal["library", "web"]
Leg = Literal["", "keyword", "dense", "hybrid"]
Action = Literal["continue", "revise", "finish"]

MOST_STEPS: Final = 6
"""Steps of a first plan."""
MOST_NEW: Final = 2
"""Steps that one revision may add."""
SUMMARY: Final = 160
"""Characters of what a step is remembered by."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that a full answer has to tell."""

    id: str
    text: str
    kind: AspectKind = "attribute"


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A step as it was planned. `needs` are the numbers, from 1, of steps of the same list that must come first."""

    text: str
    justification: str = ""
    tool: Tool = "library"
    keywords: tuple[str, ...] = ()
    section: str = ""
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """`unclear` is what a person should be asked first, where the question can mean different things."""

    aspects: tuple[Aspect, ...]
    steps: tuple[SubQuestion, ...]
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A step that is at work: the question it is a part of, its sub-question, and what earlier steps found."""

    question: str
    step: SubQuestion
    aspects: tuple[Aspect, ...] = ()
    past: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, by which legs (empty: as is set) and why, under which heading."""

    text: str
    leg: Leg = ""
    reason: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a step's passages say: sentences by the place of their passage, verbatim; one sentence; aspects met."""

    sentences: tuple[tuple[int, str], ...] = ()
    summary: str = ""
    met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: sub-questions asked and what each found, best first; aspects open; steps not yet begun."""

    question: str
    asked: tuple[str, ...]
    found: tuple[tuple[Passage, ...], ...]
    past: tuple[str, ...] = ()
    open_aspects: tuple[Aspect, ...] = ()
    open_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """How to go on; `steps` are at most MOST_NEW, for `revise`."""

    action: Action
    justification: str = ""
    steps: tuple[SubQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report: a heading, and the numbers, from 1, of the passages that its step brought."""

    heading: str
    numbers: tuple[int, ...] = field(default=())


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
