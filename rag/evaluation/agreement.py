"""The agreement of a judge's verdicts with people's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from rag.evaluation.runs import RowView
from rag.evaluation.statistics import Estimate, Figures, Weights, bootstrap_weights, estimate, share
from rag.evaluation.support import split_answer
from rag.types import CheckedBy, Verdict

MIN_LABELS: Final = 100
"""Minimum number of labels for assessing a judge."""


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
