"""Commands that run question sets, compare runs, check losses against limits, and switch the reranker."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rag.app import App
from rag.commands import print_row, read_text_file
from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.evaluation.cases import Case, grid, read_cases
from rag.evaluation.comparison import (
    Figure,
    Limit,
    MetricDifference,
    Scores,
    as_junit,
    check_limits,
    compare,
    read_limits,
)
from rag.evaluation.evaluation import Evaluation, Side
from rag.evaluation.metrics import METRICS
from rag.evaluation.runs import RowView, RunView
from rag.text import truncate

_VERDICTS = {"better": "better", "worse": "worse", "no_difference_shown": "no difference shown", "too_few": "too few"}

_WITHHELD = (
    "Scores by the chat model are hidden: labels don't yet show that it agrees with people (Evaluation page, Labels)."
)


def reranker(settings: Settings, options: argparse.Namespace) -> int:
    """Show the reranker and its state, after comparing and switching it if requested."""
    with closing(App(settings)) as app:
        reranking = app.models.reranking
        if options.compare:
            app.compare_reranker(settings.rag_library)
        if options.switch is not None:
            reranking.switch(options.switch)
        row = {
            "reranker": reranking.configured.name if reranking.configured else None,
            "on": reranking.current is not None,
        }
        figures = reranking.comparison
    text = f"{row['reranker'] or 'no reranker'}: {'on' if row['on'] else 'off'}"
    if figures:
        value, low, high = figures["difference"]
        text += (
            f"\nmean reciprocal rank over {figures['questions']} questions: {figures['before']:.3f} without,"
            f" {figures['after']:.3f} with it; difference {value:+.3f} ({low:+.3f} to {high:+.3f}),"
            f" {_VERDICTS[figures['verdict']]}"
        )
    print_row(options, {**row, "comparison": figures or None}, text)
    return 0


def evaluate(settings: Settings, options: argparse.Namespace) -> int:
    """Run a question set; exit with 1 if the run stopped or a loss exceeds its limit."""
    limits = read_limits(options.gate or "")
    if limits and not options.baseline:
        raise ConfigError("gate_no_baseline")
    with closing(App(settings)) as app:
        baseline = _baseline(app, options.baseline) if options.baseline else None
        run = _run(app, options)
        _work(app, run, options)
        run = evaluation_of(app).runs.run(run.id)
        sides = [Side(run.id, setting.name) for setting in run.settings]
        for side in sides:
            _print_figures(options, run, side.setting, evaluation_of(app).figures(side))
        names = [name for name in METRICS if name not in evaluation_of(app).withheld_metrics(sides)]
        if len(names) < len(METRICS):
            print_row(options, {"withheld": sorted(set(METRICS) - set(names))}, _WITHHELD)
        first = evaluation_of(app).runs.scores(run.id)
        others = {setting.name: evaluation_of(app).runs.scores(run.id, setting.name) for setting in run.settings[1:]}
    if run.state != "done":
        if run.notice:
            raise RagError(run.notice.code, **run.notice.params)
        return 1
    for name, scores in others.items():
        _print_comparison(options, f"{name} vs. {run.settings[0].name}", compare([first, scores], names=names)[0])
    if baseline is None:
        return 0
    _print_comparison(options, f"this run vs. {options.baseline}", compare([baseline, first], names=names)[0])
    return _check_gate(options, run, limits, baseline, first)


def evaluation_of(app: App) -> Evaluation:
    """Return all users' sets and runs: whoever can run commands can also read the data folder."""
    return app.evaluation.of(None)


def _run(app: App, options: argparse.Namespace) -> RunView:
    """Return a new run, or the one to resume."""
    runs, library = evaluation_of(app).runs, app.settings.rag_library
    if options.resume:
        run = _find_run(runs.runs(library), options.resume)
        if run is None:
            raise ConfigError("evaluation_nowhere", name=options.resume)
        runs.resume(run.id, begin=False)
        return run
    name, set_id, cases = _cases(app, options.set)
    settings = grid(options.mode, options.strategy, options.within, options.model, classic=options.classic)
    fields: dict[str, Any] = {"name": name, "set_id": set_id, "judge": options.judge}
    return runs.run(runs.create(library, cases[: options.limit], settings, **fields))


def _cases(app: App, reference: str) -> tuple[str, str, list[Case]]:
    """Return the name of a set, its id ("" for a file), and its approved cases."""
    if question_set := evaluation_of(app).sets.find_by_name(app.settings.rag_library, reference):
        evaluation_of(app).anchor(question_set.id)
        return question_set.name, question_set.id, evaluation_of(app).sets.cases(question_set.id, approved=True)
    path = Path(reference) / "questions.jsonl" if Path(reference).is_dir() else Path(reference)
    if not path.is_file():
        raise ConfigError("set_nowhere", name=reference)
    cases = read_cases(read_text_file(str(path)), path.name)
    return path.name, "", [case for case in cases if case.status == "approved"]


