"""Questions that follow on a report: answered from what it was written from, beside a search for each.

    python -m benchmarks.ledger [--sets A,B] [--data FOLDER] [--limit N] [--json]

Two questions about one page follow on each other; the first one's search stands for the report's ledger. all@4000 of
the second question, with 95 % intervals: by a search; by the ledger where one place in it says enough of what is asked
(`rag.retrieval.ledger`), else by a search; and where it is likelier than not that the ledger holds the answer. Writes
ledger.md and ledger.json into benchmarks/out.
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
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.evaluation.evidence import has_all
from rag.retrieval.answerable import UNDECIDED, estimate_answerable
from rag.retrieval.ledger import Ledger, select_best
from rag.types import Passage

SETS = ("xquad-en", "xquad-zh", "dragon-finance-en", "dragon-finance-zh")
_ROOM = 4000
_K = 10
Question = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """Whether what a search finds holds the evidence, what the ledger has does, and which gates let it answer."""

    searched: float
    held: float
    by_place: bool
    by_likelihood: bool


def pairs_of(data: Dataset, limit: int | None) -> list[tuple[Question, Question]]:
    """Questions whose first evidence stands in one page, each with the one that follows."""
    by_page: dict[str, list[Question]] = {}
    for row in data.questions:
        if row["evidence"]:
            by_page.setdefault(str(row["evidence"][0]["url"]), []).append(row)
    pairs = [pair for rows in by_page.values() for pair in pairwise(rows)]
    return pairs[:: max(1, len(pairs) // limit)] if limit else pairs


def ask(app: MeasuredApp, library: str, first: Question, then: Question) -> Asked:
    question, sparse = str(then["question"]), app.models.sparse
    before = app.search(str(first["question"]), library=library, k=2 * _K).passages
    found = app.search(question, library=library, k=_K).passages
    idf = app.library(library).idf
    held = Ledger(lambda: before, sparse, idf).find(question, _K)
    best = select_best(question, before, sparse, _K)
    likely = estimate_answerable(best, question, sparse, idf) if best else 0.0
    return Asked(_holds(then, found), _holds(then, best), held is not None, likely > UNDECIDED)


def _holds(row: Question, passages: Sequence[Passage]) -> float:
    return has_all([one["quote"] for one in row["evidence"]], [one.text for one in passages], _ROOM)


def rows_of(name: str, asked: Sequence[Asked]) -> Iterator[Row]:
    gates = {
        "a search for each": [False for _ in asked],
        "one place says enough": [one.by_place for one in asked],
        "likelier than not": [one.by_likelihood for one in asked],
    }
    for way, answers in gates.items():
        holds = [one.held if use else one.searched for one, use in zip(asked, answers, strict=True)]
        ahead = [value - one.searched for value, one in zip(holds, asked, strict=True)]
        yield {
            "set": name,
            "way": way,
            "questions": len(asked),
            "without a search": f"{sum(answers) / len(asked):.2f}",
            "all@4000": intervals.told(holds),
            "ahead of a search": intervals.told(ahead, signed=True) if any(answers) else "",
        }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            take_in(app, data, "semantic", data.name)
            rows += rows_of(data.name, [ask(app, data.name, *pair) for pair in pairs_of(data, options.limit)])
            print(f"{data.name} is done", file=sys.stderr, flush=True)
    columns = list(rows[0]) if rows else []
    table = report.table(columns, [[str(row[column]) for column in columns] for row in rows])
    known = {**machine.describe(()), "limits": f"{options.limit or 'all'} pairs of questions of a set"}
    report.save("ledger", known, rows, table)
    print(json.dumps({"run": known, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0 if rows else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS), metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="about N pairs of each set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
