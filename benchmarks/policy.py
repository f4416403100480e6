"""A small model that decides when research without a chat model has searched enough, tested on unseen sets.

    python -m benchmarks.policy [--sets hotpot,musique] [--limit N] [--data FOLDER]

Searching is deterministic, so each question is rolled out once to the end that the rules reach, up to six searches, and
the result of any earlier stop follows exactly. After each search a logistic regression predicts whether continuing
brings unread evidence; below a threshold it stops. The threshold is the one that searches least without losing all@4000
on the training set. Compared with the rules, a fixed number of searches, and the best stop in hindsight. Intervals are
of paired differences from the rules.
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
from benchmarks.intervals import format_mean
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.samples import find_sets
from rag.evaluation.metrics import has_all
from rag.reasoning.hops import MAX_SCANNED, RulePlanner, interleave
from rag.retrieval.context import estimate_answerable, features_of
from rag.types import Passage

_MAX_SEARCHES, _TOP, _BUDGET, _TOP_NEW = 6, 20, 4000, 5
_RIDGE = 1.0
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class SearchStep:
    """The features known after a search, and whether the results so far contain all the evidence."""

    features: tuple[float, ...]
    recall: float


Rollout = list[SearchStep]
Stop = Callable[[Rollout], int]
"""The number of searches to stop after."""


class RolloutMaker:
    """Rollouts of rule-based research over a set's library."""

    def __init__(self, app: MeasuredApp, library: str) -> None:
        self._app, self._library = app, library
        self._idf = app.library(library).idf
        self._planner = RulePlanner(app.models.sparse, self._idf)

    def roll(self, row: dict[str, Any]) -> Rollout:
        question, quotes = str(row["question"]), [one["quote"] for one in row["evidence"]]
        queries, results, moments = list[str](), list[Sequence[Passage]](), Rollout()
        waiting = [question]
        while waiting and len(queries) < _MAX_SEARCHES:
            query = waiting.pop(0)
            result = self._app.search(query, library=self._library, k=_TOP)
            queries.append(query)
            results.append(result.passages)
            waiting = waiting or [one.text for one in self._planner.revise(question, queries, results)]
            merged = interleave(results)
            features = (result.answerable, *self._features(question, queries, results, merged, len(waiting)))
            moments.append(SearchStep(features, has_all(quotes, [one.text for one in merged], _BUDGET)))
        return moments

    def _features(
        self,
        question: str,
        queries: Sequence[str],
        results: Sequence[Sequence[Passage]],
        merged: Sequence[Passage],
        waiting: int,
    ) -> Iterator[float]:
        sparse = self._app.models.sparse
        yield len(queries)
        yield waiting
        seen_ids = {passage.id for passages in results[:-1] for passage in passages}
        top = results[-1][:_TOP_NEW]
        yield sum(one.id not in seen_ids for one in top) / max(1, len(top))
        yield estimate_answerable(merged, question, sparse, self._idf)
        yield estimate_answerable(results[0], question, sparse, self._idf)
        idf = self._idf(sorted(sparse.encode_query(question).indices))
        yield from features_of(idf, merged, sparse).values()
        candidates = self._planner.find_candidates(question, queries[-1], results[-1][:MAX_SCANNED])
        yield max((one.chance for one in candidates), default=0.0)
        yield len(self._planner.find_compared(question, results[0]))
        yield len(question) / 100


