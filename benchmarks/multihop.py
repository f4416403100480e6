"""Questions that need several places: searches planned without a model, beside one search.

    python -m benchmarks.multihop [--sets A,B] [--data FOLDER] [--limit N] [--json]

all@4000, with 95 % intervals, and how much it is ahead of one search of the same question, by pairs. Planned are the
question and what `rag.reasoning.hops` adds to it, at most three and six searches together; what they find is one list,
as a report is written from. Where a set has `subqueries.jsonl`, its sub-questions, or the titles of its evidence where
it has none, are searched in the planner's place: so much can be had by planning better. `--limit` questions of a set,
evenly spread. Writes multihop.md and multihop.json into benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import datasets, intervals, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.evaluation.evidence import holds_all
from rag.reasoning.hops import RulePlanner, in_turns
from rag.types import Passage

SETS = ("hotpot", "musique", "dragon-finance-en", "dragon-finance-zh")
SEARCHES = (3, 6)
_K = 20
_ROOM = 4000

Search = Callable[[str], Sequence[Passage]]


@dataclass(frozen=True)
class Asked:
    """A question's searches, and whether what they found, as one list, holds all of its evidence."""

    searches: int
    holds: float


def planned(planner: RulePlanner, search: Search, question: str, most: int) -> list[str]:
    """What is searched for, the question first, until `most` searches are made or nothing new is named."""
    asked = [one.text for one in planner.plan(question)]
    while len(asked) < most and (more := planner.revise(question, asked, [search(one) for one in asked])):
        asked += [one.text for one in more][: most - len(asked)]
    return asked


def measure(app: MeasuredApp, data: Dataset, library: str) -> dict[str, list[Asked]]:
    """Each way to search, with what it did for each question."""

    @cache
    def search(question: str) -> Sequence[Passage]:
        return app.search(question, library=library, k=_K).passages

    def ask(row: Mapping[str, Any], queries: Sequence[str]) -> Asked:
        texts = [passage.text for passage in in_turns([search(one) for one in queries])]
        return Asked(len(queries), holds_all([one["quote"] for one in row["evidence"]], texts, _ROOM))

    planner = RulePlanner(app.models.sparse, app.libraries.working(library).idf)
    questions = [(row, str(row["question"])) for row in data.questions]
    found = {"one search": [ask(row, [question]) for row, question in questions]}
    for most in SEARCHES:
        found[f"at most {most}"] = [ask(row, planned(planner, search, question, most)) for row, question in questions]
    if gold := _gold(data):
        found["gold sub-questions"] = [ask(row, gold[str(row["id"])]) for row, _ in questions]
    return found


def _gold(data: Dataset) -> dict[str, list[str]]:
    path = data.folder / "subqueries.jsonl"
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {str(row["id"]): row["sub"] or row["titles"] for row in rows}


def rows_of(data: Dataset, found: Mapping[str, Sequence[Asked]]) -> Iterator[Row]:
    """For the whole set and, where it has several kinds of questions, each of them."""
    kinds = sorted({str(row["kind"]) for row in data.questions if row.get("kind")})
    for kind in ("", *(kinds if len(kinds) > 1 else [])):
        own = [place for place, row in enumerate(data.questions) if kind in ("", row.get("kind"))]
        one = [found["one search"][place].holds for place in own]
        for way, asked in found.items():
            holds = [asked[place].holds for place in own]
            gains = [value - before for value, before in zip(holds, one, strict=True)]
            yield {
                "set": f"{data.name}, {kind}" if kind else data.name,
                "way": way,
                "questions": len(own),
                "searches": round(sum(asked[place].searches for place in own) / len(own), 2),
                "all@4000": intervals.told(holds),
                "ahead of one search": "" if way == "one search" else intervals.told(gains, signed=True),
            }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            data = replace(data, questions=datasets.spread([q for q in data.questions if q["evidence"]], options.limit))
            take_in(app, data, "semantic", data.name)
            rows += rows_of(data, measure(app, data, data.name))
            print(f"{data.name}: {len(data.questions)} questions", file=sys.stderr, flush=True)
    columns = list(rows[0]) if rows else []
    table = report.table(columns, [[str(row[column]) for column in columns] for row in rows])
    limits = f"{options.limit or 'all'} questions of a set, no chat model, the built-in embedding model"
    known = {**machine.describe(()), "limits": limits}
    report.save("multihop", known, rows, table)
    print(json.dumps({"run": known, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0 if rows else 1


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS), metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N questions of each set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
