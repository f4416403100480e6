"""Asking the questions of a set, comparing with an earlier run, and holding what was lost against limits."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rag.app import App
from rag.commands.output import put, shorten, text_of
from rag.config import Settings
from rag.errors import ConfigError, RagError
from rag.evaluation import gate
from rag.evaluation.cases import Case, read_cases
from rag.evaluation.comparison import Compared, Figure, Scores, compare
from rag.evaluation.evaluation import Evaluation, Side
from rag.evaluation.metrics import METRICS
from rag.evaluation.runs import RowView, RunView
from rag.evaluation.settings import grid

_VERDICTS = {"better": "better", "worse": "worse", "no_difference_shown": "no difference shown", "too_few": "too few"}

_WITHHELD = (
    "What the chat model judged is left out: no labels show yet that it agrees with people (page Evaluation, Judge)."
)


def reranker(settings: Settings, options: argparse.Namespace) -> int:
    """Show which reranker runs; before that compare the one of the settings, and switch it."""
    with closing(App(settings)) as app:
        reranking = app.models.reranking
        if options.compare:
            app.compare_reranker(settings.rag_library)
        if options.switch is not None:
            reranking.switch(options.switch)
        row = {"reranker": reranking.offered.name if reranking.offered else None, "on": reranking.current is not None}
        figures = reranking.comparison
    told = f"{row['reranker'] or 'no reranker'}: {'on' if row['on'] else 'off'}"
    if figures:
        value, low, high = figures["difference"]
        told += (
            f"\nmean reciprocal rank over {figures['questions']} questions: {figures['before']:.3f} without,"
            f" {figures['after']:.3f} with it; difference {value:+.3f} ({low:+.3f} to {high:+.3f}),"
            f" {_VERDICTS[figures['verdict']]}"
        )
    put(options, {**row, "comparison": figures or None}, told)
    return 0


def evaluate(settings: Settings, options: argparse.Namespace) -> int:
    """Exit status 1 where more was lost than a gate allows, or the run came to a stop."""
    limits = gate.read_limits(options.gate or "")
    if limits and not options.baseline:
        raise ConfigError("gate_no_baseline")
    with closing(App(settings)) as app:
        baseline = _baseline(app, options.baseline) if options.baseline else None
        run = _run(app, options)
        _work(app, run, options)
        run = evaluation_of(app).runs.run(run.id)
        sides = [Side(run.id, setting.name) for setting in run.settings]
        for side in sides:
            _put_figures(options, run, side.setting, evaluation_of(app).figures(side))
        names = [name for name in METRICS if name not in evaluation_of(app).withheld(sides)]
        if len(names) < len(METRICS):
            put(options, {"withheld": sorted(set(METRICS) - set(names))}, _WITHHELD)
        first = evaluation_of(app).runs.scores(run.id)
        others = {one.name: evaluation_of(app).runs.scores(run.id, one.name) for one in run.settings[1:]}
    if run.state != "done":
        if run.notice:
            raise RagError(run.notice.code, **run.notice.params)
        return 1
    for name, scores in others.items():
        _put_compared(options, f"{name} beside {run.settings[0].name}", compare([first, scores], names=names)[0])
    if baseline is None:
        return 0
    _put_compared(options, f"this run beside {options.baseline}", compare([baseline, first], names=names)[0])
    return _gated(options, run, limits, baseline, first)


def evaluation_of(app: App) -> Evaluation:
    """Everybody's sets and runs: whoever gives commands can read the folder that they lie in."""
    return app.evaluation.of(None)


def _run(app: App, options: argparse.Namespace) -> RunView:
    """A new run, or the one that is to go on."""
    runs, library = evaluation_of(app).runs, app.settings.rag_library
    if options.resume:
        found = _found(runs.runs(library), options.resume)
        if found is None:
            raise ConfigError("evaluation_nowhere", name=options.resume)
        runs.resume(found.id, begin=False)
        return found
    name, set_id, cases = _cases(app, options.set)
    settings = grid(options.mode, options.strategy, options.within, options.model, classic=options.classic)
    how: dict[str, Any] = {"name": name, "set_id": set_id, "judge": options.judge}
    return runs.run(runs.create(library, cases[: options.limit], settings, **how))


