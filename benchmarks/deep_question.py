"""One question about two sources, a filing in the library and news from the web: the metrics of each mode.

    python -m benchmarks.deep_question [--publish] [--json]

The pages, the web search and the chat model are the tests' substitutes (tests/support/deep_question). The model's plan
is fixed, and its writer states exactly what the passages support, so a row shows the effect of a way of searching, not
of a model's writing. One question proves that the path works, not quality. --publish writes the table into
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
from rag.evaluation.cases import CLASSIC, Setting
from rag.evaluation.metrics import TimedAnswer, scores
from tests.support.deep_question import case, deep_app

COLUMNS = ("context_precision", "context_recall", "faithfulness", "answer_correctness")
WAYS = (CLASSIC, Setting("fast"), Setting("deep"), Setting("research"))
COMMAND = "python -m benchmarks.deep_question --publish"
PAGE = report.ROOT / "docs" / "quality.md"


def measure(app: App, writer: str) -> Iterator[Row]:
    """Yield a row per mode over the same library; only research can and may search the web."""
    judging = EvaluationApp(app, app._answer_limit, app._database.evaluations).judges("main", None, judge=False)
    for way in WAYS:
        question = way.question(case(), "main")
        options = replace(question.options, web="allowed")
        answer = app.wait(app.ask(replace(question, options=options)))
        metrics = scores(case(), TimedAnswer(answer), judging)
        figures = {name: _format(metrics.get(name)) for name in COLUMNS}
        cited = {citation.url for citation in answer.citations}
        yield {
            "": f"{way.name}, {writer}",
            **figures,
            "pages cited": len(cited),
            "calls": answer.model_calls,
        }


def _format(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rows: list[Row] = []
    for writer in ("no model", "scripted model"):
        with TemporaryDirectory() as folder, deep_app(Path(folder), with_model=writer != "no model") as (app, _):
            rows += measure(app, writer)
    table = report.table(list(rows[0]), [[str(value) for value in row.values()] for row in rows])
    facts = {**machine.describe(()), "limits": "one question, substitutes for its pages, the built-in embedding model"}
    report.save("deep_question", facts, rows, table)
    if options.publish:
        report.publish(PAGE, COMMAND, facts, table)
    print(json.dumps({"run": facts, "rows": rows}, ensure_ascii=False) if options.json else table)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publish", action="store_true", help="write the table into docs/quality.md")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
