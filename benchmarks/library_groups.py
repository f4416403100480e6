"""Two libraries searched at once, compared with one that contains both, for each way to fuse their results.

    python -m benchmarks.library_groups [PAIR …] [--data FOLDER] [--limit N] [--json]

A pair is two sets, `xquad-en+chroma`. Evidence within 4,000 characters (recall@4000), with 95% intervals, and the
difference to one library with the pages of both. Writes several.md and several.json into benchmarks/out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import datasets, intervals, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.run import Row
from benchmarks.samples import find_sets
from rag.evaluation.metrics import character_recall
from rag.retrieval.retriever import EnsembleRetriever, LibraryGroup, ScoreAcrossLibraries, by_likelihood
from rag.types import Passage, Retrieval

PAIRS: Final = ("dragon-law-en+dragon-finance-en", "xquad-en+chroma")
_K, _BUDGET = 20, 4000


def by_rank(_: Retrieval, place: int, __: Passage) -> float:
    """Weigh by reciprocal rank (Cormack et al., SIGIR 2009)."""
    return 1 / (60 + place)


def by_score(_: Retrieval, __: int, passage: Passage) -> float:
    return passage.score


WAYS: Final[Mapping[str, ScoreAcrossLibraries]] = {"ranks": by_rank, "scores": by_score, "likelihood": by_likelihood}


@dataclass(frozen=True)
class SearchedLibrary:
    """A library with a finished search."""

    found: Retrieval

    def search(self, question: str, **how: Any) -> Retrieval:
        return self.found

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        raise NotImplementedError

    def vector(self, question: str) -> NDArray[np.float32]:
        raise NotImplementedError


def pair_rows(app: MeasuredApp, pair: Sequence[Dataset], limit: int | None) -> Iterator[Row]:
    """Yield a row for one library with both, and for each way to fuse two."""
    both = replace(pair[0], name="+".join(data.name for data in pair), pages=[*pair[0].pages, *pair[1].pages])
    libraries = ("first", "second")
    for name, data in (*zip(libraries, pair, strict=True), ("both", both)):
        import_set(app, data, "semantic", name)
    questions = [row for data in pair for row in datasets.sample_evenly(data.questions, limit) if row["evidence"]]
    reference, fused = [], {way: list[float]() for way in WAYS}
    for row in questions:
        quotes = [one["quote"] for one in row["evidence"]]
        whole = app.search(row["question"], library="both", k=_K)
        reference.append(character_recall(quotes, [passage.text for passage in whole.passages], _BUDGET))
        searched = {name: SearchedLibrary(app.search(row["question"], library=name, k=_K)) for name in libraries}
        group = LibraryGroup([app.library(name) for name in libraries])
        for way, worth in WAYS.items():
            hits = EnsembleRetriever(searched, group.idf, app.models.sparse, score_passage=worth).search(
                row["question"], k=_K
            )
            fused[way].append(character_recall(quotes, [passage.text for passage in hits.passages], _BUDGET))
    shared = {"pair": both.name, "questions": len(questions)}
    yield {**shared, "way": "one library", "recall@4000": intervals.format_mean(reference), "difference": ""}
    for way, values in fused.items():
        differences = [value - other for value, other in zip(values, reference, strict=True)]
        yield {
            **shared,
            "way": way,
            "recall@4000": intervals.format_mean(values),
            "difference": intervals.format_mean(differences, signed=True),
        }


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    for pair in options.pairs or PAIRS:
        folders = find_sets(options.data, pair.split("+"))
        if len(folders) != 2:
            print(f"no such pair in {options.data}: {pair}", file=sys.stderr)
            return 2
        with measured_app() as app:
            for row in pair_rows(app, [datasets.load(folder) for folder in folders], options.limit):
                rows.append(row)
                print(json.dumps(row) if options.json else " · ".join(map(str, row.values())), flush=True)
    facts = {**machine.describe(), "limits": f"k = {_K}, the built-in model"}
    cells = [[str(value) for value in row.values()] for row in rows]
    report.save("library_groups", facts, rows, report.table(list(rows[0]), cells))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="PAIR")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="maximum number of questions per set")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
