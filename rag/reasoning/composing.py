"""Ways to make one answer of many passages: all at once, passage by passage, condensed first and then joined, or the
best of what each says by itself.

They are known from LangChain's document chains as stuff, refine, map_reduce and map_rerank. Passages keep their
numbers through all of them, so that what is cited can be checked against the whole passage.
Where they do not fit they are cut down to the sentences that bear on the question, before a model reads them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast

from rag.prompts import requests
from rag.prompts.requests import MAX_PASSAGE, NOT_IN_PAGES, Prompt
from rag.reasoning.reasoner import RESET
from rag.text import estimate_tokens, split_sentences
from rag.types import Passage

if TYPE_CHECKING:
    from rag.reasoning.chat import ChatReasoner

Way = Literal["stuff", "refine", "map_reduce", "map_rerank"]
Compose = Literal["auto", "stuff", "refine", "map_reduce", "map_rerank"]
COMPOSE: tuple[Compose, ...] = ("auto", "stuff", "refine", "map_reduce", "map_rerank")
Numbered = tuple[int, Passage]

_RULES_AND_ANSWER: Final = 1_200  # tokens of a request that are not passages
_LEAST_ROOM: Final = 400
_LABEL: Final = 40  # tokens of a passage's tags and title
_AT_ONCE: Final = 4  # requests to a server
_MARK: Final = re.compile(r"\[(\d{1,3})\]")
_SCORE: Final = re.compile(r"(?:\n|^)[ \t*`]*+SCORE[ \t*`]*+[:：][ \t*`]*+(\d{1,3})[^\n]{0,20}\s*+$", re.IGNORECASE)
_GAP: Final = " … "
_BESIDE: Final = 0.4  # what a sentence gets of its better neighbour's worth: it may hold what a pronoun there means
_BY_RANK: Final = 0.05  # what a passage's place costs each of its sentences


@dataclass(frozen=True, slots=True)
class Plan:
    """How to compose: `room` is the tokens of passages for one request, `calls` how many requests there may be."""

    way: Way = "stuff"
    room: int = 16_000
    calls: int = 1
    deep: bool = False


def tokens_of(passages: Sequence[Passage]) -> int:
    return sum(estimate_tokens(passage.text[:MAX_PASSAGE]) + _LABEL for passage in passages)


def plan_for(
    passages: Sequence[Passage], compose: Compose, context_tokens: int, calls: int, *, deep: bool = False
) -> Plan:
    """Choose a way: the one that was asked for, else all at once, cut to fit.

    Small windows and slow models are those of small models: from notes that such a one takes it answers worse, after
    many times the calls. The longer ways need two calls at least.
    """
    room = max(_LEAST_ROOM, context_tokens - _RULES_AND_ANSWER)
    asked_for = compose != "auto" and calls >= 2 and len(passages) > 1
    way: Way = cast(Way, compose) if asked_for else "stuff"
    return Plan(way, room, calls, deep)


def share_that_fits(passages: Sequence[Passage], room: int) -> float:
    """What part of the passages' text one request has room for, at most 1."""
    return min(1.0, room / max(1, tokens_of(passages)))


async def composed(writer: ChatReasoner, question: str, passages: Sequence[Passage], plan: Plan) -> AsyncIterator[str]:
    """Write the answer; the last request streams. Raises ModelError."""
    numbered = list(enumerate(passages, 1))
    ways = {"stuff": _stuff, "refine": _refine, "map_reduce": _map_reduce, "map_rerank": _map_rerank}
    async for piece in ways[plan.way](writer, question, numbered, plan):
        yield piece


async def _stuff(writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: Plan) -> AsyncIterator[str]:
    fitting = fitted(numbered, plan.room)
    async for piece in writer.stream(requests.answer(writer.texts, question, fitting, deep=plan.deep)):
        yield piece


async def _refine(writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: Plan) -> AsyncIterator[str]:
    groups = grouped(numbered, plan)
    draft = ""
    for group in groups[:-1]:
        reply = await writer.whole(_refining(writer, question, group, draft, plan))
        draft = draft if NOT_IN_PAGES in reply or not reply else reply
    written = ""
    async for piece in writer.stream(_refining(writer, question, groups[-1], draft, plan)):
        written = "" if piece == RESET else written + piece
        yield piece
    if draft and not written.strip():  # the last passages hold nothing, and so the model said that alone
        yield draft


def _refining(writer: ChatReasoner, question: str, group: Sequence[Numbered], draft: str, plan: Plan) -> Prompt:
    if not draft:
        return requests.answer(writer.texts, question, group, deep=plan.deep)
    return requests.refine(writer.texts, question, group, draft, deep=plan.deep)


