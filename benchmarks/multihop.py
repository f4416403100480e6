"""Questions that need several passages: each way to answer them, compared with one search.

    python -m benchmarks.multihop [--modes one,deep,judge,research,gold] [--searches 3,6] [--sets A,B] [--data FOLDER]
                                  [--limit N] [--right SHARE] [--order breadth|best] [--json]

all@4000 of the passages that the answer uses, with 95% intervals, its paired gain over one search of the same question,
and its cost. Modes run through the app, without a chat model; judge and research with a limit of searches. `gold`
searches the sub-questions of a set's `subqueries.jsonl`, or the titles of its evidence, and combines the results: an
upper bound for planning. It also runs judge mode with a scripted judge that knows them and is right in `--right` of its
verdicts. `--limit` questions per set, evenly spread. Writes multihop.md and multihop.json into benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from benchmarks import datasets, intervals, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.config import load_settings
from rag.evaluation.metrics import covered_quotes, has_all
from rag.models.chat import build_chat_model
from rag.reasoning import Reasoner
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.hops import interleave
from rag.runs.run import Question, RunOptions, TreeOrder
from rag.types import Passage, RunMode
from tests.support.chat_server import ChatServer
from tests.support.judge_model import JudgeModel

SETS = ("hotpot", "musique", "dragon-finance-en", "dragon-finance-zh")
MODES = ("one", "deep", "judge", "research", "gold")
SEARCHES = (3, 6)
_TOP = 20
_BUDGET = 4000
_ONE_SEARCH = "one search"


@dataclass(frozen=True)
class Result:
    """The cost of a question, and whether the passages of its answer contain all of its evidence."""

    searches: int
    recall: float
    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Library:
    """An imported set that questions are asked of."""

    app: MeasuredApp
    name: str
    order: TreeOrder = "breadth"

    def by_search(self, row: Mapping[str, Any], queries: Sequence[str]) -> Result:
        """Return the result of these searches, merged into one list."""
        began = time.perf_counter()
        results = [self.app.search(query, library=self.name, k=_TOP).passages for query in queries]
        return Result(len(queries), _recall(row, interleave(results)), seconds=time.perf_counter() - began)

    def by_mode(self, row: Mapping[str, Any], mode: RunMode, limit: int, reasoner: Reasoner | None = None) -> Result:
        """Return the result of a mode after up to `limit` searches; 0 for no limit."""
        options = RunOptions(searches=limit or None, tree_order=self.order)
        question = Question(str(row["question"]), (self.name,), mode, options=options)
        answer = self.app.wait(self.app.ask(question, reasoner=reasoner))
        recall = _recall(row, answer.passages)
        return Result(len(answer.searches), recall, answer.model_calls, answer.seconds)


def _recall(row: Mapping[str, Any], passages: Sequence[Passage]) -> float:
    return has_all([one["quote"] for one in row["evidence"]], [passage.text for passage in passages], _BUDGET)


def measure(
    library: Library, data: Dataset, modes: Sequence[str], searches: Sequence[int], right: float
) -> dict[str, list[Result]]:
    """Return the results of each question, for each way to answer it."""
    by_way = {_ONE_SEARCH: [library.by_search(row, [str(row["question"])]) for row in data.questions]}
    for mode in get_args(RunMode):
        for limit in (searches if mode in ("judge", "research") else (0,)) if mode in modes else ():
            way = f"{mode}, max. {limit}" if limit else mode
            by_way[way] = [library.by_mode(row, mode, limit) for row in data.questions]
    if "gold" in modes and (gold := _gold(data)):
        by_way["gold sub-questions"] = [library.by_search(row, gold[str(row["id"])]) for row in data.questions]
        with judge_of(data, gold, right) as reasoner:
            way = f"judge, right in {right:.0%}"
            by_way[way] = [library.by_mode(row, "judge", 0, reasoner) for row in data.questions]
    return by_way


def _gold(data: Dataset) -> dict[str, list[str]]:
    path = data.folder / "subqueries.jsonl"
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {str(row["id"]): row["sub"] or row["titles"] for row in rows}


@contextmanager
def judge_of(data: Dataset, gold: Mapping[str, Sequence[str]], right: float) -> Iterator[ChatReasoner]:
    """Yield a chat model over HTTP that knows the relevance of passages; the share `right` of its verdicts is right.

    A passage with the last piece of evidence answers any sub-question; one with an earlier piece lacks the answer to
    the next. For the whole question even the last piece is incomplete, since nothing leads to it yet.
    """
    rows = {str(row["question"]): row for row in data.questions}
    chance = random.Random(0)

    def judge(question: str, whole: str, text: str) -> tuple[int, str, str]:
        row = rows[whole]
        sub_questions = gold[str(row["id"])]
        (pieces,) = covered_quotes([one["quote"] for one in row["evidence"]], [text])
        last = len(sub_questions) - 1
        place_reached = min((place for place in pieces if place <= last), default=-1)
        score = 0 if place_reached < 0 else 1 if place_reached < last or (question == whole and last) else 2
        if chance.random() >= right:
            score = chance.choice([other for other in (0, 1, 2) if other != score])
        return score, sub_questions[0 if place_reached == last else place_reached + 1] if score == 1 else "", ""

    with ChatServer(JudgeModel(judge, answer="It is so [1].")) as server:
        settings = load_settings(None, llm_base_url=server.base_url, llm_model="test")
        yield ChatReasoner(build_chat_model(settings))


def rows_of(data: Dataset, by_way: Mapping[str, Sequence[Result]]) -> Iterator[Row]:
    """Yield rows for the whole set and, if it has several kinds of questions, each of them."""
    kinds = sorted({str(row["kind"]) for row in data.questions if row.get("kind")})
    for kind in ("", *(kinds if len(kinds) > 1 else [])):
        places = [place for place, row in enumerate(data.questions) if kind in ("", row.get("kind"))]
        baseline = [by_way[_ONE_SEARCH][place].recall for place in places]
        for way, results in by_way.items():
            holds = [results[place].recall for place in places]
            gains = [value - before for value, before in zip(holds, baseline, strict=True)]
            yield {
                "set": f"{data.name}, {kind}" if kind else data.name,
                "way": way,
                "questions": len(places),
                "searches": round(sum(results[place].searches for place in places) / len(places), 2),
                "calls": round(sum(results[place].calls for place in places) / len(places), 2),
                "seconds": round(sum(results[place].seconds for place in places) / len(places), 2),
                "all@4000": intervals.format_mean(holds),
                "ahead of one search": "" if way == _ONE_SEARCH else intervals.format_mean(gains, signed=True),
            }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            data = replace(
                data, questions=datasets.sample_evenly([q for q in data.questions if q["evidence"]], options.limit)
            )
            import_set(app, data, "semantic", data.name)
            by_way = measure(
                Library(app, data.name, options.order), data, options.modes, options.searches, options.right
            )
            rows += rows_of(data, by_way)
            print(f"{data.name}: {len(data.questions)} questions", file=sys.stderr, flush=True)
    columns = list(rows[0]) if rows else []
    table = report.table(columns, [[str(row[column]) for column in columns] for row in rows])
    limits = f"{options.limit or 'all'} questions per set, no chat model, the built-in embedding model"
    facts = {**machine.describe(()), "limits": limits}
    report.save("multihop", facts, rows, table)
    print(json.dumps({"run": facts, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0 if rows else 1


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS), metavar="A,B")
    parser.add_argument("--modes", type=lambda names: names.split(","), default=list(MODES), metavar="A,B")
    parser.add_argument(
        "--searches", type=_numbers, default=list(SEARCHES), metavar="N,M", help="limits for judge and research"
    )
    parser.add_argument("--right", type=float, default=0.9, metavar="SHARE", help="share of right verdicts")
    parser.add_argument("--order", choices=get_args(TreeOrder), default="breadth", help="order of a tree's levels")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="maximum number of questions per set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
