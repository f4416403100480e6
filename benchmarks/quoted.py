"""Answers quoted from the pages without a chat model: correctness, and how much else they quote.

The rival is the two sentences of the library that BM25 ranks first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.datasets import Dataset
from benchmarks.measured_app import MeasuredApp
from benchmarks.plain_search import PlainSearch, pieces_of
from rag.app import Question
from rag.evaluation.support import normalise_text
from rag.text import split_sentences, strip_citations

_SHORT_ANSWER = 40  # characters; a longer answer is never quoted verbatim


@dataclass(frozen=True)
class Quoted:
    """A quoted answer; `contains_answer` is None if the reference answers are long texts."""

    sentences: int
    in_evidence: Sequence[bool]
    contains_answer: bool | None


def by_app(app: MeasuredApp, library: str, data: Dataset) -> list[Quoted]:
    """Answer in fast mode each question with an answer."""
    answers = (app.wait(app.ask(Question(row["question"], (library,)))) for row in _answerable(data))
    texts = ("" if answer.outcome == "not_in_pages" else answer.text for answer in answers)
    return [_score(row, sentences_of(text)) for row, text in zip(_answerable(data), texts, strict=True)]


def by_words(data: Dataset, app: MeasuredApp) -> list[Quoted]:
    """Answer with the two sentences that BM25 ranks first."""
    search = PlainSearch(pieces_of(data.pages, 0), app.models.embedding)
    return [_score(row, search.by_words(row["question"], 2)) for row in _answerable(data)]


def _answerable(data: Dataset) -> Iterator[dict[str, Any]]:
    return (row for row in data.questions if row["answers"] and row["evidence"])


def _score(row: dict[str, Any], sentences: Sequence[str]) -> Quoted:
    golds = [normalise_text(gold) for gold in row["answers"]]
    short = all(len(gold) <= _SHORT_ANSWER for gold in golds)
    quoted = "".join(map(normalise_text, sentences))
    return Quoted(len(sentences), in_evidence(row, sentences), any(gold in quoted for gold in golds) if short else None)


def in_evidence(row: Mapping[str, Any], sentences: Iterable[str]) -> list[bool]:
    """Return which of the sentences are in a question's evidence: either contains the other, as it may be shorter."""
    evidence = [normalise_text(one["quote"]) for one in row["evidence"]]
    return [any(one in quote or quote in one for quote in evidence) for one in map(normalise_text, sentences)]


def sentences_of(text: str) -> list[str]:
    bare = strip_citations(text)
    return [bare[start:end] for start, end in split_sentences(bare)]
