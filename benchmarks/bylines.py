"""Questions about who wrote a page or a post in it, and when: are the author and the date quoted?

    python -m benchmarks.bylines [--data FOLDER]

Asks the held-out questions of `byline_questions.jsonl` in fast mode without a chat model, in a library of all pages
that have such questions, read from their HTML. The rivals are the sentences of all pages nearest to the question.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks import natural_questions, report
from benchmarks.datasets import DEFAULT_FOLDER
from benchmarks.intervals import format_mean
from benchmarks.measured_app import measured_app
from benchmarks.reader_questions import load_bylines, read_sources
from rag.ingest.batch import ingest_all


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    folder = parser.parse_args().data
    held_out, trained = (load_bylines(folder, held_out=held_out) for held_out in (True, False))
    keys = {row["url"] for row in (*held_out.questions, *trained.questions)}
    with measured_app() as app:
        app.libraries.create("bylines")
        list(ingest_all(app.imports.ingestor("bylines"), read_sources(folder, keys)))
        library = app.library("bylines")
        stored = library.pages()
        texts = library.texts([page.url_hash for page in stored])
        data = replace(held_out, pages=[{"title": page.title, "text": texts[page.url_hash]} for page in stored])
        replies = natural_questions.by_app(app, "bylines", data)
        nearest, nearest_two = natural_questions.by_nearest(app, data)
    answerable = [reply for reply in replies if reply.contains_answer is not None]
    others = [reply for reply in replies if reply.contains_answer is None]
    figures = {
        "first quote contains the answer": ([reply.first_contains_answer for reply in answerable], nearest),
        "quotes contain the answer": ([reply.contains_answer for reply in answerable], nearest_two),
        "answerable questions answered": ([reply.answered for reply in answerable], []),
        "unanswerable questions answered": ([reply.answered for reply in others], []),
    }
    rows = [
        [name, str(len(ours)), format_mean([float(bool(one)) for one in ours]), format_mean(rival) if rival else ""]
        for name, (ours, rival) in figures.items()
    ]
    print(report.table(["", "questions", "ours", "nearest one, two"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
