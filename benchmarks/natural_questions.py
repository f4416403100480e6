"""Questions in people's own words, which do not repeat the page's, answered by quoting: the set `natural`.

Measures whether the quotes, and the first one, contain the answer, and whether a question that no page answers stays
unanswered. The rivals are the sentences of the library whose vectors are nearest to the question, each encoded after
its page's title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.measured_app import MeasuredApp
from benchmarks.quoted import sentences_of
from rag.app import Question
from rag.evaluation.support import normalise_text
from rag.text import split_sentences


@dataclass(frozen=True)
class Reply:
    """The result of one question; `contains_answer` is None if no page answers it."""

    languages: str
    answered: bool
    sentences: int = 0
    contains_answer: bool | None = None
    first_contains_answer: bool | None = None


def by_app(app: MeasuredApp, library: str, data: Dataset) -> list[Reply]:
    """Answer each question in fast mode, with the app's defaults."""
    return [_ask(app, library, row) for row in data.questions]


def _ask(app: MeasuredApp, library: str, row: dict[str, Any]) -> Reply:
    answer = app.wait(app.ask(Question(row["question"], (library,))))
    languages, answered = languages_of(row), answer.outcome == "answered"
    if not row["evidence"]:
        return Reply(languages, answered)
    quotes = [] if answer.outcome == "not_in_pages" else sentences_of(answer.text)
    return Reply(languages, answered, len(quotes), contains_answer(row, quotes), contains_answer(row, quotes[:1]))


def by_nearest(app: MeasuredApp, data: Dataset) -> tuple[list[bool], list[bool]]:
    """Return for each answerable question whether the nearest sentence, and the nearest two, contain the answer."""
    lines = [
        (page["title"], page["text"][start:end]) for page in data.pages for start, end in split_sentences(page["text"])
    ]
    vectors = app.models.embedding.encode_passages([f"{title}. {text}" for title, text in lines])
    rows = [row for row in data.questions if row["evidence"]]
    nearest = [np.argsort(-(vectors @ app.models.embedding.encode_query(row["question"])))[:2] for row in rows]
    texts = [[lines[place][1] for place in places] for places in nearest]
    one, two = (
        [contains_answer(row, found[:count]) for row, found in zip(rows, texts, strict=True)] for count in (1, 2)
    )
    return one, two


def contains_answer(row: dict[str, Any], quotes: Sequence[str]) -> bool:
    quoted = "".join(map(normalise_text, quotes))
    return any(normalise_text(gold) in quoted for gold in row["answers"])


def languages_of(row: dict[str, Any]) -> str:
    """Return the languages of the question and of the page, such as `zh-en`, from the id."""
    return "-".join(str(row["id"]).split("-")[1:3])
