"""Questions in people's own words over real web pages: is the answer in the passages, by way of fusing the searches?

    python -m benchmarks.fusion [--data FOLDER] [--questions N]

The library has all pages that the answer reader's questions are about, as the app reads them, in English and Chinese.
Searches for the held-out questions, and for --questions (default 500) of the others, which no search was fitted to, and
prints the share of those whose answer is in the passages of their page, by the languages of question and page. The ways
are the default (by rank, with a leg for pages in other languages), without that leg, and by score.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from benchmarks import report
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, measured_app
from benchmarks.natural_questions import contains_answer, languages_of
from benchmarks.reader_questions import cite, language_of, load_held_out, read_pages, read_questions, read_sources
from rag.ingest.batch import ingest_all
from rag.retrieval import strategies

Row = dict[str, Any]

LIBRARY: Final = "pages"
_TOGETHER = patch.object(strategies, "question_language", lambda _: "")
_BY_SCORE = patch.object(strategies.Tuning, "fuse", lambda _, legs: strategies.fuse_by_score(legs, 0.75, 0.25))
WAYS: Final = {"default": (), "all languages together": (_TOGETHER,), "by score": (_TOGETHER, _BY_SCORE)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--questions", type=int, default=500, metavar="N")
    options = parser.parse_args()
    pages = read_pages(options.data)
    trained = [row for row in read_questions(held_out=False) if "quote" in row]
    sample = random.Random(1).sample(trained, min(options.questions, len(trained)))
    rows = {
        "held out": [row for row in load_held_out(options.data).questions if row["evidence"]],
        "others": [cite(row, pages) | {"id": f"others-{row['lang']}-{language_of(row['url'])}"} for row in sample],
    }
    keys = {row["url"] for held_out in (True, False) for row in read_questions(held_out=held_out)}
    lines = []
    with measured_app() as app:
        app.libraries.create(LIBRARY)
        list(ingest_all(app.imports.ingestor(LIBRARY), read_sources(options.data, keys)))
        for name, questions in rows.items():
            groups: dict[str, list[int]] = defaultdict(list)
            for place, row in enumerate(questions):
                groups[languages_of(row)].append(place)
            found = {way: _search(app, questions, way) for way in WAYS}
            for group, places in {"all": [*range(len(questions))], **dict(sorted(groups.items()))}.items():
                cells = [format_mean([float(found[way][place]) for place in places]) for way in WAYS]
                lines.append([f"{name}, {group}", str(len(places)), *cells])
    print(report.table(["", "questions", *WAYS], lines))
    return 0


def _search(app: MeasuredApp, questions: Sequence[Row], way: str) -> list[bool]:
    """Return for each question whether a passage of its page has the answer."""
    with ExitStack() as stack:
        for change in WAYS[way]:
            stack.enter_context(change)
        results = [app.search(row["question"], library=LIBRARY) for row in questions]
    return [
        contains_answer(row, [one.text for one in result.passages if one.url == row["evidence"][0]["url"]])
        for row, result in zip(questions, results, strict=True)
    ]


if __name__ == "__main__":
    raise SystemExit(main())
