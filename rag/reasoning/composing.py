"""Ways to write an answer from many passages: all at once, passage by passage, from condensed notes, or the best of
several separate answers.

LangChain's document chains call them stuff, refine, map_reduce and map_rerank. Passages keep their numbers throughout,
so that citations can be checked against the whole passage. Passages that do not fit are cut down to the relevant
sentences before a model reads them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast

from rag.prompts import requests
from rag.prompts.requests import MAX_PASSAGE, NOT_IN_PAGES, Numbered, Prompt
from rag.reasoning import RESET
from rag.text import estimate_tokens, lazy_regex
from rag.types import Passage

if TYPE_CHECKING:
    from rag.reasoning.chat import ChatReasoner

Way = Literal["stuff", "refine", "map_reduce", "map_rerank"]
Compose = Literal["auto", "stuff", "refine", "map_reduce", "map_rerank"]
COMPOSE: tuple[Compose, ...] = ("auto", "stuff", "refine", "map_reduce", "map_rerank")

_OVERHEAD_TOKENS: Final = 1_200  # tokens of a request that are not passages
_MIN_PASSAGE_TOKENS: Final = 400
_LABEL_TOKENS: Final = 40  # tokens of a passage's tags and title
_MAX_CONCURRENT: Final = 4  # requests to a server
_MARK: Final = lazy_regex(r"\[(\d{1,3})\]")
_SCORE: Final = lazy_regex(r"(?:\n|^)[ \t*`]*+SCORE[ \t*`]*+[:：][ \t*`]*+(\d{1,3})[^\n]{0,20}\s*+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CompositionPlan:
    """A way to compose, with up to `passage_tokens` tokens of passages per request, in up to `calls` requests."""

    way: Way = "stuff"
    passage_tokens: int = 16_000
    calls: int = 1
    deep: bool = False


def count_tokens(passages: Sequence[Passage]) -> int:
    return sum(estimate_tokens(passage.text[:MAX_PASSAGE]) + _LABEL_TOKENS for passage in passages)


def choose_plan(
    passages: Sequence[Passage], compose: Compose, context_tokens: int, calls: int, *, deep: bool = False
) -> CompositionPlan:
    """Return a plan with the requested way, or by default all passages at once, cut to fit.

    No other way is a default: a small context window or a slow server means a small model, which answers worse from its
    own notes and needs many times the calls. All ways but "stuff" need at least two calls.
    """
    tokens = max(_MIN_PASSAGE_TOKENS, context_tokens - _OVERHEAD_TOKENS)
    is_requested = compose != "auto" and calls >= 2 and len(passages) > 1
    way: Way = cast(Way, compose) if is_requested else "stuff"
    return CompositionPlan(way, tokens, calls, deep)


def fitting_share(passages: Sequence[Passage], tokens: int) -> float:
    """Return the share of the passages' text that fits into one request, up to 1."""
    return min(1.0, tokens / max(1, count_tokens(passages)))


async def compose_answer(
    writer: ChatReasoner, question: str, passages: Sequence[Passage], plan: CompositionPlan
) -> AsyncIterator[str]:
    """Write the answer; the last request streams. Raises ModelError."""
    numbered = list(enumerate(passages, 1))
    ways = {"stuff": _stuff, "refine": _refine, "map_reduce": _map_reduce, "map_rerank": _map_rerank}
    async for piece in ways[plan.way](writer, question, numbered, plan):
        yield piece


async def _stuff(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: CompositionPlan
) -> AsyncIterator[str]:
    fitting = fit(numbered, plan.passage_tokens)
    async for piece in writer.stream(requests.answer(writer.texts, question, fitting, deep=plan.deep)):
        yield piece


