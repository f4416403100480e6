"""Messages that ask two questions: consecutive questions about one page, joined by a comma or by question marks.

Measures how many of the two answers the quotes contain. The rivals treat the message as one question, with the quotes
that the app then selects, and with as many quotes as ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest.mock import patch

from benchmarks.datasets import is_trained_on
from benchmarks.measured_app import MeasuredApp
from benchmarks.natural_questions import contains_answer
from benchmarks.quoted import sentences_of
from rag.app import Question
from rag.reasoning import extractive, hops

OURS = "each question"
UNDIVIDED = "as one question"
AS_MANY = "as one question, as many quotes"
_UNLIMITED = {"MAX_SENTENCES": 8, "MIN_LIKELIHOODS": (0.0,) * 8, "MIN_LIKELIHOODS_ELSEWHERE": (0.0,) * 8}

Row = dict[str, Any]
Pair = tuple[str, Row, Row]
"""A message and its two questions."""


@dataclass(frozen=True)
class Reply:
    """The answers, 0 to 2, that the quotes contain, and the number of quotes."""

    contained: int
    quotes: int


def pairs(questions: Iterable[Row]) -> list[Pair]:
    """Return the pairs of questions with answers about the same page in the same language."""
    by_page = defaultdict(list)
    for row in questions:
        if row["answers"] and row["evidence"] and not is_trained_on(row):
            by_page[row["evidence"][0]["url"], row["lang"]].append(row)
    joined = [pair for rows in by_page.values() for pair in zip(rows[::2], rows[1::2], strict=False)]
    return [(_join(place, first, second), first, second) for place, (first, second) in enumerate(joined)]


def _join(place: int, first: Row, second: Row) -> str:
    before, after = (str(row["question"]).strip().rstrip("?？。. ") for row in (first, second))
    is_chinese = first["lang"] == "zh"
    if place % 2:
        return f"{before}？{after}？" if is_chinese else f"{before}? {after}?"
    return f"{before}，{after}？" if is_chinese else f"{before}, and {after[0].lower()}{after[1:]}?"


def measure(app: MeasuredApp, library: str, rows: Sequence[Pair]) -> dict[str, list[Reply]]:
    """Ask each message in fast mode; the rivals quote from the passages of the same search."""
    replies: dict[str, list[Reply]] = defaultdict(list)
    for message, *questions in rows:
        answer = app.wait(app.ask(Question(message, (library,))))
        quotes = [] if answer.outcome == "not_in_pages" else sentences_of(answer.text)
        replies[OURS].append(_score(quotes, questions))
        quoter, passages = app.quoter(library), answer.passages if quotes else []
        replies[UNDIVIDED].append(_score([one.unit.text for one in quoter.select(message, passages)], questions))
        with patch.multiple(extractive, **_UNLIMITED):
            selected = islice(quoter.select(message, passages), len(quotes))
            replies[AS_MANY].append(_score([one.unit.text for one in selected], questions))
    return replies


def measure_research(app: MeasuredApp, library: str, rows: Sequence[Pair]) -> dict[str, list[Reply]]:
    """Ask each message in research mode, with a step for each question and with one for the message."""
    replies: dict[str, list[Reply]] = defaultdict(list)
    for message, *questions in rows:
        for way, split in ((OURS, hops.split_questions), (UNDIVIDED, lambda undivided: [undivided])):
            with patch.object(hops, "split_questions", split):
                answer = app.wait(app.ask(Question(message, (library,), "research")))
            quotes = [] if answer.outcome == "not_in_pages" else [one.quote for one in answer.citations]
            replies[way].append(_score(quotes, questions))
    return replies


def _score(quotes: Sequence[str], questions: Iterable[Row]) -> Reply:
    return Reply(sum(contains_answer(question, quotes) for question in questions), len(quotes))
