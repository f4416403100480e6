"""How far each checker of statements agrees with people: Cohen's kappa, and F1 of both classes.

    python -m benchmarks.agreement [SET …] [--data FOLDER] [--limit N] [--publish]

The sets are people's labels of statements, from the shared folder; each is shown whole, and in two halves of its
questions. Beside the rules stand a small rule (`benchmarks.statements`), the local model where VERIFIER_MODEL names
one, and the connected one where LLM_* are set, which is asked as the app asks it: statements that stand in a passage
to the letter are the rules'. A case that a model did not answer for is left out, and n falls. "Partly" is not borne
out. Intervals are of 1,000 resamplings of questions. The screens show a judge's figures from a hundred labels on, and
where the interval of its kappa lies above 0.
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
from rag.evaluation.judge import ENOUGH, cohens_kappa
from rag.evaluation.statistics import Estimate, Weights, share
from rag.models.verifier import LateSupportModel

PAGE = report.ROOT / "docs" / "evaluation.md"
COMMAND = "python -m benchmarks.agreement"
NO_LOCAL, NO_MODEL = "local model: none in VERIFIER_MODEL", "connected model: none in LLM_BASE_URL and LLM_MODEL"

Unit = tuple[str, bool, bool]
"""The question, whether people call the unit wrong, and whether the checker does."""


@contextmanager
def checkers() -> Iterator[dict[str, Checker | None]]:
    """Those that can run here by name; None for those that are not set."""
    with TemporaryDirectory() as folder:
        settings = load_settings(None, rag_data_dir=Path(folder), qdrant_url="")
        with closing(App(settings)) as app:
            model, name = app.reasoner(settings.rag_library), settings.verifier_model
            local = LocalVerifier(LateSupportModel(name)) if name else None
            yield {
                "small rule": small_rule,
                "rules": rules,
                f"local model {name}" if local else NO_LOCAL: partial(by_verifier, local) if local else None,
                **({model.name: partial(by_verifier, model)} if isinstance(model, Verifier) else {NO_MODEL: None}),
            }


def units_of(cases: Sequence[Case], checker: Checker) -> list[Unit]:
    """What people and the checker say of each unit; without cases that were not answered for."""
    found: list[Unit] = []
    for case in cases:
        try:
            judged = measure([case], checker)
        except ModelError as error:
            print(f"{case['id']}: {error}", file=sys.stderr)
            continue
        found += [(str(case.get("group", case["id"])), one.wrong, one.flagged) for one in judged]
    return found


def agreement(units: Sequence[Unit]) -> list[Estimate]:
    """Kappa, F1 of what is borne out, F1 of what is not."""
    weights = intervals.draws([question for question, *_ in units])
    people, said = (np.array([[not one[at], one[at]] for one in units], dtype=float) for at in (1, 2))
    figures = [cohens_kappa(weights, said, people), *(_f1(weights, said[:, n], people[:, n]) for n in (0, 1))]
    return [intervals.estimate(one) for one in figures]


def _f1(weights: Weights, said: np.ndarray, people: np.ndarray) -> intervals.Figures:
    return share(weights @ (2 * said * people), weights @ (said + people))


def rows_of(name: str, cases: Sequence[Case], found: Mapping[str, Checker | None]) -> Iterator[list[str]]:
    """A row for each checker, of the whole set and of each half of its questions."""
    for who, checker in found.items():
        units = units_of(cases, checker) if checker else []
        for part, wanted in (("", (0, 1)), (", one half", (0,)), (", the other", (1,))):
            own = [one for one in units if crc32(one[0].encode()) % 2 in wanted]
            if own:
                kappa, *f1 = agreement(own)
                enough = "yes" if len(own) >= ENOUGH and kappa.low > 0 else "no"
                yield [f"{name}{part}", who, str(len(own)), str(kappa), *map(str, f1), enough]
            elif not part:
                yield [name, who, "0", "–", "–", "–", "no"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, help="at most so many cases of a set")
    parser.add_argument("--publish", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    names = options.sets or [path.stem for path in sorted((options.data / "statements").glob("*.jsonl"))]
    with checkers() as found:
        rows = [
            row for name, cases in find_cases(options.data, names, options.limit) for row in rows_of(name, cases, found)
        ]
    table = report.table(["", "who judges", "n", "kappa", "F1, borne out", "F1, not borne out", "may head"], rows)
    if options.publish:
        known = {**machine.describe(()), "limits": f"{options.limit or 'all'} cases of a set"}
        report.publish(PAGE, COMMAND, known, table)
    print(table)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
