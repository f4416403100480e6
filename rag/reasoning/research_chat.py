"""Research by a chat model, with one request per decision or text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal

from pydantic import BaseModel, Field

from rag.checking.terms import find_sentences
from rag.prompts import requests
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.replies import one_line
from rag.reasoning.research import (
    MAX_NEW_STEPS,
    MAX_STEPS,
    MAX_SUMMARY,
    Action,
    Aspect,
    AspectKind,
    Choice,
    Part,
    Plan,
    Progress,
    Query,
    Reading,
    SubQuestion,
    Task,
    Tool,
)
from rag.types import Passage

_MAX_CHARACTERS: Final = 400  # characters of a sub-question or query


class StepReply(BaseModel):
    """One step of a plan."""

    question: str = Field(description="a sub-question that is complete in itself")
    justification: str = Field(default="", description="why it is needed, in a few words")
    tool: Tool = Field(default="library", description="web only for what saved pages cannot hold")
    keywords: list[str] = Field(default=[], description="terms that a page would use")
    section: str = Field(default="", description="a heading of the pages to search under, or empty")
    needs: list[int] = Field(default=[], description="numbers of earlier steps whose result it needs")


class AspectReply(BaseModel):
    """Something that a full answer has to tell."""

    text: str
    kind: AspectKind = "attribute"


class PlanReply(BaseModel):
    """A plan."""

    aspects: list[AspectReply] = Field(description="what a full answer has to tell")
    steps: list[StepReply] = Field(description="at most six")
    unclear: str = Field(default="", description="one question to the person if a name can mean different things")


class QueryReply(BaseModel):
    """One search."""

    query: str = Field(description="the key terms, names and numbers of what is wanted")
    search: Literal["keyword", "dense", "hybrid"] = Field(description="keyword for exact names and codes")
    reason: str = Field(default="", description="why this way, in a few words")
    section: str = Field(default="", description="one of the headings given, or empty")


class SentenceReply(BaseModel):
    """A sentence, under the number that it was asked for by."""

    number: int
    sentence: str


class ReadReply(BaseModel):
    """What the passages say."""

    sentences: list[SentenceReply] = Field(
        description="those that bear on the sub-question, copied to the letter, under their passage's number"
    )
    summary: str = Field(description="what was found, in one sentence")
    met: list[int] = Field(default=[], description="numbers of the aspects that the passages tell")


class ChoiceReply(BaseModel):
    """How to go on."""

    action: Action
    justification: str = Field(default="", description="in one sentence")
    steps: list[StepReply] = Field(default=[], description="for revise: at most two new steps")


class MendReply(BaseModel):
    """Sentences put right."""

    sentences: list[SentenceReply] = Field(description="one for each number; an empty one where nothing is left of it")


class ChatResearcher:
    """A researcher that plans, words searches, reads, decides and writes; every method raises ModelError."""

    def __init__(self, chat: ChatReasoner) -> None:
        self._chat = chat

    async def plan(self, question: str, titles: Sequence[str]) -> Plan:
        """Plan aspects and first steps; `titles` are those of the library's pages."""
        reply = await self._chat.filled(PlanReply, requests.plan(self._chat.texts, question, titles))
        aspects = [Aspect(f"a{n}", _short(aspect.text), aspect.kind) for n, aspect in enumerate(reply.aspects, 1)]
        return Plan(tuple(aspects), _steps(reply.steps, MAX_STEPS), _short(reply.unclear))

    async def word(self, task: Task) -> Query:
        """Return the query for a step, with the kind of search and the reason."""
        words = f" ({', '.join(task.step.keywords)})" if task.step.keywords else ""
        wanted = task.step.text + words
        prompt = requests.search_query(self._chat.texts, task.question, wanted, task.past, task.headings)
        reply = await self._chat.filled(QueryReply, prompt)
        section = reply.section if reply.section in task.headings else ""
        return Query(_short(reply.query) or task.step.text, reply.search, _short(reply.reason), section)

    async def read(self, task: Task, passages: Sequence[Passage]) -> Reading:
        """Extract what is relevant to the step's sub-question and to the aspects of the question."""
        aspects = [aspect.text for aspect in task.aspects]
        prompt = requests.distil(self._chat.texts, task.question, task.step.text, aspects, passages)
        reply = await self._chat.filled(ReadReply, prompt)
        numbered = [(item.number - 1, item.sentence) for item in reply.sentences if 0 < item.number <= len(passages)]
        quotes = ((place, find_sentences(sentence, passages[place].text)) for place, sentence in numbered)
        verbatim = tuple(dict.fromkeys((place, sentence) for place, sentence in quotes if sentence))
        met = tuple(task.aspects[n - 1].id for n in reply.met if 0 < n <= len(task.aspects))
        return Reading(verbatim, one_line([reply.summary])[:MAX_SUMMARY], met)

    async def decide(self, progress: Progress, *, revisions: int) -> Choice:
        """Choose the next action after a round; `revisions` are still allowed."""
        prompt = requests.choose_next(
            self._chat.texts,
            progress.question,
            progress.past,
            [aspect.text for aspect in progress.open_aspects],
            progress.open_steps,
            revisions,
        )
        reply = await self._chat.filled(ChoiceReply, prompt)
        return Choice(reply.action, _short(reply.justification), _steps(reply.steps, MAX_NEW_STEPS))

    def report(self, question: str, parts: Sequence[Part], passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield the report in pieces, with marks `[n]`, the 1-based indexes in `passages`; nothing without findings."""
        headings = [part.heading for part in parts]
        return self._chat.stream(requests.report(self._chat.texts, question, headings, list(enumerate(passages, 1))))

    async def mend(self, question: str, sentences: Sequence[str], passages: Sequence[Passage]) -> list[str]:
        """Correct each of the sentences to what the passages support, with marks; empty if they support none of it."""
        reply = await self._chat.filled(MendReply, requests.mend(self._chat.texts, question, sentences, passages))
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
