"""A chat model as judge of answers.

It makes one request per answer. The judge must quote a sentence of the passages: if they don't contain the quote, none
of its scores count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from pydantic import BaseModel, Field

from rag.errors import ModelError
from rag.evaluation.cases import Case
from rag.evaluation.support import Encode, normalise_text
from rag.prompts import requests
from rag.prompts.requests import Prompt
from rag.prompts.texts import PromptTexts
from rag.text import strip_citations
from rag.types import Answer

Fill = Callable[[type[BaseModel], Prompt], BaseModel]
"""Makes the chat model fill a form. Blocks; raises ModelError."""
Points = Literal[1, 2, 3, 4, 5]

_POINTS: Final = ("faithfulness", "relevance", "completeness")


class AnswerRating(BaseModel):
    """What the judge says of an answer."""

    faithfulness: Points = Field(description="1 to 5: everything in the answer stands in the passages")
    relevance: Points = Field(description="1 to 5: it answers what was asked")
    completeness: Points = Field(description="1 to 5: it says all that the passages hold on it")
    reason: str = Field(description="why, in one sentence")
    quote: str = Field(description="one sentence of the passages, copied to the letter")
    questions: list[str] = Field(description="three questions that the answer answers")
    noncommittal: bool = Field(description="true if the answer evades or says that it does not know")


class ModelJudge:
    """A judge of answers that asks a chat model."""

    def __init__(self, fill: Fill, texts: PromptTexts) -> None:
        self._fill = fill
        self._texts = texts

    def scores(self, case: Case, answer: Answer, encode: Encode | None) -> dict[str, float | None]:
        """Return faithfulness, relevance and completeness, 1 to 5, and RAGAS's answer relevancy: the mean cosine of the
        question with three that the answer answers, 0 if noncommittal. Values are None without a valid reply."""
        nothing: dict[str, float | None] = dict.fromkeys([*(f"judged_{name}" for name in _POINTS), "answer_relevancy"])
        if not answer.text or not answer.passages:
            return nothing
        prompt = requests.assess(self._texts, case.question, strip_citations(answer.text), answer.passages)
        try:
            reply = self._fill(AnswerRating, prompt)
        except ModelError:
            return nothing
        if not isinstance(reply, AnswerRating) or not (quote := normalise_text(reply.quote)):
            return nothing
        if not any(quote in normalise_text(passage.text) for passage in answer.passages):
            return nothing
        questions = [text for text in reply.questions if text.strip()]
        vectors = encode(case.question, questions) if encode and questions else None
        relevancy = None if vectors is None else float((vectors[1:] @ vectors[0]).mean()) * (not reply.noncommittal)
        return {**{f"judged_{name}": float(getattr(reply, name)) for name in _POINTS}, "answer_relevancy": relevancy}
