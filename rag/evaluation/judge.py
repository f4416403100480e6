"""A chat model as judge of answers, and how well it agrees with people.

One request an answer. The judge quotes what its verdict rests on: where that does not stand in the passages, nothing
that it said is counted.
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
from rag.evaluation.evidence import squash
from rag.evaluation.metrics import Encode
from rag.evaluation.runs import RowView
from rag.evaluation.statistics import Estimate, Figures, Weights, draws, estimate, share
from rag.evaluation.support import said_in
from rag.prompts import requests
from rag.prompts.requests import Prompt
from rag.prompts.texts import PromptTexts
from rag.text import unmarked
from rag.types import Answer, CheckedBy, Verdict

Fill = Callable[[type[BaseModel], Prompt], BaseModel]
"""Has the chat model fill a form. Blocks; raises ModelError."""
Points = Literal[1, 2, 3, 4, 5]

ENOUGH: Final = 100
"""Labels below which nothing is said of a judge."""
_POINTS: Final = ("faithfulness", "relevance", "completeness")


class Judgement(BaseModel):
    """What the judge says of an answer."""

    faithfulness: Points = Field(description="1 to 5: everything in the answer stands in the passages")
    relevance: Points = Field(description="1 to 5: it answers what was asked")
    completeness: Points = Field(description="1 to 5: it says all that the passages hold on it")
    reason: str = Field(description="why, in one sentence")
    quote: str = Field(description="one sentence of the passages, copied to the letter")
    questions: list[str] = Field(description="three questions that the answer answers")
    noncommittal: bool = Field(description="true if the answer evades or says that it does not know")


class ModelJudge:
    """Has a chat model judge answers."""

    def __init__(self, fill: Fill, texts: PromptTexts) -> None:
        self._fill = fill
        self._texts = texts

    def scores(self, case: Case, answer: Answer, encode: Encode | None) -> dict[str, float | None]:
        """1 to 5 for faithfulness, relevance and completeness, and RAGAS's answer relevancy: the mean cosine of the
        question with three that the answer answers, 0 where it is noncommittal. None where nothing can be read."""
        names = [*(f"judged_{one}" for one in _POINTS), "answer_relevancy"]
        said = self._said(case.question, answer) if answer.text and answer.passages else None
        if said is None:
            return dict.fromkeys(names)
        points = {f"judged_{one}": float(getattr(said, one)) for one in _POINTS}
        return {**points, "answer_relevancy": _relevancy(case.question, said, encode)}

    def _said(self, question: str, answer: Answer) -> Judgement | None:
        prompt = requests.assess(self._texts, question, unmarked(answer.text), answer.passages)
        try:
            said = self._fill(Judgement, prompt)
        except ModelError:
            return None
        readable = isinstance(said, Judgement) and _stands(said.quote, [one.text for one in answer.passages])
        return said if readable and isinstance(said, Judgement) else None


def _stands(quote: str, texts: Sequence[str]) -> bool:
    bare = squash(quote)
    return bool(bare) and any(bare in squash(text) for text in texts)


def _relevancy(question: str, said: Judgement, encode: Encode | None) -> float | None:
    asked = [one for one in said.questions if one.strip()]
    vectors = encode(question, asked) if encode and asked else None
    if vectors is None:
        return None
    return float((vectors[1:] @ vectors[0]).mean()) * (not said.noncommittal)


# Agreement with people


@dataclass(frozen=True, slots=True)
class Label:
    """A statement that `by` judged, for a person to judge as well: `label` is what the person said, "" so far."""

    id: str
    question: str
    statement: str
    passages: tuple[str, ...]
    judged: Verdict
    label: Verdict | Literal[""] = ""
    by: CheckedBy = "rules"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa of judge and people, over `n` labels, and the F1 of each verdict, people's being the truth."""

    n: int
    kappa: Estimate
    f1: dict[Verdict, float]

    @property
    def enough(self) -> bool:
        """Whether the judge's figures may stand in the first row: enough labels, and better than chance for certain."""
        return self.n >= ENOUGH and self.kappa.low > 0


def labels_of(rows: Sequence[RowView], questions: dict[str, str]) -> list[Label]:
    """The statements of a run's answers, with the passages that they cite, or all, and the verdicts they have."""
    found = []
    for row in rows:
        texts = [one.text for one in row.answer.passages]
        for said in said_in(row.answer):
            if said.verdict is not None and texts:
                held = tuple(texts[n - 1] for n in said.cited) or tuple(texts)
                name = hashlib.sha256("\n".join([said.text, *held]).encode()).hexdigest()[:16]
                found.append(Label(name, questions[row.case_id], said.text, held, said.verdict, by=said.by))
    return found


def agreement(labels: Sequence[Label]) -> Agreement | None:
    """None without labels."""
    pairs = [(one.judged, one.label) for one in labels if one.label]
    if not pairs:
        return None
    judged, people = (
        np.array([[one == verdict for verdict in get_args(Verdict)] for one in side], dtype=float)
        for side in zip(*pairs, strict=True)
    )
    kappa = estimate(cohens_kappa(draws(range(len(pairs))), judged, people))
    hits, sizes = (judged * people).sum(axis=0), (judged + people).sum(axis=0)
    f1 = {
        verdict: float(2 * hits[at] / sizes[at]) for at, verdict in enumerate(get_args(Verdict)) if people[:, at].any()
    }
    return Agreement(len(pairs), kappa, f1)


def cohens_kappa(weights: Weights, one: np.ndarray, other: np.ndarray) -> Figures:
    """Agreement beyond chance (Cohen 1960): (observed - expected) / (1 - expected). `one` and `other` are (n, classes)
    of 0 and 1; where both only ever say the same, there is nothing to tell."""
    total = weights.sum(axis=1)
    observed = share(weights @ (one * other).sum(axis=1), total)
    expected = share(((weights @ one) * (weights @ other)).sum(axis=1), total**2)
    return share(observed - expected, 1 - expected)
