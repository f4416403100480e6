"""Quality of retrieval and of extractive answers, on any sets in the format of `datasets.py`.

    python -m benchmarks.evaluate [SET …] [--data FOLDER] [--limit N] [--strategy NAME …]

Prints one JSON line for each set: the scores of each strategy with k = 20, and the share of questions
whose fast answer, written without a model in at most three sentences, holds a gold answer. Without any sets
it runs on the sample pages.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, load, score, squash
from benchmarks.samples import find_sets
from rag.app import App
from rag.config import load_settings
from rag.ingest.batch import ingest_all
from rag.ingest.records import record_sources
from rag.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES
from rag.text import split_sentences

K = 20


def main() -> int:
    options = _options()
    folders = find_sets(options.data, options.sets)
    if not folders:
        print(f"no sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    for folder in folders:
        row = evaluate(load(folder, options.limit), options.strategy or [DEFAULT_STRATEGY])
        print(json.dumps(row, ensure_ascii=False), flush=True)
    return 0


def evaluate(data: Dataset, strategies: Sequence[str]) -> dict[str, object]:
    """Import the set's pages into a library of their own, and ask all its questions."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=folder, llm_model="", qdrant_url="", embedding_model="builtin")
        with closing(App(settings)) as app:
            lines = (json.dumps(page) for page in data.pages)
            rows = list(ingest_all(app.imports.ingestor("main"), list(record_sources(lines, data.name))))
            row: dict[str, object] = {"set": data.name, "pages": len(rows), "questions": len(data.questions)}
            row["chunks"] = app.library("main").chunk_count()
            row["retrieval"] = {name: _retrieval(app, data, name) for name in strategies}
            if any(question["answers"] for question in data.questions):
                row["answers"] = _answers(app, data)
            return row


def _retrieval(app: App, data: Dataset, strategy: str) -> dict[str, float]:
    retriever = app.retriever("main")
    began = time.perf_counter()
    hits = {
        str(question["id"]): [
            passage.text
            for passage in retriever.search(question["question"], k=K, fetch_k=2 * K, strategy=strategy).passages
        ]
        for question in data.questions
    }
    spent = time.perf_counter() - began
    rounded = {name: round(value, 4) for name, value in score(data.questions, hits).items()}
    return {**rounded, "ms": round(1000 * spent / max(1, len(data.questions)), 1)}


def _answers(app: App, data: Dataset) -> dict[str, object]:
    right = refused = longest = 0
    asked = [question for question in data.questions if question["answers"]]
    for question in asked:
        answer = app.wait(app.ask(question["question"], mode="fast", library="main"))
        right += any(squash(gold) in squash(answer.text) for gold in question["answers"])
        refused += answer.outcome == "not_in_pages"
        longest = max(longest, len(split_sentences(re.sub(r"\[\d+\]", "", answer.text))))
    share = right / max(1, len(asked))
    return {"gold_in_answer": round(share, 4), "refused": refused, "most_sentences": longest}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions of each set")
    parser.add_argument("--strategy", action="append", choices=list(STRATEGIES))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
