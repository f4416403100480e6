"""The values of a research plan, and planning, reading and deciding by rules, with names, shared terms and quotes.

`research_chat` does the same with a chat model. If the model fails, the rules do its step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rag.locales import say
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.hops import Planned, RulePlanner
from rag.text import escape_markdown, first_sentence, question_language
from rag.types import Notice, Passage

AspectKind = Literal["name", "attribute", "clause", "comparison"]
Tool = Literal["library", "web"]
Leg = Literal["", "keyword", "dense", "hybrid"]
Action = Literal["continue", "revise", "finish"]

MAX_STEPS: Final = 6
"""Maximum steps of a first plan."""
MAX_NEW_STEPS: Final = 2
"""Maximum steps that one revision adds."""
MAX_SUMMARY: Final = 160
"""Characters of a step's summary."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that a full answer must include."""

    id: str
    text: str
    kind: AspectKind = "attribute"


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A planned step. `needs` are the numbers, from 1, of steps in the same list that must come first."""

    text: str
    justification: str = ""
    tool: Tool = "library"
    keywords: tuple[str, ...] = ()
    section: str = ""
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """`unclear` is a question for the person to answer first, if theirs is ambiguous."""

    aspects: tuple[Aspect, ...]
    steps: tuple[SubQuestion, ...]
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A step in progress: the whole question, the sub-question, and the findings of earlier steps."""

    question: str
    step: SubQuestion
    aspects: tuple[Aspect, ...] = ()
    past: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A search: its text, its legs (empty for the configured ones), the reason, and a heading to search under."""

    text: str
    leg: Leg = ""
    reason: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The findings of a step: verbatim sentences by their passage's index, a one-sentence summary, and aspects met."""

    sentences: tuple[tuple[int, str], ...] = ()
    summary: str = ""
    met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run: sub-questions asked and the results of each, best first; open aspects; pending steps."""

    question: str
    asked: tuple[str, ...]
    found: tuple[tuple[Passage, ...], ...]
    past: tuple[str, ...] = ()
    open_aspects: tuple[Aspect, ...] = ()
    open_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The next action; `steps` are up to MAX_NEW_STEPS, for `revise`."""

    action: Action
    justification: str = ""
    steps: tuple[SubQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report: a heading, and the numbers, from 1, of its step's passages."""

    heading: str
    numbers: tuple[int, ...] = field(default=())


_MAX_SENTENCES: Final = 2  # sentences per step


class RuleResearcher:
    """The counterpart of `research_chat.ChatResearcher` without a model."""

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self.quoter = quoter

    async def plan(self, question: str, titles: Sequence[str]) -> Plan:
        """Plan a step and an aspect for each thing that the question asks about."""
        steps = self._planner.plan(question)
        aspects = tuple(Aspect(f"a{n}", step.text, "clause") for n, step in enumerate(steps, 1))
        return Plan(aspects, tuple(_step(step, question) for step in steps))

    async def word(self, task: Task) -> Query:
        return Query(task.step.text)

    async def read(self, task: Task, passages: Sequence[Passage]) -> Reading:
        if not passages:
            return Reading()
        matches = (await asyncio.to_thread(list, self.quoter.select(task.step.text, passages)))[:_MAX_SENTENCES]
        sentences = tuple((one.passage, one.quoted.text) for one in matches)
        met = [one.id for one in task.aspects if any(await self.quoter.grade(one.text, passages))]
        return Reading(sentences, first_sentence(sentences[0][1], MAX_SUMMARY) if sentences else "", tuple(met))

    async def decide(self, progress: Progress, *, revisions: int) -> Choice:
        """Continue with the planned steps, then follow new names in the results."""
        language = question_language(progress.question)
        if progress.open_steps:
            return Choice("continue", say(Notice("research_by_plan"), language))
        results = [list(passages) for passages in progress.found]
        new_steps = await asyncio.to_thread(self._planner.revise, progress.question, progress.asked, results)
        if not new_steps or not revisions:
            return Choice("finish", say(Notice("research_no_new_name"), language))
        steps = tuple(_step(step, progress.question) for step in new_steps)
        return Choice("revise", say(Notice("research_new_name"), language), steps)

    async def report(self, question: str, parts: Sequence[Part], passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield quotes by sub-question, no sentence twice.

        If the rules made up the sub-question, its quotes must be relevant to the question, and appear under the title
        of their page.
        """
        seen, separator = set[str](), ""
        for part in parts:
            is_own_question = part.heading in question
            about = "" if is_own_question else question
            quotes = await self.quoter.select_quotes(part.heading, part.numbers, passages, seen, about=about)
            heading = part.heading if is_own_question else passages[part.numbers[0] - 1].title
            heading_lines = [f"## {escape_markdown(heading)}"] if quotes and len(parts) > 1 else []
            for piece in (*heading_lines, *quotes):
                yield separator + piece
                separator = "\n\n"


def _step(planned: Planned, question: str) -> SubQuestion:
    return SubQuestion(planned.text, say(planned.justification, question_language(question)))
