"""Questions about unrelated subjects: how many are refused without a chat model, and what that costs.

    python -m benchmarks.unrelated_questions [--sets natural,cast,chroma,xquad-zh] [--limit 100] [--data FOLDER]

Each library gets the answerable questions of its set, and as many of the other sets that none of its pages answers.
"Refused" means "not in your pages". A right quote is lost if an answerable question is refused although its first quote
would contain the answer. With 95% intervals. Decision 12 bases its threshold on these figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset, load, sample_evenly
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.natural_questions import contains_answer
from benchmarks.quoted import sentences_of
from benchmarks.samples import find_sets
from rag.app import Question
from rag.evaluation.support import normalise_text

_HEAD = "library|its own, refused|its own, right quotes lost|others, refused|others, answered".split("|")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    sets = {folder.name: load(folder) for folder in find_sets(options.data, options.sets.split(","))}
    by_set = {
        name: sample_evenly([row for row in data.questions if row["evidence"]], options.limit)
        for name, data in sets.items()
    }
    rows = []
    with measured_app() as app:
        for name, data in sets.items():
            rows.append(_measure(app, data, by_set, name, options.limit))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    table = report.table(_HEAD, rows)
    print(table)
    report.save("unrelated_questions", machine.describe(()), [], table)
    return 0


def _measure(
    app: MeasuredApp, data: Dataset, by_set: Mapping[str, Sequence[dict[str, Any]]], name: str, limit: int
) -> list[str]:
    import_set(app, data, "semantic", name)
    own = [_ask(app, name, row) for row in by_set[name]]
    candidates = chain.from_iterable(zip_longest(*(rows for other, rows in by_set.items() if other != name)))
    texts = [normalise_text(page["text"]) for page in data.pages]
    foreign = [row for row in candidates if row and not _is_there(row, texts)]
    others = [_ask(app, name, row)[0] for row in sample_evenly(foreign, limit)]
    return [
        name,
        format_mean([float(outcome == "not_in_pages") for outcome, _ in own]),
        f"{sum(is_lost for _, is_lost in own)} of {len(own)}",
        format_mean([float(outcome == "not_in_pages") for outcome in others]),
        format_mean([float(outcome == "answered") for outcome in others]),
    ]


def _is_there(row: Mapping[str, Any], texts: Sequence[str]) -> bool:
    """Return whether one of these pages has the evidence, since some sets share pages."""
    quotes = [normalise_text(one["quote"]) for one in row["evidence"]]
    return any(quote in text for quote in quotes for text in texts)


def _ask(app: MeasuredApp, library: str, row: dict[str, Any]) -> tuple[str, bool]:
    """Return a question's outcome, and whether it was refused although the first quote would contain its answer."""
    answer = app.wait(app.ask(Question(row["question"], (library,))), 120)
    if answer.outcome != "not_in_pages":
        return answer.outcome, False
    passages = app.search(row["question"], library=library).passages
    quotes = sentences_of(asyncio.run(_join(app.quoter(library).answer(row["question"], passages))))
    return answer.outcome, contains_answer(row, quotes[:1])


async def _join(pieces: AsyncIterator[str]) -> str:
    return "".join([piece async for piece in pieces])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="natural,cast,chroma,xquad-zh")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
