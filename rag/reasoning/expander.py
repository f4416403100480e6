"""Query expanders, by a chat model or from the results of a first search."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from rag.background import BACKGROUND
from rag.errors import ModelError
from rag.patterns import lazy_regex
from rag.prompts import requests
from rag.prompts.requests import Prompt
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.replies import drop_intro, one_line
from rag.retrieval.engine import Expander, Need
from rag.retrieval.strategies import ASKS
from rag.text import detect_language, terms
from rag.types import Passage

SECONDS: Final = 20.0
_MAX_PASSAGE: Final = 1_200  # characters
_MAX_QUERY: Final = 400
_FEEDBACK_PASSAGES, _FEEDBACK_SENTENCES = 3, 2  # number of first passages used as feedback, and of sentences from them

_PART = lazy_regex(
    r"[?？;；]\s*|[,，]\s*+(?:and\s++|以及|并且|而)?+(?=(?:what|which|who|when|where|why|how)\b)"
    r"|[,，]\s*+(?=[^,，?？]*(?:什么|哪|谁|多少|几|何时|为什么|如何|怎|多[久长大高远]))"
    r"|(?<!\s)\s++and\s++(?=(?:what|which|who|whom|whose|when|where|why|how)\b)",
    re.IGNORECASE,
)

Result = TypeVar("Result")


class ChatExpander:
    """An expander that asks a chat model, one call per text. Blocks, so it must not be called in the background loop.

    Calls count towards the calling run, whose context is passed to the loop.
    """

    uses_model = True

    def __init__(self, writer: ChatReasoner, *, seconds: float = SECONDS) -> None:
        self.name = writer.name
        self._writer = writer
        self._seconds = seconds

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        return " ".join(self._lines(requests.hypothetical(self._writer.texts, question)))[:_MAX_PASSAGE]

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        return [line[:_MAX_QUERY] for line in drop_intro(self._lines(requests.phrasings(self._writer.texts, question)))]

    def translation(self, question: str, language: str) -> str:
        """Return the translated question, or an empty string if the reply is in another language."""
        query = one_line(self._lines(requests.translation(self._writer.texts, question, language)))[:_MAX_QUERY]
        return query if detect_language(query) == language else ""

    def need(self, question: str) -> Need:
        words = " ".join(self._lines(requests.need(self._writer.texts, question))).casefold()
        needs: list[Need] = [need for need in ("exact", "concept", "facets") if re.search(rf"\b{need}\b", words)]
        return needs[0] if len(needs) == 1 else ""

    def _lines(self, prompt: Prompt) -> list[str]:
        return _wait_for(self._writer.ask_lines(prompt), self._seconds)


def _wait_for(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    future = asyncio.run_coroutine_threadsafe(work, BACKGROUND.loop())
    try:
        return future.result(seconds)
    except TimeoutError as error:
        future.cancel()
        raise ModelError("chat_timeout") from error


class FeedbackExpander:
    """An expander without a model, which uses the question and its first results (pseudo-relevance feedback)."""

    name = "feedback"
    uses_model = False

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._quoter = quoter

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        """Return the question and the best sentences of the first passages."""
        return " ".join(
            (question, *self._quoter.find_closest(question, near[:_FEEDBACK_PASSAGES], _FEEDBACK_SENTENCES))
        )[:_MAX_PASSAGE]

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        """Return the parts of a question that asks several things, else its keywords, with and without a heading."""
        return split_question(question) or self._quoter.rephrase(question, near)[:2]

    def translation(self, question: str, language: str) -> str:
        return ""

    def need(self, question: str) -> Need:
        return ""


def make_expander(reasoner: Reasoner) -> Expander | None:
    """Return the expander for a reasoner, or None."""
    if isinstance(reasoner, ChatReasoner):
        return ChatExpander(reasoner)
    return FeedbackExpander(reasoner) if isinstance(reasoner, ExtractiveReasoner) else None


def split_question(question: str) -> list[str]:
    """Split a compound question into its parts; return an empty list for a simple one."""
    parts = [part.strip(" ,，?？") for part in _PART.split(question)]
    questions = [part for part in parts if len(terms(part)) >= 2]
    return questions if len(questions) > 1 and all(ASKS.search(part) for part in questions) else []
