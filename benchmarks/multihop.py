"""Questions that need several places: each way to answer them, beside one search.

    python -m benchmarks.multihop [--modes one,deep,judge,research,gold] [--searches 3,6] [--sets A,B] [--data FOLDER]
                                  [--limit N] [--right SHARE] [--order breadth|best] [--json]

all@4000 of what the answer is written from, with 95 % intervals, how much it is ahead of one search of the same
question, by pairs, and what it cost. Modes run through the app, without a chat model; judge and research with so many
searches at most. `gold` has the sub-questions of a set's `subqueries.jsonl`, or the titles of its evidence where it has
none, searched and put together: so much can be had by planning better; and a scripted judge who knows them, and is
right in `--right` of its verdicts, in the place of the rules. `--limit` questions of a set, evenly spread. Writes
multihop.md and multihop.json into benchmarks/out.
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
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.config import load_settings
from rag.evaluation.evidence import coverings, has_all
from rag.models.chat import build_chat_model
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.hops import interleave
from rag.reasoning.reasoner import Reasoner
from rag.runs.options import Question, RunOptions, TreeOrder
from rag.types import Passage, RunMode
from tests.support.chat_server import ChatServer
from tests.support.judge_model import JudgeModel

SETS = ("hotpot", "musique", "dragon-finance-en", "dragon-finance-zh")
MODES = ("one", "deep", "judge", "research", "gold")
SEARCHES = (3, 6)
_K = 20
_ROOM = 4000
_ONE = "one search"


@dataclass(frozen=True)
class Asked:
    """What a question took, and whether what its answer was written from holds all of its evidence."""

    searches: int
    holds: float
    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Library:
    """The imported set, asked in one way or another."""

    app: MeasuredApp
    name: str
    order: TreeOrder = "breadth"

    def by_search(self, row: Mapping[str, Any], queries: Sequence[str]) -> Asked:
        """What these searches find, as one list."""
        began = time.perf_counter()
        found = [self.app.search(query, library=self.name, k=_K).passages for query in queries]
        return Asked(len(queries), _holds(row, interleave(found)), seconds=time.perf_counter() - began)

    def by_mode(self, row: Mapping[str, Any], mode: RunMode, most: int, reasoner: Reasoner | None = None) -> Asked:
        """What the answer of a mode is written from, after `most` searches at most; 0 is as many as it likes."""
        options = RunOptions(searches=most or None, tree_order=self.order)
        asked = Question(str(row["question"]), (self.name,), mode, options=options)
        answer = self.app.wait(self.app.ask(asked, reasoner=reasoner))
        holds = _holds(row, answer.passages)
        return Asked(len(answer.searches), holds, answer.model_calls, answer.seconds)


def _holds(row: Mapping[str, Any], passages: Sequence[Passage]) -> float:
    return has_all([one["quote"] for one in row["evidence"]], [passage.text for passage in passages], _ROOM)


def measure(
    library: Library, data: Dataset, modes: Sequence[str], searches: Sequence[int], right: float
) -> dict[str, list[Asked]]:
    """Each way to search, with what it did for each question."""
    found = {_ONE: [library.by_search(row, [str(row["question"])]) for row in data.questions]}
    for mode in get_args(RunMode):
        for most in (searches if mode in ("judge", "research") else (0,)) if mode in modes else ():
            way = f"{mode}, at most {most}" if most else mode
            found[way] = [library.by_mode(row, mode, most) for row in data.questions]
    if "gold" in modes and (gold := _gold(data)):
        found["gold sub-questions"] = [library.by_search(row, gold[str(row["id"])]) for row in data.questions]
        with judge_of(data, gold, right) as reasoner:
            way = f"judge, right in {right:.0%}"
            found[way] = [library.by_mode(row, "judge", 0, reasoner) for row in data.questions]
    return found


def _gold(data: Dataset) -> dict[str, list[str]]:
    path = data.folder / "subqueries.jsonl"
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {str(row["id"]): row["sub"] or row["titles"] for row in rows}


@contextmanager
def judge_of(data: Dataset, gold: Mapping[str, Sequence[str]], right: float) -> Iterator[ChatReasoner]:
    """A chat model over HTTP that knows what bears on a question: in `right` of its verdicts, else it says another.

    A passage with the last piece of evidence answers any sub-question; one with an earlier piece lacks what is asked
    for after it, and so does the last piece beside the whole question, which nothing leads to yet.
    """
    rows = {str(row["question"]): row for row in data.questions}
    dice = random.Random(0)

    def judged(question: str, whole: str, text: str) -> tuple[int, str, str]:
        row = rows[whole]
        asked = gold[str(row["id"])]
        (pieces,) = coverings([one["quote"] for one in row["evidence"]], [text])
        last = len(asked) - 1
        at = min((place for place in pieces if place <= last), default=-1)
        score = 0 if at < 0 else 1 if at < last or (question == whole and last) else 2
        if dice.random() >= right:
            score = dice.choice([other for other in (0, 1, 2) if other != score])
        return score, asked[0 if at == last else at + 1] if score == 1 else "", ""

    with ChatServer(JudgeModel(judged, answer="It is so [1].")) as server:
        settings = load_settings(None, llm_base_url=server.base_url, llm_model="test")
        yield ChatReasoner(build_chat_model(settings))


def rows_of(data: Dataset, found: Mapping[str, Sequence[Asked]]) -> Iterator[Row]:
    """For the whole set and, where it has several kinds of questions, each of them."""
    kinds = sorted({str(row["kind"]) for row in data.questions if row.get("kind")})
    for kind in ("", *(kinds if len(kinds) > 1 else [])):
        own = [place for place, row in enumerate(data.questions) if kind in ("", row.get("kind"))]
        one = [found[_ONE][place].holds for place in own]
        for way, asked in found.items():
            holds = [asked[place].holds for place in own]
            gains = [value - before for value, before in zip(holds, one, strict=True)]
            yield {
                "set": f"{data.name}, {kind}" if kind else data.name,
                "way": way,
                "questions": len(own),
                "searches": round(sum(asked[place].searches for place in own) / len(own), 2),
                "calls": round(sum(asked[place].calls for place in own) / len(own), 2),
                "seconds": round(sum(asked[place].seconds for place in own) / len(own), 2),
                "all@4000": intervals.told(holds),
                "ahead of one search": "" if way == _ONE else intervals.told(gains, signed=True),
            }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            data = replace(data, questions=datasets.spread([q for q in data.questions if q["evidence"]], options.limit))
            take_in(app, data, "semantic", data.name)
            found = measure(
                Library(app, data.name, options.order), data, options.modes, options.searches, options.right
            )
            rows += rows_of(data, found)
            print(f"{data.name}: {len(data.questions)} questions", file=sys.stderr, flush=True)
    columns = list(rows[0]) if rows else []
    table = report.table(columns, [[str(row[column]) for column in columns] for row in rows])
    limits = f"{options.limit or 'all'} questions of a set, no chat model, the built-in embedding model"
    known = {**machine.describe(()), "limits": limits}
    report.save("multihop", known, rows, table)
    print(json.dumps({"run": known, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0 if rows else 1


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=list(SETS), metavar="A,B")
    parser.add_argument("--modes", type=lambda names: names.split(","), default=list(MODES), metavar="A,B")
    parser.add_argument(
        "--searches", type=_numbers, default=list(SEARCHES), metavar="N,M", help="of judge and research"
    )
    parser.add_argument("--right", type=float, default=0.9, metavar="SHARE", help="of the scripted judge's verdicts")
    parser.add_argument("--order", choices=get_args(TreeOrder), default="breadth", help="of a tree's levels")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N questions of each set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
