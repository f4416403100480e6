"""Answers that are quoted from the pages, no chat model asked: do they answer, and with how much beside it?

Beside them stand the two sentences of the library that BM25 ranks first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.datasets import Dataset
from benchmarks.ours import MeasuredApp
from benchmarks.plain import PlainSearch, pieces_of
from rag.app import Question
from rag.evaluation.evidence import squash
from rag.text import split_sentences, strip_citations

_SHORT = 40  # characters: a longer answer is never quoted to the letter


@dataclass(frozen=True)
class Quoted:
    """How one question was answered: in which sentences, which of them stand in the evidence, and whether one of them
    holds the answer that people gave; None where theirs is a text of its own."""

    sentences: int
    in_evidence: Sequence[bool]
    holds: bool | None


def by_app(app: MeasuredApp, library: str, data: Dataset) -> list[Quoted]:
    """A fast answer to each question that has one."""
    found = (app.wait(app.ask(Question(row["question"], (library,)))) for row in _asked(data))
    texts = ("" if answer.outcome == "not_in_pages" else answer.text for answer in found)
    return [_scored(row, sentences_of(text)) for row, text in zip(_asked(data), texts, strict=True)]


def by_words(data: Dataset, app: MeasuredApp) -> list[Quoted]:
    """The two sentences that BM25 ranks first."""
    search = PlainSearch(pieces_of(data.pages, 0), app.models.embedding)
    return [_scored(row, search.by_words(row["question"], 2)) for row in _asked(data)]


def _asked(data: Dataset) -> Iterator[dict[str, Any]]:
    return (row for row in data.questions if row["answers"] and row["evidence"])


def _scored(row: dict[str, Any], sentences: Sequence[str]) -> Quoted:
    golds = [squash(gold) for gold in row["answers"]]
    short = all(len(gold) <= _SHORT for gold in golds)
    said = "".join(map(squash, sentences))
    return Quoted(len(sentences), in_evidence(row, sentences), any(gold in said for gold in golds) if short else None)


def in_evidence(row: Mapping[str, Any], sentences: Iterable[str]) -> list[bool]:
    """Which of the sentences stand in a question's evidence: either holds the other, as it may be less than one."""
    evidence = [squash(one["quote"]) for one in row["evidence"]]
    return [any(one in quote or quote in one for quote in evidence) for one in map(squash, sentences)]


def sentences_of(text: str) -> list[str]:
    bare = strip_citations(text)
    return [bare[start:end] for start, end in split_sentences(bare)]