def fit_stop(rollouts: Sequence[Rollout]) -> Stop:
    """Fit a logistic regression to the rollouts; return a rule that stops where it predicts no gain."""
    moments = [(moment, rollout[n:]) for rollout in rollouts for n, moment in enumerate(rollout, 1)]
    features = np.array([moment.features for moment, _ in moments])
    gains = [max((later.recall for later in rest), default=0.0) > moment.recall for moment, rest in moments]
    middle, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    weights = _fit(_with_intercept((features - middle) / spread), np.array(gains, dtype=float))

    def chances(rollout: Rollout) -> Rows:
        scaled = (np.array([moment.features for moment in rollout]) - middle) / spread
        return np.asarray(1 / (1 + np.exp(-_with_intercept(scaled) @ weights)))

    def at(threshold: float) -> Stop:
        return lambda rollout: next((n for n, p in enumerate(chances(rollout), 1) if p < threshold), len(rollout))

    stops = [at(threshold) for threshold in np.linspace(0, 0.5, 101)]
    required = sum(rollout[-1].recall for rollout in rollouts)
    stops = [stop for stop in stops if sum(r[stop(r) - 1].recall for r in rollouts) >= required]
    return min(stops, key=lambda stop: sum(map(stop, rollouts)))


def _with_intercept(rows: Rows) -> Rows:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _fit(rows: Rows, gains: Rows) -> Rows:
    """Fit by Newton's method; the ridge penalty keeps weak features near zero."""
    weights, ridge = np.zeros(rows.shape[1]), _RIDGE * np.eye(rows.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chances - gains) + ridge @ weights
        weights = weights - np.linalg.solve((rows.T * (chances * (1 - chances))) @ rows + ridge, slope)
    return weights


def best_stop(rollout: Rollout) -> int:
    """Return the first stop with the most evidence."""
    return int(np.argmax([one.recall for one in rollout])) + 1


def _limit_searches(limit: int, rollout: Rollout) -> int:
    return min(limit, len(rollout))


def rows_of(name: str, way: str, stop: Stop, rollouts: Sequence[Rollout]) -> list[str]:
    searches = list(map(stop, rollouts))
    holds = [rollout[n - 1].recall for rollout, n in zip(rollouts, searches, strict=True)]
    fewer = 1 - sum(searches) / sum(map(len, rollouts))
    gains = [one - rollout[-1].recall for one, rollout in zip(holds, rollouts, strict=True)]
    cells = [f"{sum(searches) / len(searches):.2f}", f"{fewer:.0%}", format_mean(holds)]
    return [name, way, *cells, format_mean(gains, signed=True) if any(gains) else "the same"]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    rollouts_by_set: dict[str, list[Rollout]] = {}
    with measured_app() as app:
        for folder in find_sets(options.data, options.sets):
            data: Dataset = datasets.load(folder)
            data = replace(
                data, questions=datasets.sample_evenly([q for q in data.questions if q["evidence"]], options.limit)
            )
            import_set(app, data, "semantic", data.name)
            rollouts_by_set[data.name] = list(map(RolloutMaker(app, data.name).roll, data.questions))
            print(f"{data.name}: {len(data.questions)} questions", file=sys.stderr, flush=True)
    rows = [rows_of(name, "the rules", len, rollouts) for name, rollouts in rollouts_by_set.items()]
    for source, target in permutations(rollouts_by_set, 2):
        rows.append(rows_of(target, f"fitted to {source}", fit_stop(rollouts_by_set[source]), rollouts_by_set[target]))
    for name, rollouts in rollouts_by_set.items():
        rows.append(rows_of(name, "fitted to its other half", _cross_fit(rollouts), rollouts))
        rows += [
            rows_of(name, f"up to {most}", partial(_limit_searches, most), rollouts) for most in range(1, _MAX_SEARCHES)
        ]
        rows.append(rows_of(name, "the best stop in hindsight", best_stop, rollouts))
    table = report.table(["set", "stops by", "searches", "fewer", "all@4000", "compared with the rules"], rows)
    report.save("policy", machine.describe(()), [{"row": row} for row in rows], table)
    print(table)
    return 0 if rows else 1


def _cross_fit(rollouts: Sequence[Rollout]) -> Stop:
    """Apply to each half the rule fitted to the other."""
    stops = fit_stop(rollouts[1::2]), fit_stop(rollouts[::2])
    half = {id(rollout): place % 2 for place, rollout in enumerate(rollouts)}
    return lambda rollout: stops[half[id(rollout)]](rollout)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: names.split(","), default=["hotpot", "musique"], metavar="A,B")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="maximum number of questions per set")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