async def _map_reduce(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: Plan
) -> AsyncIterator[str]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def notes_on(group: Sequence[Numbered]) -> list[Numbered]:
        async with gate:
            lines = await writer.lines(requests.notes(writer.texts, question, group))
        return notes_of(group, lines)

    groups = grouped(numbered, replace(plan, calls=plan.calls - 1))
    noted = [note for notes in await asyncio.gather(*map(notes_on, groups)) for note in notes]
    if noted:
        fitting = fitted(noted, plan.room)
        async for piece in writer.stream(requests.answer(writer.texts, question, fitting, deep=plan.deep)):
            yield piece


async def _map_rerank(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: Plan
) -> AsyncIterator[str]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def answered(group: Sequence[Numbered]) -> tuple[int, str]:
        async with gate:
            source = writer.stream(requests.scored(writer.texts, question, group, deep=plan.deep))
            return score_of("".join([piece async for piece in source]).rpartition(RESET)[2])

    answers = await asyncio.gather(*map(answered, grouped(numbered, plan)))
    yield max(answers, key=lambda one: one[0])[1]


def score_of(reply: str) -> tuple[int, str]:
    """The score (0 to 100) of a reply, and its text: 0 where nothing is said, 1 where no score can be read."""
    found = _SCORE.search(reply)
    text = reply[: found.start()].strip() if found else reply.strip()
    if not text:
        return 0, ""
    return min(100, int(found[1])) if found else 1, text


def grouped(numbered: Sequence[Numbered], plan: Plan) -> list[list[Numbered]]:
    """Passages in their order, one a request as long as there are calls for that, else as many as need be."""
    size = -(-len(numbered) // max(1, plan.calls))
    groups = [list(numbered[at : at + size]) for at in range(0, len(numbered), size)]
    return [fitted(group, plan.room) for group in groups]


def fitted(numbered: Sequence[Numbered], room: int) -> list[Numbered]:
    """The passages as far as they fit, each cut alike where they do not."""
    share = share_that_fits([passage for _, passage in numbered], room)
    if share >= 1.0:
        return list(numbered)
    return [
        (number, replace(one, text=one.text[: int(len(one.text[:MAX_PASSAGE]) * share)])) for number, one in numbered
    ]


def notes_of(group: Sequence[Numbered], lines: Sequence[str]) -> list[Numbered]:
    """The passages with what was noted of each as their text, without those of which nothing was."""
    known = dict(group)
    texts: dict[int, list[str]] = {}
    for line in lines:
        if NOT_IN_PAGES in line:
            continue
        marks = [int(mark) for mark in _MARK.findall(line) if int(mark) in known]
        if not marks and len(group) == 1:
            marks = [group[0][0]]
        if marks and (text := _MARK.sub("", line).strip()):
            texts.setdefault(marks[0], []).append(text)
    return [(number, replace(known[number], text="\n".join(told))) for number, told in sorted(texts.items())]


def distilled(passages: Sequence[Passage], worth: Callable[[str], float], share: float) -> list[Passage]:
    """The passages in their order with about `share` of their text: the best sentences of all by `worth`.

    Gaps are marked with an ellipsis. A passage of which nothing is kept stays with its best sentence, so
    that the numbers do not change. Offsets are those of the whole passage.
    """
    if share >= 1.0:
        return list(passages)
    spans = [split_sentences(passage.text) for passage in passages]
    room = share * sum(len(passage.text) for passage in passages)
    ranked = sorted(
        (
            (-value + _BY_RANK * place, place, index)
            for place, passage in enumerate(passages)
            for index, value in enumerate(_values(passage.text, spans[place], worth))
        )
    )
    kept: list[set[int]] = [set() for _ in passages]
    for _, place, index in ranked:
        start, end = spans[place][index]
        if room >= end - start or not kept[place]:
            kept[place].add(index)
            room -= end - start
    return [replace(passage, text=_joined(passage.text, spans[i], kept[i])) for i, passage in enumerate(passages)]


def _values(text: str, spans: Sequence[tuple[int, int]], worth: Callable[[str], float]) -> list[float]:
    own = [worth(text[start:end]) for start, end in spans]
    return [
        value + _BESIDE * max(own[i - 1] if i else 0.0, own[i + 1] if i + 1 < len(own) else 0.0)
        for i, value in enumerate(own)
    ]


def _joined(text: str, spans: Sequence[tuple[int, int]], kept: set[int]) -> str:
    out = ""
    for index in sorted(kept):
        start, end = spans[index]
        follows = index - 1 in kept
        lead = text[spans[index - 1][1] : start] if follows else (_GAP if out else "")
        out += lead + text[start:end]
    return out
