"""Can a small model tell when research without a chat model has searched enough? Learned on one set, tried on another.

    python -m benchmarks.policy [--sets hotpot,musique] [--limit N] [--data FOLDER]

Searching is deterministic, so each question is rolled out once to the end that the rules come to, six searches at most,
and any rule for stopping earlier is known exactly from that. After each search a logistic regression on what is known
then says how likely it is that going on brings evidence that is not read yet; below a threshold it stops. The threshold
is the one that searches least without losing all@4000 on the set that it is learned on. Beside it: the rules, so many
searches for every question, and the best stop in hindsight. Intervals are of differences to the rules, by pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import datasets, machine, report
from benchmarks.datasets import DEFAULT_FOLDER, Dataset
from benchmarks.intervals import told
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.samples import find_sets
from rag.evaluation.evidence import has_all
from rag.reasoning.hops import MAX_SCANNED, RulePlanner, interleave
from rag.retrieval.answerable import estimate_answerable, features_of
from rag.types import Passage

_MOST, _K, _ROOM, _FIRST = 6, 20, 4000, 5
_RIDGE = 1.0
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Moment:
    """What is known after a search, and whether all the evidence is among what would be read."""

    features: tuple[float, ...]
    holds: float


Rollout = list[Moment]
Stop = Callable[[Rollout], int]
"""After how many searches to stop."""


class Roller:
    """Searches a set's library as research by rules does."""

    def __init__(self, app: MeasuredApp, library: str) -> None:
        self._app, self._library = app, library
        self._idf = app.library(library).idf
        self._planner = RulePlanner(app.models.sparse, self._idf)

    def roll(self, row: dict[str, Any]) -> Rollout:
        question, quotes = str(row["question"]), [one["quote"] for one in row["evidence"]]
        asked, found, moments = list[str](), list[Sequence[Passage]](), Rollout()
        waiting = [question]
        while waiting and len(asked) < _MOST:
            query = waiting.pop(0)
            searched = self._app.search(query, library=self._library, k=_K)
            asked.append(query)
            found.append(searched.passages)
            waiting = waiting or [one.text for one in self._planner.revise(question, asked, found)]
            read = interleave(found)
            known = (searched.answerable, *self._known(question, asked, found, read, len(waiting)))
            moments.append(Moment(known, has_all(quotes, [one.text for one in read], _ROOM)))
        return moments

    def _known(
        self,
        question: str,
        asked: Sequence[str],
        found: Sequence[Sequence[Passage]],
        read: Sequence[Passage],
        waiting: int,
    ) -> Iterator[float]:
        sparse = self._app.models.sparse
        yield len(asked)
        yield waiting
        before = {one.id for passages in found[:-1] for one in passages}
        first = found[-1][:_FIRST]
        yield sum(one.id not in before for one in first) / max(1, len(first))
        yield estimate_answerable(read, question, sparse, self._idf)
        yield estimate_answerable(found[0], question, sparse, self._idf)
        idf = self._idf(sorted(sparse.encode_query(question).indices))
        yield from features_of(idf, read, sparse).values()
        leads = self._planner.leads(question, asked[-1], found[-1][:MAX_SCANNED])
        yield max((lead.chance for lead in leads), default=0.0)
        yield len(self._planner.sides(question, found[0]))
        yield len(question) / 100


def learned(rollouts: Sequence[Rollout]) -> Stop:
    """Stops where a logistic regression on these says that going on brings nothing."""
    moments = [(one, rollout[n:]) for rollout in rollouts for n, one in enumerate(rollout, 1)]
    given = np.array([one.features for one, _ in moments])
    gains = [max((later.holds for later in rest), default=0.0) > one.holds for one, rest in moments]
    middle, spread = given.mean(axis=0), given.std(axis=0) + 1e-9
    weights = _fitted(_with_one((given - middle) / spread), np.array(gains, dtype=float))

    def chances(rollout: Rollout) -> Rows:
        known = (np.array([one.features for one in rollout]) - middle) / spread
        return np.asarray(1 / (1 + np.exp(-_with_one(known) @ weights)))

    def at(threshold: float) -> Stop:
        return lambda rollout: next((n for n, p in enumerate(chances(rollout), 1) if p < threshold), len(rollout))

    as_good = [at(threshold) for threshold in np.linspace(0, 0.5, 101)]
    least = sum(rollout[-1].holds for rollout in rollouts)
    as_good = [stop for stop in as_good if sum(r[stop(r) - 1].holds for r in rollouts) >= least]
    return min(as_good, key=lambda stop: sum(map(stop, rollouts)))


def _with_one(rows: Rows) -> Rows:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _fitted(rows: Rows, gains: Rows) -> Rows:
    """Newton's steps; the ridge keeps what says little near nothing."""
    weights, ridge = np.zeros(rows.shape[1]), _RIDGE * np.eye(rows.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chances - gains) + ridge @ weights
        weights = weights - np.linalg.solve((rows.T * (chances * (1 - chances))) @ rows + ridge, slope)
    return weights


def hindsight(rollout: Rollout) -> int:
    """The first place with the most that is ever held."""
    return int(np.argmax([one.holds for one in rollout])) + 1


def _at_most(most: int, rollout: Rollout) -> int:
    return min(most, len(rollout))


def rows_of(name: str, way: str, stop: Stop, rollouts: Sequence[Rollout]) -> list[str]:
    taken = list(map(stop, rollouts))
    holds = [rollout[n - 1].holds for rollout, n in zip(rollouts, taken, strict=True)]
    fewer = 1 - sum(taken) / sum(map(len, rollouts))
    ahead = [one - rollout[-1].holds for one, rollout in zip(holds, rollouts, strict=True)]
    cells = [f"{sum(taken) / len(taken):.2f}", f"{fewer:.0%}", told(holds)]
    return [name, way, *cells, told(ahead, signed=True) if any(ahead) else "the same"]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rolled: dict[str, list[Rollout]] = {}
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data: Dataset = datasets.load(folder)
            data = replace(data, questions=datasets.spread([q for q in data.questions if q["evidence"]], options.limit))
            take_in(app, data, "semantic", data.name)
            rolled[data.name] = list(map(Roller(app, data.name).roll, data.questions))
            print(f"{data.name}: {len(data.questions)} questions", file=sys.stderr, flush=True)
    rows = [rows_of(name, "the rules", len, rollouts) for name, rollouts in rolled.items()]
    for source, target in permutations(rolled, 2):
        rows.append(rows_of(target, f"learned on {source}", learned(rolled[source]), rolled[target]))
    for name, rollouts in rolled.items():
        rows.append(rows_of(name, "learned on its other half", _crossed(rollouts), rollouts))
        rows += [rows_of(name, f"{most} at most", partial(_at_most, most), rollouts) for most in range(1, _MOST)]
        rows.append(rows_of(name, "the best stop in hindsight", hindsight, rollouts))
    table = report.table(["set", "stops by", "searches", "fewer", "all@4000", "beside the rules"], rows)
    report.save("policy", machine.describe(()), [{"row": row} for row in rows], table)
    print(table)
    return 0 if rows else 1


def _crossed(rollouts: Sequence[Rollout]) -> Stop:
    """Each half by what was learned on the other."""
    stops = learned(rollouts[1::2]), learned(rollouts[::2])
    half = {id(rollout): place % 2 for place, rollout in enumerate(rollouts)}
    return lambda rollout: stops[half[id(rollout)]](rollout)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=["hotpot", "musique"], metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N questions of each set")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
