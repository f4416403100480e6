"""Questions about lists: are all items of the answer quoted, and little else?

    python -m benchmarks.lists [--data FOLDER]

`list_questions.jsonl`: {"page", "question", "items"}; `items` are parts of the list items that answer, one for a
question about a single item. The rule was chosen on the questions without "held_out". The pages are those of wcxb and
aeb, by id, read from their HTML, and those of `answer_reader_pages.jsonl`, by address. Asks in fast mode without a chat
model. Prints the share of the items in the answer (recall), its harmonic mean with the share of lines that have one
(F1), and the number of lines, for our rule, for lists that are at least as likely as the best sentence, without whole
lists, and with each list that is likely enough, if the question is about it or not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import report
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, measured_app
from benchmarks.reader_questions import read_sources
from rag.app import Question
from rag.evaluation.support import normalise_text
from rag.ingest.batch import ingest_all
from rag.reasoning import extractive
from rag.text import strip_citations

QUESTIONS = Path(__file__).with_name("list_questions.jsonl")
WAYS = {
    "ours": {"MAX_ITEMS": extractive.MAX_ITEMS},
    "likelier lists": {"LIST_WEIGHT": 1.0},
    "no list": {"MAX_ITEMS": 0},
    "each list": {"MIN_LIST_LIKELIHOOD": -1.0},
}
"""Constants of `rag.reasoning.extractive` to replace, by way."""
FIGURES = ("recall", "F1", "lines")


def score(text: str, items: Sequence[str]) -> tuple[float, float, float]:
    """Return the FIGURES of an answer."""
    lines = [normalise_text(line) for line in strip_citations(text).splitlines() if line.strip()]
    wanted = [normalise_text(item) for item in items]
    recall = float(np.mean([any(item in line for line in lines) for item in wanted]))
    precision = sum(any(item in line for item in wanted) for line in lines) / max(1, len(lines))
    return recall, 2 * recall * precision / max(1e-9, recall + precision), float(len(lines))


def measure(app: MeasuredApp, rows: Sequence[dict[str, Any]], way: str) -> list[tuple[float, float, float]]:
    with patch.multiple(extractive, **WAYS[way]):
        answers = [app.wait(app.ask(Question(row["question"], ("lists",)))) for row in rows]
    texts = ["" if one.outcome == "not_in_pages" else one.text for one in answers]
    return [score(text, row["items"]) for text, row in zip(texts, rows, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    options = parser.parse_args()
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with measured_app() as app:
        app.libraries.create("lists")
        list(ingest_all(app.imports.ingestor("lists"), read_sources(options.data, {row["page"] for row in rows})))
        scores = {way: measure(app, rows, way) for way in WAYS}
    lines = []
    for held_out, is_whole in product((True, False), repeat=2):
        own = [
            place
            for place, row in enumerate(rows)
            if row.get("held_out", False) is held_out and (len(row["items"]) > 1) is is_whole
        ]
        kind = f"{'whole lists' if is_whole else 'single items'}{', held out' if held_out else ''}"
        for column, figure in enumerate(FIGURES):
            cells = [format_mean([scores[way][place][column] for place in own]) for way in WAYS]
            lines.append([f"{kind}, {figure}", str(len(own)), *cells])
    print(report.table(["", "questions", *WAYS], lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
