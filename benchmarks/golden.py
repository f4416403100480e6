"""Answers without a chat model, recorded before a change of structure and compared after it.

    python -m benchmarks.golden FILE [--data FOLDER] [--sets A,B] [--modes A,B] [--limit N]

Asks N questions of each set in each mode. If FILE doesn't exist, writes an answer per line; else prints the answers
that differ from it and exits with 1. The same commit gives the same answers, except for a few in research mode, whose
steps run in parallel.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, load, sample_evenly
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.samples import find_sets
from rag.app import Question
from rag.types import Answer

_SETS = ("natural", "xquad-en", "xquad-zh", "hotpot")
_MODES = ("fast", "deep", "research", "judge")
_MAX_SHOWN = 300


def record(app: MeasuredApp, data: Dataset, modes: Sequence[str], limit: int) -> Iterator[dict[str, Any]]:
    """Yield the answers to a sample of a set's questions in each mode, as plain data."""
    import_set(app, data, "semantic", data.name)
    for mode in modes:
        for row in sample_evenly(data.questions, limit):
            yield _as_row(data.name, app.wait(app.ask(Question(row["question"], (data.name,), mode))))


def _as_row(name: str, answer: Answer) -> dict[str, Any]:
    citations = [[one.n, one.url, one.start, one.end, one.quote] for one in answer.citations]
    notice = answer.notice.code if answer.notice else ""
    key = {"set": name, "mode": answer.mode, "question": answer.question}
    return {**key, "outcome": answer.outcome, "notice": notice, "text": answer.text, "citations": citations}


def differences(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each answer of `after` that differs from the one to the same question in `before`."""
    known = {_key(row): row for row in before}
    return [
        f"{' '.join(_key(row))}\n  - {_show(known.get(_key(row)))}\n  + {_show(row)}"
        for row in after
        if known.get(_key(row)) != row
    ]


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["set"], row["mode"], row["question"]


def _show(row: dict[str, Any] | None) -> str:
    return json.dumps([*row.values()][3:], ensure_ascii=False)[:_MAX_SHOWN] if row else "not recorded"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.golden", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--sets", default=",".join(_SETS), metavar="A,B")
    parser.add_argument("--modes", default=",".join(_MODES), metavar="A,B")
    parser.add_argument("--limit", type=int, default=125, metavar="N", help="questions per set and mode")
    options = parser.parse_args(arguments)
    with measured_app() as app:
        rows = [
            row
            for folder in find_sets(options.data, options.sets.split(","))
            for row in record(app, load(folder), options.modes.split(","), options.limit)
        ]
    if not options.file.exists():
        options.file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
        print(f"{len(rows)} answers written to {options.file}")
        return 0
    before = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    changed = differences(before, rows)
    print("\n".join([*changed, f"{len(changed)} of {len(rows)} answers differ"]))
    return bool(changed)


if __name__ == "__main__":
    raise SystemExit(main())
