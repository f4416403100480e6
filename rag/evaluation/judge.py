"""A chat model as judge of answers, and its agreement with people.

It makes one request per answer. The judge must quote a sentence of the passages: if they don't contain the quote, none
of its scores count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, Field

from rag.errors import ModelError
from rag.evaluation.cases import Case
from rag.evaluation.metrics import Encode, normalise_text
from rag.evaluation.runs import RowView
from rag.evaluation.statistics import Estimate, Figures, Weights, bootstrap_weights, estimate, share
from rag.evaluation.support import split_answer
from rag.prompts import requests
from rag.prompts.requests import Prompt
from rag.prompts.texts import PromptTexts
from rag.text import strip_citations
from rag.types import Answer, CheckedBy, Verdict

Fill = Callable[[type[BaseModel], Prompt], BaseModel]
"""Makes the chat model fill a form. Blocks; raises ModelError."""
Points = Literal[1, 2, 3, 4, 5]

MIN_LABELS: Final = 100
"""Minimum number of labels for assessing a judge."""
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


# Agreement with people


@dataclass(frozen=True, slots=True)
class Label:
    """A statement judged by `by`, to be labelled by a person: `label` is their verdict, "" until then."""

    id: str
    question: str
    statement: str
    passages: tuple[str, ...]
    judged: Verdict
    label: Verdict | Literal[""] = ""
    by: CheckedBy = "rules"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa of judge and people over `n` labels, and the F1 of each verdict with labels as ground truth."""

    n: int
    kappa: Estimate
    f1: dict[Verdict, float]

    @property
    def is_sufficient(self) -> bool:
        """True if the judge's metrics may be reported: there are enough labels, and kappa is significantly above 0."""
        return self.n >= MIN_LABELS and self.kappa.low > 0


def labels_of(rows: Sequence[RowView], questions: dict[str, str]) -> list[Label]:
    """Return the judged statements of a run's answers, with the passages that they cite, or all if they cite none."""
    labels = []
    for row in rows:
        texts = [passage.text for passage in row.answer.passages]
        for item in split_answer(row.answer):
            if item.verdict is not None and texts:
                passages = tuple(texts[n - 1] for n in item.cited) or tuple(texts)
                name = hashlib.sha256("\n".join([item.text, *passages]).encode()).hexdigest()[:16]
                labels.append(Label(name, questions[row.case_id], item.text, passages, item.verdict, by=item.by))
    return labels


def agreement(labels: Sequence[Label]) -> Agreement | None:
    """Return the agreement of a judge with people, or None without labels."""
    pairs = [(item.judged, item.label) for item in labels if item.label]
    if not pairs:
        return None
    judge, people = (
        np.array([[item == verdict for verdict in get_args(Verdict)] for item in side], dtype=float)
        for side in zip(*pairs, strict=True)
    )
    kappa = estimate(cohens_kappa(bootstrap_weights(range(len(pairs))), judge, people))
    hits, sizes = (judge * people).sum(axis=0), (judge + people).sum(axis=0)
    f1 = {
        verdict: float(2 * hits[at] / sizes[at]) for at, verdict in enumerate(get_args(Verdict)) if people[:, at].any()
    }
    return Agreement(len(pairs), kappa, f1)


def cohens_kappa(weights: Weights, first: np.ndarray, second: np.ndarray) -> Figures:
    """Return agreement beyond chance (Cohen 1960): (observed - expected) / (1 - expected), NaN if both always choose
    the same class. `first` and `second` are one-hot, (n, classes)."""
    total = weights.sum(axis=1)
    observed = share(weights @ (first * second).sum(axis=1), total)
    expected = share(((weights @ first) * (weights @ second)).sum(axis=1), total**2)
    return share(observed - expected, 1 - expected)
