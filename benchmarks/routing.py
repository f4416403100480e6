"""Routes of messages: how many are right, beside simpler ways to tell them, and how many plain questions are lost.

    python -m benchmarks.routing [FILE …] [--fit] [--data FOLDER] [--limit N]

FILE holds rows of {"question", "route"}; without one it is the two sets of tests/routing, which were written before the
rules by somebody who saw none of them, and from which nothing was fitted. Macro-F1 with a 95 % interval over the
messages (bootstrap), for the router, its classifier alone, the same on n-grams alone and on fields alone (fitted anew
on the same rows), and the three errors that cost most. Then the questions of the sets in --data, which their authors
asked of pages: the share that does not start at once. --fit writes `weights.npz` from `training.jsonl` first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from benchmarks.datasets import DEFAULT_FOLDER, find, load, spread
from rag.evaluation.statistics import ROUNDS
from rag.routing.classifier import FIELDS, SIZE, TRAINING, features, likelihoods, read_message, save
from rag.routing.router import Router

_TESTS = Path(__file__).resolve().parent.parent / "tests" / "routing"
_COSTLY = ("save", "save_then_ask", "web", "unknown", "small_talk")
_STRENGTH = 3.0  # of the likelihood against the penalty; 1 to 10 give the same within a hundredth

Row = tuple[str, str]


def main() -> int:
    options = _options()
    training = _rows(TRAINING)
    if options.fit:
        model = _fitted(training, slice(0, SIZE))
        save(model.coef_, model.intercept_, list(model.classes_))
    for path in options.files or (_TESTS / "utterances.jsonl", _TESTS / "kept_back.jsonl"):
        report(path.name, _rows(path), training)
    for folder in find(options.data, ()):
        asked(folder.name, [row["question"] for row in spread(load(folder).questions, options.limit)])
    return 0


def report(name: str, rows: Sequence[Row], training: Sequence[Row]) -> None:
    router, truth = Router(), np.array([route for _, route in rows])
    print(f"\n{name}: {len(rows)} messages\n\n| by | macro-F1 | right |\n| --- | --- | --- |")
    ways: dict[str, Callable[[str], str]] = {
        "the router": lambda text: router.route(text).route,
        "the classifier alone": lambda text: _best(likelihoods(read_message(text))),
        "n-grams alone": _rival(training, slice(FIELDS, SIZE)),
        "fields alone": _rival(training, slice(0, FIELDS)),
    }
    said = {way: np.array([tell(text) for text, _ in rows]) for way, tell in ways.items()}
    for way, told in said.items():
        low, high = _interval(truth, told)
        print(f"| {way} | {_macro_f1(truth, told):.3f} ({low:.3f} to {high:.3f}) | {np.mean(truth == told):.3f} |")
    routed = said["the router"]
    lost = {route: int(np.sum((routed == route) & (truth != route))) for route in _COSTLY}
    print(f"\nwrongly {', '.join(f'{route} {count}' for route, count in lost.items())}", flush=True)
    for (text, route), told in zip(rows, routed, strict=True):
        if route != told:
            print(f"- {route} → {told}: {' '.join(text.split())[:100]}")


def asked(name: str, questions: Sequence[str]) -> None:
    """How many of the questions of a set are taken for something else."""
    router = Router()
    others = Counter(route for text in questions if (route := router.route(text).route) != "ask")
    told = ", ".join(f"{route} {count}" for route, count in others.most_common()) or "none"
    print(f"{name}: {len(questions)} questions, not asked: {told}", flush=True)


def _rival(training: Sequence[Row], part: slice) -> Callable[[str], str]:
    model = _fitted(training, part)
    return lambda text: str(model.predict(_matrix([text])[:, part])[0])


def _fitted(rows: Sequence[Row], part: slice) -> LogisticRegression:
    matrix = _matrix([text for text, _ in rows])[:, part]
    return LogisticRegression(C=_STRENGTH, max_iter=500).fit(matrix, [route for _, route in rows])


def _matrix(texts: Sequence[str]) -> csr_matrix:
    """(texts, SIZE)."""
    found = [features(read_message(text).masked) for text in texts]
    ends = np.cumsum([0, *(len(places) for places, _ in found)])
    places, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return csr_matrix((values, places, ends), shape=(len(texts), SIZE))


def _best(likely: dict[str, float]) -> str:  # type: ignore[type-arg]
    return max(likely, key=lambda route: likely[route])


def _macro_f1(truth: NDArray[np.str_], told: NDArray[np.str_]) -> float:
    scores = []
    for route in np.unique(truth):
        right = np.sum((truth == route) & (told == route))
        scores.append(2 * right / (np.sum(truth == route) + np.sum(told == route)))
    return float(np.mean(scores))


def _interval(truth: NDArray[np.str_], told: NDArray[np.str_]) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    drawn = (rng.integers(0, len(truth), len(truth)) for _ in range(ROUNDS // 10))
    low, high = np.quantile([_macro_f1(truth[places], told[places]) for places in drawn], (0.025, 0.975))
    return float(low), float(high)


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [(row["question"], row["route"]) for row in map(json.loads, lines)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How many messages take the right way.")
    parser.add_argument("files", nargs="*", type=Path, help="rows of question and route")
    parser.add_argument("--fit", action="store_true", help="fit the weights on the training file first")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="sets whose questions are plain ones")
    parser.add_argument("--limit", type=int, default=300, help="questions of each such set")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
