"""Does the second and the third question of a conversation find what it means? Twenty conversations of three turns.

Each turn names the page and the words that answer it. It is searched for as it was asked, as the rules
of the reasoner without a model complete it, and as a person would have completed it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.ours import measured_app, take_in
from benchmarks.samples import OUT, samples
from rag.agent.condensing.condense import Exchange, by_rules
from rag.types import Passage

CONVERSATIONS = Path(__file__).resolve().parents[1] / "tests" / "agent" / "conversations.json"
WAYS = ("as asked", "by rules", "as meant")

Search = Callable[[str], Sequence[Passage]]
Turn = Mapping[str, str]


@dataclass(frozen=True)
class Found:
    """Where the answer of one turn stood: `rank` from 1, 0 for nowhere. `query` is what was searched for."""

    conversation: str
    place: int
    way: str
    query: str
    rank: int


def load(path: Path = CONVERSATIONS) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def queries(turns: Sequence[Turn], way: str) -> list[str]:
    """What each turn is searched for; answers are taken to be the words that answer it."""
    asked: list[str] = []
    history: list[Exchange] = []
    for turn in turns:
        query = turn["question"]
        if way == "by rules":
            query = by_rules(query, history)
        elif way == "as meant":
            query = turn["standalone"] or query
        asked.append(query)
        history.append(Exchange(turn["question"], turn["holds"], query))
    return asked


def rank_of(turn: Turn, passages: Sequence[Passage]) -> int:
    """The place of the first passage of the turn's page that holds its answer; 0 if none does."""
    ranks = (n for n, one in enumerate(passages, 1) if one.url == turn["page"] and turn["holds"] in one.text)
    return next(ranks, 0)


def measure(conversations: Sequence[Mapping[str, Any]], search: Search) -> list[Found]:
    return [
        Found(str(one["id"]), place, way, query, rank_of(turn, search(query)))
        for one in conversations
        for way in WAYS
        for place, (turn, query) in enumerate(zip(one["turns"], queries(one["turns"], way), strict=True), 1)
    ]


def table(found: Sequence[Found]) -> list[str]:
    """Shares of the second and third turns whose answer stands first, and among the first three."""
    lines = ["| searched | language | turns | first | in three |", "| --- | --- | --- | --- | --- |"]
    for way in WAYS:
        for language in ("en", "zh"):
            rows = [one for one in found if one.way == way and one.place > 1 and one.conversation.startswith(language)]
            first = sum(one.rank == 1 for one in rows)
            three = sum(1 <= one.rank <= 3 for one in rows)
            lines.append(f"| {way} | {language} | {len(rows)} | {first} | {three} |")
    return lines


def _library(folder: Path, among: Sequence[str]) -> Dataset:
    """The sample pages, and those of the sets that are to make them harder to find."""
    sample = samples()
    others = [page for path in datasets.find(folder, among) for page in datasets.load(path).pages] if among else []
    return replace(sample, pages=[*sample.pages, *others])


def main(arguments: Sequence[str] | None = None) -> None:
    """Import the sample pages, search, print the table and what was missed; write it to benchmarks/out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=CONVERSATIONS, help="other conversations over the sample pages")
    parser.add_argument("--among", nargs="*", default=[], help="sets whose pages stand in the library too")
    parser.add_argument("--data", type=Path, default=datasets.DEFAULT_FOLDER, help="the folder of these sets")
    parser.add_argument("--strategy", default="", help="how passages are found; the default of the settings")
    options = parser.parse_args(arguments)
    with measured_app() as app:
        take_in(app, _library(options.data, options.among), "semantic", "talk")
        retriever = app.retriever("talk")
        strategy = options.strategy or app.settings.strategy
        found = measure(load(options.file), lambda query: retriever.search(query, strategy=strategy).passages)
    print("\n".join(table(found)))
    for one in found:
        if one.place > 1 and one.way == "by rules" and one.rank != 1:
            print(f"{one.conversation} {one.place}: {one.query} (rank {one.rank or 'none'})")
    OUT.mkdir(parents=True, exist_ok=True)
    report = [vars(one) for one in found]
    (OUT / "conversations.json").write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
