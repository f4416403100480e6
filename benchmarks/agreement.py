"""Agreement of each statement checker with human labels: Cohen's kappa, and F1 of both classes.

    python -m benchmarks.agreement [SET …] [--data FOLDER] [--limit N] [--publish]

The sets are human-labelled statements from the shared folder; each gets rows for the whole set and for two halves of
its questions. The checkers are the rules, a small rule (`benchmarks.statements`), the local model in VERIFIER_MODEL,
and the model in LLM_*, which is asked as in the app: the rules judge statements that a passage contains verbatim. A
case that a model fails to answer is skipped, so n is smaller. "Partly" counts as unsupported. Intervals come from
1,000 resamplings of questions. Evaluation shows a judge's figures from a hundred labels on, if the interval of its
kappa is above 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import numpy as np

from benchmarks import intervals, machine, report
from benchmarks.statements import DATA, Case, Checker, by_verifier, find_cases, measure, rules, small_rule
from rag.app import App
from rag.checking.verifier import LocalVerifier, Verifier
from rag.config import load_settings
from rag.errors import ModelError
from rag.evaluation.agreement import MIN_LABELS, cohens_kappa
from rag.evaluation.statistics import Estimate, Weights, share
from rag.models.cross_encoders import LazySupportModel

PAGE = report.ROOT / "docs" / "evaluation.md"
COMMAND = "python -m benchmarks.agreement"
NO_LOCAL, NO_MODEL = "local model: none in VERIFIER_MODEL", "connected model: none in LLM_BASE_URL and LLM_MODEL"

Unit = tuple[str, bool, bool]
"""The question, whether the human label is "wrong", and whether the checker flags the unit."""


@contextmanager
def checkers() -> Iterator[dict[str, Checker | None]]:
    """Yield the checkers by name; None for those that are not configured."""
    with TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=Path(folder), qdrant_url="")
        with closing(App(settings)) as app:
            model, name = app.reasoner(settings.rag_library), settings.verifier_model
            local = LocalVerifier(LazySupportModel(name)) if name else None
            yield {
                "small rule": small_rule,
                "rules": rules,
                f"local model {name}" if local else NO_LOCAL: partial(by_verifier, local) if local else None,
                **({model.name: partial(by_verifier, model)} if isinstance(model, Verifier) else {NO_MODEL: None}),
            }


def units_of(cases: Sequence[Case], checker: Checker) -> list[Unit]:
    """Return the human and the checker's verdict on each unit; skip cases that the model fails to answer."""
    units: list[Unit] = []
    for case in cases:
        try:
            judgements = measure([case], checker)
        except ModelError as error:
            print(f"{case['id']}: {error}", file=sys.stderr)
            continue
        units += [(str(case.get("group", case["id"])), judgement.wrong, judgement.flagged) for judgement in judgements]
    return units


def agreement(units: Sequence[Unit]) -> list[Estimate]:
    """Return kappa, F1 of the supported and F1 of the unsupported units."""
    weights = intervals.bootstrap_weights([question for question, *_ in units])
    people, verdicts = (np.array([[not unit[at], unit[at]] for unit in units], dtype=float) for at in (1, 2))
    figures = [cohens_kappa(weights, verdicts, people), *(_f1(weights, verdicts[:, n], people[:, n]) for n in (0, 1))]
    return [intervals.estimate(figure) for figure in figures]


def _f1(weights: Weights, verdicts: np.ndarray, people: np.ndarray) -> intervals.Figures:
    return share(weights @ (2 * verdicts * people), weights @ (verdicts + people))


def rows_of(name: str, cases: Sequence[Case], by_name: Mapping[str, Checker | None]) -> Iterator[list[str]]:
    """Yield a row per checker for the whole set, and one for each half of its questions."""
    for checker_name, checker in by_name.items():
        units = units_of(cases, checker) if checker else []
        for part, halves in (("", (0, 1)), (", one half", (0,)), (", the other", (1,))):
            part_units = [unit for unit in units if crc32(unit[0].encode()) % 2 in halves]
            if part_units:
                kappa, *f1 = agreement(part_units)
                enough = "yes" if len(part_units) >= MIN_LABELS and kappa.low > 0 else "no"
                yield [f"{name}{part}", checker_name, str(len(part_units)), str(kappa), *map(str, f1), enough]
            elif not part:
                yield [name, checker_name, "0", "–", "–", "–", "no"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, help="maximum number of cases per set")
    parser.add_argument("--publish", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    names = options.sets or [path.stem for path in sorted((options.data / "statements").glob("*.jsonl"))]
    with checkers() as used:
        rows = [
            row for name, cases in find_cases(options.data, names, options.limit) for row in rows_of(name, cases, used)
        ]
    table = report.table(["", "judge", "n", "kappa", "F1, supported", "F1, unsupported", "shown in Evaluation"], rows)
    if options.publish:
        facts = {**machine.describe(()), "limits": f"{options.limit or 'all'} cases per set"}
        report.publish(PAGE, COMMAND, facts, table)
    print(table)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
