"""Follow-ups: up to three questions in the question's language that the pages can answer."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

from rag.background import BACKGROUND
from rag.errors import ModelError, RagError
from rag.locales import say
from rag.models.usage import CallBudget, Meter, Prices
from rag.patterns import lazy_regex
from rag.reasoning.chat import ChatReasoner
from rag.runs.run import log_problem
from rag.text import detect_language, is_chinese, question_language, terms
from rag.types import Answer, Citation, Notice, Passage

log = logging.getLogger(__name__)

MAX_SUGGESTIONS: Final = 3
MIN_LIKELIHOOD: Final = 0.5
"""Minimum likelihood that the passages answer a proposed question."""
_MAX_QUESTION: Final = 120  # characters of a question
_MAX_HEADING: Final = 80
_HEADING: Final = lazy_regex(r"^[\s\d.、一二三四五六七八九十()（）]*")
_MARKUP: Final = lazy_regex(
    r"^\s*+(?:#{1,6}\s++|[-*+•>]\s++|\d{1,3}[.)、]\s*+)?+(?:\*\*|__)?+(?:(?:Q|问)\d{0,2}[:：.]\s*+)?+"
)
_QUESTION: Final = lazy_regex(r"[^?？.!。！]{4,}+[?？]")
# Chinese questions need no question mark; English ones do: "Where data lies" is not a question.
_ASKS: Final = lazy_regex(r"[?？]\s*$|怎么|怎样|如何|为什么|为何|什么|多少|哪|能不能|要不要")

Likelihood = Callable[[str, Sequence[Passage]], float]
Save = Callable[[Mapping[str, Any]], object]
_SECONDS: Final = 60.0


async def suggest_questions(answer: Answer, reasoner: object, likelihood: Likelihood | None = None) -> list[str]:
    """Propose up to three follow-ups.

    `likelihood` returns the likelihood that the passages answer a question, and may block.
    """
    question, answered = _effective_question(answer), _questions_above_quotes(answer)
    related = [one for one in from_headings(question, _find_related(answer)) if one not in answered]
    return await _choose(answer, related, reasoner, likelihood)


async def _choose(
    answer: Answer, headings: Sequence[str], reasoner: object, likelihood: Likelihood | None
) -> list[str]:
    """Return the first questions that pass the checks, from a model if there is one, then from `headings`."""
    if answer.notice and answer.notice.code == "wish_unknown":
        language = "zh" if is_chinese(answer.question) else "en"
        return [say(Notice(f"wish_{place}"), language) for place in ("first", "second", "third")]
    if answer.outcome in ("failed", "conversation") or not answer.passages:
        return []
    question = _effective_question(answer)
    candidates: list[str] = []
    if isinstance(reasoner, ChatReasoner):
        try:
            candidates = await reasoner.suggest(question, answer.text, answer.passages)
        except ModelError as error:
            log.info("the model proposed no questions to ask next (%s)", error.code)
    candidates = [*candidates, *headings]
    return await asyncio.to_thread(_select, question, candidates, answer.passages, likelihood)


def _effective_question(answer: Answer) -> str:
    return answer.standalone or answer.question


def _questions_above_quotes(answer: Answer) -> set[str]:
    """Return the questions directly above the quotes, as on FAQ pages."""
    questions: set[str] = set()
    for passage in answer.passages:
        for citation in answer.citations:
            if _distance(passage, [citation]) == 0:
                above = passage.text[: max(0, citation.start - passage.start) + 1]
                questions.update(_find_questions(replace(passage, text=above))[-1:])
    return questions


def _find_related(answer: Answer) -> list[Passage]:
    """Return the passages of the pages that `answer` cites, those nearest to a citation first.

    Passages of cited sections come without headings, which the answer already covers.
    """
    sections = {(citation.library, citation.url_hash, citation.section) for citation in answer.citations}
    distances = [(_distance(passage, answer.citations), passage) for passage in answer.passages]
    cited = sorted(((far, one) for far, one in distances if far is not None), key=lambda pair: pair[0])
    return [
        replace(one, section=()) if (one.library, one.url_hash, one.section) in sections else one for _, one in cited
    ]


def _distance(passage: Passage, citations: Sequence[Citation]) -> int | None:
    """Return the number of characters to the nearest citation in the passage's page; None without one."""
    places = [one for one in citations if (one.library, one.url_hash) == (passage.library, passage.url_hash)]
    return min((max(0, passage.start - one.end, one.start - passage.end) for one in places), default=None)


