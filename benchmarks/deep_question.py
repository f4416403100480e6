"""One question over two sources, a filing in the library and news of the web: each way to answer, by the metrics.

    python -m benchmarks.deep_question [--publish] [--json]

The pages, the web search and the chat model are the tests' own (tests/support/deep_question): stand-ins. The model's
plan is written down, and its writer says what the passages bear out and nothing else, so a row tells what a way of
searching brought, not how a model writes. One question proves a road, and no quality. --publish writes the table into
docs/quality.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import machine, report
from benchmarks.run import Row
from rag.app import App
from rag.app.evaluating import EvaluationApp
from rag.evaluation.metrics import TimedAnswer, scores
from rag.evaluation.settings import CLASSIC, Setting
from tests.support.deep_question import case, deep_app

COLUMNS = ("context_precision", "context_recall", "faithfulness", "answer_correctness")
WAYS = (CLASSIC, Setting("fast"), Setting("deep"), Setting("research"))
COMMAND = "python -m benchmarks.deep_question --publish"
PAGE = report.ROOT / "docs" / "quality.md"


def measure(app: App, writer: str) -> Iterator[Row]:
    """Each way over the same library; only research can ask the web, and may."""
    judging = EvaluationApp(app, app._in_flight, app._database.evaluations).tools("main", None, judge=False)
    for way in WAYS:
        question = way.question(case(), "main")
        options = replace(question.options, web="allowed")
        answer = app.wait(app.ask(replace(question, options=options)))
        found = scores(case(), TimedAnswer(answer), judging)
        figures = {name: _told(found.get(name)) for name in COLUMNS}
        cited = {one.url for one in answer.citations}
        yield {
            "": f"{way.name}, {writer}",
            **figures,
            "pages cited": len(cited),
            "calls": answer.model_calls,
        }


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    for writer in ("no model", "scripted model"):
        with TemporaryDirectory() as folder, deep_app(Path(folder), with_model=writer != "no model") as (app, _):
            rows += measure(app, writer)
    table = report.table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    known = {**machine.describe(()), "limits": "one question, stand-ins for its pages, the built-in embedding model"}
    report.save("deep_question", known, rows, table)
    if options.publish:
        report.publish(PAGE, COMMAND, known, table)
    print(json.dumps({"run": known, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", action="store_true", help="write the table into docs/quality.md")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
