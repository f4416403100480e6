"""Follow-up questions to a report: answered from its sources, compared with a new search.

    python -m benchmarks.ledger [--sets A,B] [--data FOLDER] [--limit N] [--json]

For two successive questions about a page, the search results of the first serve as the report's ledger. all@4000 of the
second, with 95% intervals: by a search; by the ledger if one place in it covers enough of the question
(`rag.retrieval.retriever`), else by a search; and by the ledger if it more likely than not has the answer, else by
a search. Writes ledger.md and ledger.json into benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import datasets, intervals, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.evaluation.metrics import has_all
from rag.retrieval.context import UNDECIDED, estimate_answerable, select_best
from rag.retrieval.retriever import Ledger
from rag.types import Passage

SETS = ("xquad-en", "xquad-zh", "dragon-finance-en", "dragon-finance-zh")
_BUDGET = 4000
_TOP = 10
Question = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """Recall of a search and of the ledger, and whether each gate lets the ledger answer."""

    search_recall: float
    ledger_recall: float
    passes_place_gate: bool
    passes_likelihood_gate: bool


def pairs_of(data: Dataset, limit: int | None) -> list[tuple[Question, Question]]:
    """Return pairs of successive questions whose first evidence is on the same page."""
    by_page: dict[str, list[Question]] = {}
    for row in data.questions:
        if row["evidence"]:
            by_page.setdefault(str(row["evidence"][0]["url"]), []).append(row)
    pairs = [pair for rows in by_page.values() for pair in pairwise(rows)]
    return pairs[:: max(1, len(pairs) // limit)] if limit else pairs


def ask(app: MeasuredApp, library: str, first: Question, following: Question) -> Result:
    question, sparse = str(following["question"]), app.models.sparse
    sources = app.search(str(first["question"]), library=library, k=2 * _TOP).passages
    passages = app.search(question, library=library, k=_TOP).passages
    idf = app.library(library).idf
    matches = Ledger(lambda: sources, sparse, idf).find(question, _TOP)
    best = select_best(question, sources, sparse, _TOP)
    chance = estimate_answerable(best, question, sparse, idf) if best else 0.0
    return Result(_recall(following, passages), _recall(following, best), matches is not None, chance > UNDECIDED)


def _recall(row: Question, passages: Sequence[Passage]) -> float:
    return has_all([one["quote"] for one in row["evidence"]], [passage.text for passage in passages], _BUDGET)


def rows_of(name: str, results: Sequence[Result]) -> Iterator[Row]:
    gates = {
        "a search for each": [False for _ in results],
        "one place says enough": [one.passes_place_gate for one in results],
        "likelier than not": [one.passes_likelihood_gate for one in results],
    }
    for way, answers in gates.items():
        holds = [
            one.ledger_recall if from_ledger else one.search_recall
            for one, from_ledger in zip(results, answers, strict=True)
        ]
        gains = [value - one.search_recall for value, one in zip(holds, results, strict=True)]
        yield {
            "set": name,
            "way": way,
            "questions": len(results),
            "without a search": f"{sum(answers) / len(results):.2f}",
            "all@4000": intervals.format_mean(holds),
            "ahead of a search": intervals.format_mean(gains, signed=True) if any(answers) else "",
        }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            import_set(app, data, "semantic", data.name)
            rows += rows_of(data.name, [ask(app, data.name, *pair) for pair in pairs_of(data, options.limit)])
            print(f"{data.name} is done", file=sys.stderr, flush=True)
    columns = list(rows[0]) if rows else []
    table = report.table(columns, [[str(row[column]) for column in columns] for row in rows])
    facts = {**machine.describe(()), "limits": f"{options.limit or 'all'} pairs of questions per set"}
    report.save("ledger", facts, rows, table)
    print(json.dumps({"run": facts, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0 if rows else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS), metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="about N pairs per set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
