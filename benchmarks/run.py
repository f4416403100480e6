"""The results of one system on one set, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks import datasets, tokens
from benchmarks.datasets import Dataset

Row = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Run:
    """The results of one system: texts in rank order by question id, and their cost.

    `encoded` is the number of tokens that went through the model, `ms` milliseconds per question; `answerable` the
    score of each question by id, if the system has one.
    """

    hits: Mapping[str, list[str]]
    ms: float
    chunks: int
    stored_s: float
    encoded: int | None = None
    answerable: Mapping[str, float] = field(default_factory=dict)


def score_run(data: Dataset, system: str, run: Run) -> Row:
    """Return one row of the table."""
    source = tokens.count([page["text"] for page in data.pages])
    scores = {**datasets.score(data.questions, run.hits), **_separation(data, run)}
    return {
        "set": data.name,
        "system": system,
        "questions": len(data.questions),
        **{name: round(value, 4) for name, value in scores.items()},
        "chunks": run.chunks,
        "encoded": None if run.encoded is None else round(run.encoded / max(1, source), 2),
        "stored_s": round(run.stored_s, 1),
        "ms": round(run.ms, 1),
    }


def _separation(data: Dataset, run: Run) -> dict[str, float]:
    """Return how well the system's own score separates answerable questions, in a set that labels them."""
    rows = [question for question in data.questions if "answerable" in question]
    if not rows or not run.answerable:
        return {}
    sides = {side: [run.answerable[str(q["id"])] for q in rows if q["answerable"] is side] for side in (True, False)}
    return datasets.separation(sides[True], sides[False])