def _cases(app: App, given: str) -> tuple[str, str, list[Case]]:
    """The name of a set, its id where it is stored, and its approved cases."""
    if kept := evaluation_of(app).sets.named(app.settings.rag_library, given):
        evaluation_of(app).anchor(kept.id)
        return kept.name, kept.id, evaluation_of(app).sets.cases(kept.id, approved=True)
    path = Path(given) / "questions.jsonl" if Path(given).is_dir() else Path(given)
    if not path.is_file():
        raise ConfigError("set_nowhere", name=given)
    return path.name, "", [case for case in read_cases(text_of(str(path)), path.name) if case.status == "approved"]


def _found(runs: Sequence[RunView], given: str) -> RunView | None:
    """By its id or the beginning of it; `last` is the newest that is done."""
    if given == "last":
        return next((run for run in runs if run.state == "done"), None)
    return next((run for run in runs if len(given) >= 4 and run.id.startswith(given)), None)


def _baseline(app: App, given: str) -> Scores:
    """The scores of a stored run's first setting, or of a file that `--json` printed."""
    if run := _found(evaluation_of(app).runs.runs(app.settings.rag_library), given):
        return evaluation_of(app).runs.scores(run.id)
    try:
        rows = [json.loads(line) for line in Path(given).read_text(encoding="utf-8").splitlines() if line.strip()]
        scored = [row for row in rows if "scores" in row]
        return {row["id"]: row["scores"] for row in scored if row["setting"] == scored[0]["setting"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError("evaluation_nowhere", name=given) from error


def _work(app: App, run: RunView, options: argparse.Namespace) -> None:
    questions = {case.id: case.question for case in evaluation_of(app).runs.cases(run.id)}
    done = evaluation_of(app).runs.run(run.id).done

    def tell(row: RowView) -> None:
        nonlocal done
        done += 1
        if options.json:
            put(options, {"run": run.id, **_row(row, questions[row.case_id])}, "")
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
        "passages": [{"url": one.url, "text": one.text} for one in answer.passages],
        "scores": {name: value if value is None else round(value, 6) for name, value in row.scores.items()},
    }


def _put_figures(options: argparse.Namespace, run: RunView, setting: str, found: Sequence[Figure]) -> None:
    rows = {
        one.metric.name: {"value": one.value.value, "low": one.value.low, "high": one.value.high, "n": one.n}
        for one in found
    }
    lines = [f"{run.name}, {setting} ({run.id[:12]}, {run.done} of {run.total} answers)"]
    lines += [f"  {one.metric.name:30} {one.value}  {one.n} of {one.of}" for one in found]
    row = {"run": run.id, "set": run.name, "set_version": run.set_version, "setting": setting, "figures": rows}
    put(options, row, "\n".join(lines) + "\n")


def _put_compared(options: argparse.Namespace, what: str, found: Sequence[Compared]) -> None:
    lines = [f"{what}: differences with 95 % intervals, p by Holm over {len(found)} metrics"]
    lines += [f"  {one.metric.name:30} {one.difference.by:+}  p = {one.p:.3f}  {_verdict(one)}" for one in found]
    rows = {
        one.metric.name: {
            "by": one.difference.by.value,
            "low": one.difference.by.low,
            "high": one.difference.by.high,
            "n": one.difference.n,
            "p": one.p,
            "needed": one.difference.needed,
            "verdict": one.difference.verdict if one.metric.better else "",
        }
        for one in found
    }
    put(options, {"compared": what, "metrics": rows}, "\n".join(lines) + "\n")


def _verdict(one: Compared) -> str:
    if not one.metric.better:
        return ""
    needed = f", {one.difference.needed} questions would settle it" if one.difference.needed else ""
    return _VERDICTS[one.difference.verdict] + needed


def _gated(
    options: argparse.Namespace, run: RunView, limits: Sequence[gate.Limit], baseline: Scores, scores: Scores
) -> int:
    found = gate.check(limits, baseline, scores) if limits else []
    for one in found:
        row = {"gate": one.limit.metric, "margin": one.limit.margin, "loss": one.loss.value, "low": one.loss.low}
        sign = "ok  " if one.passes else "FAIL"
        told = f"{sign} {one.limit.metric}: loss {one.loss}, {one.limit.margin:g} allowed"
        put(options, {**row, "passes": one.passes}, told)
    if options.junit:
        try:
            Path(options.junit).write_text(gate.as_junit(shorten(run.name), found), encoding="utf-8")
        except OSError as error:
            raise ConfigError("file_unwritable", name=options.junit) from error
    return int(not all(one.passes for one in found))