def _find_run(runs: Sequence[RunView], reference: str) -> RunView | None:
    """Find a run by at least four leading characters of its id; `last` is the newest that is done."""
    if reference == "last":
        return next((run for run in runs if run.state == "done"), None)
    return next((run for run in runs if len(reference) >= 4 and run.id.startswith(reference)), None)


def _baseline(app: App, reference: str) -> Scores:
    """Return the scores of the first setting in a stored run, or in a file with the output of `--json`."""
    if run := _find_run(evaluation_of(app).runs.runs(app.settings.rag_library), reference):
        return evaluation_of(app).runs.scores(run.id)
    try:
        rows = [json.loads(line) for line in Path(reference).read_text(encoding="utf-8").splitlines() if line.strip()]
        scored = [row for row in rows if "scores" in row]
        return {row["id"]: row["scores"] for row in scored if row["setting"] == scored[0]["setting"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError("evaluation_nowhere", name=reference) from error


def _work(app: App, run: RunView, options: argparse.Namespace) -> None:
    questions = {case.id: case.question for case in evaluation_of(app).runs.cases(run.id)}
    done = evaluation_of(app).runs.run(run.id).done

    def tell(row: RowView) -> None:
        nonlocal done
        done += 1
        if options.json:
            print_row(options, {"run": run.id, **_row(row, questions[row.case_id])}, "")
        elif sys.stderr.isatty():
            print(f"\r{done} of {run.total}", end="\n" if done == run.total else "", file=sys.stderr, flush=True)

    evaluation_of(app).runs.work(run.id, tell)


def _row(row: RowView, question: str) -> dict[str, Any]:
    answer = row.answer
    return {
        "setting": row.setting,
        "id": row.case_id,
        "question": question,
        "outcome": answer.outcome,
        "answer": answer.text,
        "passages": [{"url": passage.url, "text": passage.text} for passage in answer.passages],
        "scores": {name: value if value is None else round(value, 6) for name, value in row.scores.items()},
    }


def _print_figures(options: argparse.Namespace, run: RunView, setting: str, items: Sequence[Figure]) -> None:
    rows = {
        item.metric.name: {"value": item.value.value, "low": item.value.low, "high": item.value.high, "n": item.n}
        for item in items
    }
    lines = [f"{run.name}, {setting} ({run.id[:12]}, {run.done} of {run.total} answers)"]
    lines += [f"  {item.metric.name:30} {item.value}  {item.n} of {item.total}" for item in items]
    row = {"run": run.id, "set": run.name, "set_version": run.set_version, "setting": setting, "figures": rows}
    print_row(options, row, "\n".join(lines) + "\n")


def _print_comparison(options: argparse.Namespace, title: str, items: Sequence[MetricDifference]) -> None:
    lines = [f"{title}: differences with 95 % intervals, p by Holm over {len(items)} metrics"]
    lines += [
        f"  {item.metric.name:30} {item.difference.delta:+}  p = {item.p:.3f}  {_verdict(item)}" for item in items
    ]
    rows = {
        item.metric.name: {
            "by": item.difference.delta.value,
            "low": item.difference.delta.low,
            "high": item.difference.delta.high,
            "n": item.difference.n,
            "p": item.p,
            "needed": item.difference.needed,
            "verdict": item.difference.verdict if item.metric.better else "",
        }
        for item in items
    }
    print_row(options, {"compared": title, "metrics": rows}, "\n".join(lines) + "\n")


def _verdict(comparison: MetricDifference) -> str:
    if not comparison.metric.better:
        return ""
    needed = f", {comparison.difference.needed} questions would settle it" if comparison.difference.needed else ""
    return _VERDICTS[comparison.difference.verdict] + needed


def _check_gate(
    options: argparse.Namespace, run: RunView, limits: Sequence[Limit], baseline: Scores, scores: Scores
) -> int:
    items = check_limits(limits, baseline, scores) if limits else []
    for item in items:
        row = {"gate": item.limit.metric, "margin": item.limit.margin, "loss": item.loss.value, "low": item.loss.low}
        sign = "ok  " if item.passes else "FAIL"
        text = f"{sign} {item.limit.metric}: loss {item.loss}, {item.limit.margin:g} allowed"
        print_row(options, {**row, "passes": item.passes}, text)
    if options.junit:
        try:
            Path(options.junit).write_text(as_junit(truncate(run.name), items), encoding="utf-8")
        except OSError as error:
            raise ConfigError("file_unwritable", name=options.junit) from error
    return int(not all(item.passes for item in items))
