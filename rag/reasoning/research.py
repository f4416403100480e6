"""The data types of a research plan, and researchers that plan, read and decide by a chat model or by rules.

The model gets one request per decision or text; the rules use names, shared terms and quotes. If the model fails, the
rules take over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, Field

from rag.checking.rules import find_sentences
from rag.locales import say
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner, one_line
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.hops import MAX_NEW_STEPS, Find, FollowUpSearch, RulePlanner
from rag.text import escape_markdown, first_sentence, question_language, truncate
from rag.types import Notice, Passage

Tool = Literal["library", "web"]
SearchMethod = Literal["", "keyword", "dense", "hybrid"]
Action = Literal["continue", "revise", "finish"]

MAX_STEPS: Final = 6
"""Maximum steps of a first plan."""
MAX_SUMMARY: Final = 160
"""Maximum characters of a step's summary."""
_MAX_SENTENCES: Final = 2  # sentences per step, by rules
_MAX_CHARACTERS: Final = 400  # characters of a sub-question or query


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that a full answer must include."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A planned step. `needs` are the numbers, from 1, of steps in the same list that must come first.

    `query` is the text that rules search for instead of `text`.
    """

    text: str
    justification: str = ""
    tool: Tool = "library"
    keywords: tuple[str, ...] = ()
    section: str = ""
    needs: tuple[int, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A research plan. `unclear` is a question back to the user, if theirs is ambiguous."""

    aspects: tuple[Aspect, ...]
    steps: tuple[SubQuestion, ...]
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A step in progress: the whole question, the sub-question, and the findings of earlier steps."""

    question: str
    step: SubQuestion
    aspects: tuple[Aspect, ...] = ()
    findings: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A search: its text, its legs (empty for the configured ones), the reason, and a heading to search under."""

    text: str
    method: SearchMethod = ""
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
    """The state of a run: queries and the results of each, best first; open aspects; pending steps."""

    question: str
    queries: tuple[str, ...]
    results: tuple[tuple[Passage, ...], ...]
    findings: tuple[str, ...] = ()
    open_aspects: tuple[Aspect, ...] = ()
    open_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextAction:
    """The next action; `steps` are up to MAX_NEW_STEPS, for `revise`."""

    action: Action
    justification: str = ""
    steps: tuple[SubQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report: a heading, and the numbers, from 1, of its step's passages.

    `query` is the text that rules searched for instead of the heading.
    """

    heading: str
    numbers: tuple[int, ...]
    query: str = ""


class StepReply(BaseModel):
    """One step of a plan."""

    question: str = Field(description="a self-contained sub-question")
    justification: str = Field(default="", description="why it is needed, in a few words")
    tool: Tool = Field(default="library", description="web only for information that saved pages cannot contain")
    keywords: list[str] = Field(default=[], description="terms that a page about it would use")
    section: str = Field(default="", description="a heading of the pages to search under, or empty")
    needs: list[int] = Field(default=[], description="numbers of the earlier steps whose results it needs")


class PlanReply(BaseModel):
    """A research plan."""

    aspects: list[str] = Field(description="what a complete answer must include")
    steps: list[StepReply] = Field(description="up to six steps")
    unclear: str = Field(default="", description="one question to the user if a name is ambiguous")


class QueryReply(BaseModel):
    """A search query."""

    query: str = Field(description="key terms, names and numbers of the information needed")
    search: Literal["keyword", "dense", "hybrid"] = Field(description="keyword for exact names and codes")
    reason: str = Field(default="", description="why this kind of search, in a few words")
    section: str = Field(default="", description="one of the given headings, or empty")


class SentenceReply(BaseModel):
    """A sentence, with the number of its passage or of the sentence that it replaces."""

    number: int
    sentence: str


class ReadReply(BaseModel):
    """The findings in the passages."""

    sentences: list[SentenceReply] = Field(
        description="sentences relevant to the sub-question, copied verbatim, each with the number of its passage"
    )
    summary: str = Field(description="what was found, in one sentence")
    met: list[int] = Field(default=[], description="numbers of the aspects that the passages cover")


class ChoiceReply(BaseModel):
    """The next action."""

    action: Action
    justification: str = Field(default="", description="the reason, in one sentence")
    steps: list[StepReply] = Field(default=[], description="for revise: up to two new steps")


class MendReply(BaseModel):
    """Corrected sentences."""

    sentences: list[SentenceReply] = Field(description="one for each number; empty if nothing of it is supported")


class ChatResearcher:
    """A researcher that asks a chat model; every method raises ModelError."""

    def __init__(self, chat: ChatReasoner) -> None:
        self._chat = chat

    async def plan(self, question: str, titles: Sequence[str]) -> Plan:
        """Plan aspects and first steps; `titles` are those of the library's pages."""
        reply = await self._chat.fill(PlanReply, requests.plan(self._chat.texts, question, titles))
        aspects = [Aspect(f"a{n}", _short(text)) for n, text in enumerate(reply.aspects, 1)]
        return Plan(tuple(aspects), _steps(reply.steps, MAX_STEPS), _short(reply.unclear))

    async def write_query(self, task: Task) -> Query:
        """Return the query for a step, with the kind of search and the reason."""
        words = f" ({', '.join(task.step.keywords)})" if task.step.keywords else ""
        wanted = task.step.text + words
        prompt = requests.search_query(self._chat.texts, task.question, wanted, task.findings, task.headings)
        reply = await self._chat.fill(QueryReply, prompt)
        section = reply.section if reply.section in task.headings else ""
        return Query(_short(reply.query) or task.step.text, reply.search, _short(reply.reason), section)

    async def read(self, task: Task, passages: Sequence[Passage]) -> Reading:
        """Extract what is relevant to the step's sub-question and to the aspects of the question."""
        aspects = [aspect.text for aspect in task.aspects]
        prompt = requests.distil(self._chat.texts, task.question, task.step.text, aspects, passages)
        reply = await self._chat.fill(ReadReply, prompt)
        numbered = [(item.number - 1, item.sentence) for item in reply.sentences if 0 < item.number <= len(passages)]
        quotes = ((place, find_sentences(sentence, passages[place].text)) for place, sentence in numbered)
        verbatim = tuple(dict.fromkeys((place, sentence) for place, sentence in quotes if sentence))
        met = tuple(task.aspects[n - 1].id for n in reply.met if 0 < n <= len(task.aspects))
        return Reading(verbatim, truncate(one_line([reply.summary]), MAX_SUMMARY), met)

    async def decide(self, progress: Progress, *, revisions: int) -> NextAction:
        """Choose the next action after a round; up to `revisions` revisions are still allowed."""
        prompt = requests.choose_next(
            self._chat.texts,
            progress.question,
            progress.findings,
            [aspect.text for aspect in progress.open_aspects],
            progress.open_steps,
            revisions,
        )
        reply = await self._chat.fill(ChoiceReply, prompt)
        return NextAction(reply.action, _short(reply.justification), _steps(reply.steps, MAX_NEW_STEPS))

    def report(self, question: str, parts: Sequence[Part], passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield the report in pieces, with marks `[n]`, the 1-based indexes in `passages`; nothing without findings."""
        headings = [part.heading for part in parts]
        return self._chat.stream(
            requests.by_headings(self._chat.texts, "report", question, headings, list(enumerate(passages, 1)))
        )

    async def repair(self, question: str, sentences: Sequence[str], passages: Sequence[Passage]) -> list[str]:
        """Correct each of the sentences to what the passages support, with marks; empty if they support none of it."""
        reply = await self._chat.fill(MendReply, requests.mend(self._chat.texts, question, sentences, passages))
        corrected = {sentence.number: sentence.sentence.strip() for sentence in reply.sentences}
        return [corrected.get(number, "") for number in range(1, len(sentences) + 1)]


def _steps(replies: Sequence[StepReply], limit: int) -> tuple[SubQuestion, ...]:
    """Return the steps that have a question, without needs that do not refer to an earlier step."""
    steps = [step for step in replies if step.question.strip()][:limit]
    return tuple(
        SubQuestion(
            _short(step.question),
            _short(step.justification),
            step.tool,
            tuple(_short(word) for word in step.keywords[:8]),
            step.section,
            tuple(sorted({n for n in step.needs if 0 < n < number})),
        )
        for number, step in enumerate(steps, 1)
    )


def _short(text: str) -> str:
    return " ".join(text.split())[:_MAX_CHARACTERS]


class RuleResearcher:
    """The counterpart of `ChatResearcher` without a model."""

    def __init__(self, quoter: ExtractiveReasoner, find: Find) -> None:
        """`find` looks names up in the library."""
        self._planner = RulePlanner(quoter.encoder, quoter.weights)
        self._find = find
        self.quoter = quoter

    async def plan(self, question: str, titles: Sequence[str]) -> Plan:
        """Plan a step and an aspect for each thing that the question asks about."""
        steps = self._planner.plan(question)
        aspects = tuple(Aspect(f"a{n}", step.text) for n, step in enumerate(steps, 1))
        return Plan(aspects, tuple(_sub_question(step, question) for step in steps))

    async def write_query(self, task: Task) -> Query:
        return Query(task.step.query or task.step.text)

    async def read(self, task: Task, passages: Sequence[Passage]) -> Reading:
        if not passages:
            return Reading()
        query = task.step.query or task.step.text
        matches = (await asyncio.to_thread(list, self.quoter.select(query, passages)))[:_MAX_SENTENCES]
        sentences = tuple((one.passage, one.unit.text) for one in matches)
        met = [one.id for one in task.aspects if any(await self.quoter.grade(one.text, passages))]
        summary = truncate(first_sentence(sentences[0][1], _MAX_CHARACTERS), MAX_SUMMARY) if sentences else ""
        return Reading(sentences, summary, tuple(met))

    async def decide(self, progress: Progress, *, revisions: int) -> NextAction:
        """Continue with the planned steps, then follow new names in the results."""
        language = question_language(progress.question)
        if progress.open_steps:
            return NextAction("continue", say(Notice("research_by_plan"), language))
        results = [list(passages) for passages in progress.results]
        new_steps = await asyncio.to_thread(
            self._planner.revise, progress.question, progress.queries, results, self._find
        )
        if not new_steps or not revisions:
            return NextAction("finish", say(Notice("research_no_new_name"), language))
        steps = tuple(_sub_question(step, progress.question) for step in new_steps)
        return NextAction("revise", say(Notice("research_new_name"), language), steps)

    async def report(self, question: str, parts: Sequence[Part], passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield quotes, no sentence twice: those for the user's own questions, then the others by page.

        Quotes of sub-questions that the rules made up must also be relevant to the question.
        """
        seen, sections = set[str](), dict[tuple[str, str], list[str]]()
        for part in parts:
            is_own_question = part.heading in question
            about = "" if is_own_question else question
            query = part.query or part.heading
            for number, quote in await self.quoter.select_quotes(query, part.numbers, passages, seen, about=about):
                page = passages[number - 1]
                key = ("", part.heading) if is_own_question else (page.url_hash, page.title)
                sections.setdefault(key, []).append(quote)
        separator = ""
        for (_, heading), quotes in sections.items():
            is_headed = len(sections) > 1 and heading != question
            heading_lines = [f"## {escape_markdown(heading)}"] if is_headed else []
            for piece in (*heading_lines, *quotes):
                yield separator + piece
                separator = "\n\n"


def _sub_question(search: FollowUpSearch, question: str) -> SubQuestion:
    language = question_language(question)
    justification = say(search.justification, language)
    if search.question is None:
        return SubQuestion(search.text, justification)
    return SubQuestion(say(search.question, language), justification, query=search.text)
