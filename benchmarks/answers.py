"""Answers held against those that people gave: exact match, token F1, and whether they hold them.

    python -m benchmarks.answers [SET …] [--data FOLDER] [--limit 150] [--publish]

Each mode is asked twice, quoting and with the scripted chat model of the tests, and beside them stands what tutorials
build (`classic`): runs as `rag evaluate` makes them. The scripted model repeats what it is given: its row tells what
the way there costs an answer, not what a model is worth. Quotes are sentences, and people's answers a few words, so
exact match and F1 are low where quoting does what it should. `--limit` questions of a set, evenly spread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.samples import find_sets
from rag.evaluation.cases import case_of
from rag.evaluation.evaluation import Side
from rag.evaluation.settings import CLASSIC, NO_MODEL, grid
from tests.support.chat_server import ChatServer, rules

PAGE = report.ROOT / "docs" / "quality.md"
COMMAND = "python -m benchmarks.answers"
SETS = ("xquad-en", "xquad-zh", "hotpot", "musique")
"""Those whose answers are a few words."""
_SHOWN = ("exact_match", "token_f1", "contains", "calls")


def measure(app: MeasuredApp, data: Dataset) -> Iterator[list[str]]:
    """A row for each setting."""
    library = take_in(app, data, "semantic", data.name).library
    settings = grid(["fast", "deep"], models=[NO_MODEL, ""], classic=True)
    runs = app.evaluation.runs
    run_id = runs.create(library, list(map(case_of, data.questions)), settings, name=data.name)
    runs.work(run_id)
    for setting in settings:
        found = {one.metric.name: one for one in app.evaluation.figures(Side(run_id, setting.name))}
        how = ("classic" if setting == CLASSIC else setting.mode) + (
            ", quoting" if setting.model == NO_MODEL else ", the scripted model"
        )
        values = [str(found[name].value) if name in found else "–" for name in _SHOWN]
        yield [data.name, how, f"{found['contains'].n if 'contains' in found else 0} of {len(data.questions)}", *values]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--publish", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    known = {**machine.describe(()), "limits": f"at most {options.limit} questions of a set, a scripted chat model"}
    rows: list[list[str]] = []
    with ChatServer(rules) as server, measured_app(llm_base_url=server.base_url, llm_model="test") as app:
        for folder in find_sets(options.data, options.sets):
            data = datasets.load(folder)
            asked = [row for row in data.questions if row["answers"]]
            rows += measure(app, replace(data, questions=datasets.spread(asked, options.limit)))
            print(f"{data.name}: {rows[-1][2]} questions", file=sys.stderr, flush=True)
    table = report.table(["", "answered by", "judged", "exact match", "token F1", "holds it", "model calls"], rows)
    report.save("answers", known, [{"row": row} for row in rows], table)
    if options.publish:
        report.publish(PAGE, COMMAND, known, table)
    print(table)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