def from_headings(question: str, passages: Sequence[Passage]) -> list[str]:
    """Return the headings and lines of the passages that are questions in the question's language, in order."""
    language = question_language(question)
    question_terms = set(terms(question))
    questions: list[str] = []
    for passage in passages:
        heading = _HEADING.sub("", passage.section[-1]).strip() if passage.section else ""
        for line in (heading, *_find_questions(passage)):
            if not 2 <= len(line) <= _MAX_HEADING or set(terms(line)) <= question_terms:
                continue
            if _ASKS.search(line) and detect_language(line) == language:
                questions.append(line if line.endswith(("?", "？")) else line + ("？" if language == "zh" else "?"))
    return list(dict.fromkeys(questions))


def _find_questions(passage: Passage) -> list[str]:
    """Return the lines of a passage that consist of one question, as on FAQ pages."""
    lines = [line for line in passage.text.splitlines() if line.strip()]
    bare = (_MARKUP.sub("", line).strip().strip("*_ ") for line in lines[:-1])  # the last line has no answer below it
    return [line for line in bare if _QUESTION.fullmatch(line)]


def _select(
    question: str, candidates: Sequence[str], passages: Sequence[Passage], likelihood: Likelihood | None
) -> list[str]:
    """Return the first three that are new, short, in the right language, and likely to be answered."""
    questions: list[str] = []
    language, seen = question_language(question), {_normalise(question)}
    for candidate in candidates:
        text = " ".join(candidate.split())
        if not text or len(text) > _MAX_QUESTION or _normalise(text) in seen or question_language(text) != language:
            continue
        seen.add(_normalise(text))
        if likelihood is None or _is_likely(likelihood, text, passages):
            questions.append(text)
        if len(questions) == MAX_SUGGESTIONS:
            break
    return questions


def _is_likely(likelihood: Likelihood, question: str, passages: Sequence[Passage]) -> bool:
    try:
        return likelihood(question, passages) >= MIN_LIKELIHOOD
    except RagError as error:
        log.info("a question to ask next could not be tried (%s)", error.code)
        return False


def _normalise(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def questions_about(answer: Answer, reasoner: object, likelihood: Likelihood) -> list[str]:
    """Return up to three questions that the passages of `answer` can answer, from a model if any, then from the pages.

    Blocks as long as the model takes.
    """
    budget = CallBudget(1, meter=Meter(Prices()))
    choice = partial(_choose, answer, from_headings(_effective_question(answer), answer.passages), reasoner, likelihood)
    work = asyncio.wait_for(_suggest_within(choice, reasoner, budget), _SECONDS)
    try:
        return asyncio.run_coroutine_threadsafe(work, BACKGROUND.loop()).result()
    except TimeoutError:
        return []


def propose(
    answer: Answer, reasoner: object, likelihood: Likelihood | None, save: Save, *, prices: Prices | None = None
) -> Future[None]:
    """Start generating follow-ups; `save` is called with them and their cost, in a worker thread."""
    budget = CallBudget(1, meter=Meter(prices or Prices()))
    return asyncio.run_coroutine_threadsafe(_propose(answer, reasoner, likelihood, save, budget), BACKGROUND.loop())


async def _propose(
    answer: Answer, reasoner: object, likelihood: Likelihood | None, save: Save, budget: CallBudget
) -> None:
    choice = partial(suggest_questions, answer, reasoner, likelihood)
    work = asyncio.wait_for(_suggest_within(choice, reasoner, budget), _SECONDS)
    (questions,) = await asyncio.gather(work, return_exceptions=True)
    if isinstance(questions, BaseException):
        log_problem("no questions to ask next were found", questions)
        return
    extra = {"suggestions": questions, "suggestion_usage": asdict(budget.meter.usage()) if budget.used else None}
    (problem,) = await asyncio.gather(asyncio.to_thread(save, extra), return_exceptions=True)
    if isinstance(problem, BaseException):
        log_problem("questions to ask next could not be kept", problem)


async def _suggest_within(
    choice: Callable[[], Awaitable[list[str]]], reasoner: object, budget: CallBudget
) -> list[str]:
    if not isinstance(reasoner, ChatReasoner):
        return await choice()
    from rag.models.calls import count_calls

    return await count_calls(budget, choice)
