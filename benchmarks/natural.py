"""Questions in people's own words, which do not repeat the page's, answered by quoting: the set `natural`.

Do the quotes hold the answer, and does the first one? Is the evidence in what is read? Is a question that no page
answers left unanswered? Beside them stand the sentences of the library whose vectors are nearest to the question, each
encoded after its page's title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.ours import MeasuredApp
from benchmarks.quoted import sentences_of
from rag.app import Question
from rag.evaluation.evidence import character_recall, squash
from rag.text import split_sentences

BUDGET = 4000


@dataclass(frozen=True)
class Reply:
    """What came of one question; `holds` is None where no page answers it, and `recall` is of the evidence read."""

    languages: str
    answered: bool
    sentences: int = 0
    holds: bool | None = None
    first_holds: bool | None = None
    recall: float | None = None


def by_app(app: MeasuredApp, library: str, data: Dataset) -> list[Reply]:
    """A fast answer to each question, with the defaults that people get."""
    return [_ask(app, library, row) for row in data.questions]


def _ask(app: MeasuredApp, library: str, row: dict[str, Any]) -> Reply:
    answer = app.wait(app.ask(Question(row["question"], (library,))))
    languages, answered = languages_of(row), answer.outcome == "answered"
    if not row["evidence"]:
        return Reply(languages, answered)
    quotes = [] if answer.outcome == "not_in_pages" else sentences_of(answer.text)
    read = [passage.text for passage in app.search(row["question"], library=library).passages]
    recall = character_recall([one["quote"] for one in row["evidence"]], read, BUDGET)
    return Reply(languages, answered, len(quotes), holds(row, quotes), holds(row, quotes[:1]), recall)


def by_nearest(app: MeasuredApp, data: Dataset, count: int) -> list[bool]:
    """For each question with an answer, whether the `count` nearest sentences of all pages hold it."""
    found = [
        (page["title"], page["text"][start:end]) for page in data.pages for start, end in split_sentences(page["text"])
    ]
    vectors = app.models.embedding.encode_passages([f"{title}. {text}" for title, text in found])
    asked = [row for row in data.questions if row["evidence"]]
    nearest = [np.argsort(-(vectors @ app.models.embedding.encode_query(row["question"])))[:count] for row in asked]
    return [holds(row, [found[place][1] for place in places]) for row, places in zip(asked, nearest, strict=True)]


def holds(row: dict[str, Any], quotes: Sequence[str]) -> bool:
    said = "".join(map(squash, quotes))
    return any(squash(gold) in said for gold in row["answers"])


def languages_of(row: dict[str, Any]) -> str:
    """The language of the question and that of the page, such as `zh-en`: the id says both."""
    return "-".join(str(row["id"]).split("-")[1:3])