async def _refine(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: CompositionPlan
) -> AsyncIterator[str]:
    groups = group_passages(numbered, plan)
    draft = ""
    for group in groups[:-1]:
        reply = await writer.ask(_refine_prompt(writer, question, group, draft, plan))
        draft = draft if NOT_IN_PAGES in reply or not reply else reply
    text = ""
    async for piece in writer.stream(_refine_prompt(writer, question, groups[-1], draft, plan)):
        text = "" if piece == RESET else text + piece
        yield piece
    if draft and not text.strip():  # nothing in the last passages, and the model wrote only that
        yield draft


def _refine_prompt(
    writer: ChatReasoner, question: str, group: Sequence[Numbered], draft: str, plan: CompositionPlan
) -> Prompt:
    if not draft:
        return requests.answer(writer.texts, question, group, deep=plan.deep)
    return requests.refine(writer.texts, question, group, draft, deep=plan.deep)


async def _map_reduce(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: CompositionPlan
) -> AsyncIterator[str]:
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def take_notes(group: Sequence[Numbered]) -> list[Numbered]:
        async with semaphore:
            lines = await writer.ask_lines(requests.notes(writer.texts, "notes", question, group))
        return parse_notes(group, lines)

    groups = group_passages(numbered, replace(plan, calls=plan.calls - 1))
    all_notes = [note for notes in await asyncio.gather(*map(take_notes, groups)) for note in notes]
    if all_notes:
        fitting = fit(all_notes, plan.passage_tokens)
        async for piece in writer.stream(requests.answer(writer.texts, question, fitting, deep=plan.deep)):
            yield piece


async def _map_rerank(
    writer: ChatReasoner, question: str, numbered: Sequence[Numbered], plan: CompositionPlan
) -> AsyncIterator[str]:
    semaphore = asyncio.Semaphore(_MAX_CONCURRENT)

    async def answer_scored(group: Sequence[Numbered]) -> tuple[int, str]:
        async with semaphore:
            source = writer.stream(requests.answer_scored(writer.texts, question, group, deep=plan.deep))
            return parse_score("".join([piece async for piece in source]).rpartition(RESET)[2])

    answers = await asyncio.gather(*map(answer_scored, group_passages(numbered, plan)))
    yield max(answers, key=lambda answer: answer[0])[1]


def parse_score(reply: str) -> tuple[int, str]:
    """Return the score of a reply (0 to 100) and its text: 0 if it is empty, 1 if it has no readable score."""
    match = _SCORE.search(reply)
    text = reply[: match.start()].strip() if match else reply.strip()
    if not text:
        return 0, ""
    return min(100, int(match[1])) if match else 1, text


def group_passages(numbered: Sequence[Numbered], plan: CompositionPlan) -> list[list[Numbered]]:
    """Return the passages of each request, in order: one each if there are enough calls, else as many as needed."""
    size = -(-len(numbered) // max(1, plan.calls))
    groups = [list(numbered[at : at + size]) for at in range(0, len(numbered), size)]
    return [fit(group, plan.passage_tokens) for group in groups]


def fit(numbered: Sequence[Numbered], tokens: int) -> list[Numbered]:
    """Return the passages, all cut by the same share if they do not fit."""
    share = fitting_share([passage for _, passage in numbered], tokens)
    if share >= 1.0:
        return list(numbered)
    return [
        (number, replace(passage, text=passage.text[: int(len(passage.text[:MAX_PASSAGE]) * share)]))
        for number, passage in numbered
    ]


def parse_notes(group: Sequence[Numbered], lines: Sequence[str]) -> list[Numbered]:
    """Return the passages with their notes as text, without passages that have no notes."""
    passages = dict(group)
    texts: dict[int, list[str]] = {}
    for line in lines:
        if NOT_IN_PAGES in line:
            continue
        marks = [int(mark) for mark in _MARK.findall(line) if int(mark) in passages]
        if not marks and len(group) == 1:
            marks = [group[0][0]]
        if marks and (text := _MARK.sub("", line).strip()):
            texts.setdefault(marks[0], []).append(text)
    return [(number, replace(passages[number], text="\n".join(notes))) for number, notes in sorted(texts.items())]
