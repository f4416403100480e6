"""Answers compared with reference answers: exact match, token F1, and containment.

    python -m benchmarks.answers [SET …] [--data FOLDER] [--limit 150]

Each mode runs twice, quoting and with the tests' scripted chat model, and is compared with the pipeline of tutorials
(`classic`), in runs like those of `rag evaluate`. The scripted model repeats its input: its row measures that code
path, not a model's quality. Quotes are sentences and reference answers a few words, so exact match and F1 are low even
when quoting works. `--limit` questions per set, evenly spread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.samples import find_sets
from rag.evaluation.cases import CLASSIC, NO_MODEL, case_of, grid
from rag.evaluation.evaluation import Side
from tests.support.chat_server import ChatServer, rules

SETS = ("xquad-en", "xquad-zh", "hotpot", "musique")
"""The sets whose answers are a few words."""
_METRICS = ("exact_match", "token_f1", "contains", "calls")


def measure(app: MeasuredApp, data: Dataset) -> Iterator[list[str]]:
    """Yield a row for each setting."""
    library = import_set(app, data, "semantic", data.name).library
    settings = grid(["fast", "deep"], models=[NO_MODEL, ""], classic=True)
    runs = app.evaluation.runs
    run_id = runs.create(library, list(map(case_of, data.questions)), settings, name=data.name)
    runs.work(run_id)
    for setting in settings:
        row = {one.metric.name: one for one in app.evaluation.figures(Side(run_id, setting.name))}
        how = ("classic" if setting == CLASSIC else setting.mode) + (
            ", quoting" if setting.model == NO_MODEL else ", the scripted model"
        )
        values = [str(row[name].value) if name in row else "–" for name in _METRICS]
        yield [data.name, how, f"{row['contains'].n if 'contains' in row else 0} of {len(data.questions)}", *values]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--limit", type=int, default=150)
    options = parser.parse_args(arguments)
    facts = {**machine.describe(()), "limits": f"up to {options.limit} questions per set, a scripted chat model"}
    rows: list[list[str]] = []
    with ChatServer(rules) as server, measured_app(llm_base_url=server.base_url, llm_model="test") as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            rows_with_answers = [row for row in data.questions if row["answers"]]
            rows += measure(app, replace(data, questions=datasets.sample_evenly(rows_with_answers, options.limit)))
            print(f"{data.name}: {rows[-1][2]} questions", file=sys.stderr, flush=True)
    table = report.table(["", "answered by", "judged", "exact match", "token F1", "contains it", "model calls"], rows)
    report.save("answers", facts, [{"row": row} for row in rows], table)
    print(table)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
