"""Routing of messages: macro-F1 compared with simpler classifiers, and the number of misrouted questions.

    python -m benchmarks.routing [FILE …] [--fit] [--data FOLDER] [--limit N]

FILE has rows of {"question", "route"}; the default is the sets of tests/routing, which nothing was fitted to: two
written before the rules, titles and headings of wcxb as people type them into a search, and messages with "you", who
may be the app, anyone, or the author of a page. Macro-F1 with a 95% interval over the messages (bootstrap), for the
router, its classifier alone, n-grams alone and fields alone (refitted on the training rows), and the most costly
errors. Then, for the sets in --data and the held-out questions of the answer reader, which are all about pages, the
number of those that are misrouted. --fit first writes `weights.npz` from `training.jsonl`.
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

from benchmarks.datasets import DEFAULT_FOLDER, find_folders, load, sample_evenly
from benchmarks.reader_questions import HELD_OUT, read_questions
from rag.evaluation.statistics import ROUNDS
from rag.routing.router import (
    FEATURE_COUNT,
    NAMED_FEATURE_COUNT,
    TRAINING,
    Router,
    feature_vector,
    read_message,
    route_probabilities,
    save_weights,
)

_TESTS = Path(__file__).resolve().parent.parent / "tests" / "routing"
_SETS = ("utterances.jsonl", "kept_back.jsonl", "keywords.jsonl", "addressed.jsonl")
_COSTLY = ("save", "save_then_ask", "web", "unknown", "small_talk")
_STRENGTH = 3.0  # inverse of the regularisation; 1 to 10 give the same within a hundredth

Row = tuple[str, str]


def main() -> int:
    options = _options()
    training = _rows(TRAINING)
    if options.fit:
        model = _fit(training, slice(0, FEATURE_COUNT))
        save_weights(model.coef_, model.intercept_, list(model.classes_))
    for path in options.files or (_TESTS / name for name in _SETS):
        report(path.name, _rows(path), training)
    for folder in find_folders(options.data, ()):
        report_set(folder.name, [row["question"] for row in sample_evenly(load(folder).questions, options.limit)])
    report_set(HELD_OUT, [row["question"] for row in read_questions(held_out=True)])
    return 0


def report(name: str, rows: Sequence[Row], training: Sequence[Row]) -> None:
    router, truth = Router(), np.array([route for _, route in rows])
    print(f"\n{name}: {len(rows)} messages\n\n| by | macro-F1 | right |\n| --- | --- | --- |")
    ways: dict[str, Callable[[str], str]] = {
        "the router": lambda text: router.route(text).route,
        "the classifier alone": lambda text: _most_likely(route_probabilities(read_message(text))),
        "n-grams alone": _fit_rival(training, slice(NAMED_FEATURE_COUNT, FEATURE_COUNT)),
        "fields alone": _fit_rival(training, slice(0, NAMED_FEATURE_COUNT)),
    }
    routes = {way: np.array([classify(text) for text, _ in rows]) for way, classify in ways.items()}
    for way, guess in routes.items():
        low, high = _interval(truth, guess)
        print(f"| {way} | {_macro_f1(truth, guess):.3f} ({low:.3f} to {high:.3f}) | {np.mean(truth == guess):.3f} |")
    routed = routes["the router"]
    errors = {route: int(np.sum((routed == route) & (truth != route))) for route in _COSTLY}
    print(f"\nwrongly {', '.join(f'{route} {count}' for route, count in errors.items())}", flush=True)
    for (text, route), guess in zip(rows, routed, strict=True):
        if route != guess:
            print(f"- {route} → {guess}: {' '.join(text.split())[:100]}")


def report_set(name: str, questions: Sequence[str]) -> None:
    """Print how many questions of a set are misrouted."""
    router = Router()
    misrouted = Counter(route for text in questions if (route := router.route(text).route) != "ask")
    summary = ", ".join(f"{route} {count}" for route, count in misrouted.most_common()) or "none"
    print(f"{name}: {len(questions)} questions, misrouted: {summary}", flush=True)


def _fit_rival(training: Sequence[Row], part: slice) -> Callable[[str], str]:
    model = _fit(training, part)
    return lambda text: str(model.predict(_matrix([text])[:, part])[0])


def _fit(rows: Sequence[Row], part: slice) -> LogisticRegression:
    matrix = _matrix([text for text, _ in rows])[:, part]
    return LogisticRegression(C=_STRENGTH, max_iter=500).fit(matrix, [route for _, route in rows])


def _matrix(texts: Sequence[str]) -> csr_matrix:
    """Return the features of the texts, (texts, FEATURE_COUNT)."""
    sparse_rows = [feature_vector(read_message(text).masked) for text in texts]
    ends = np.cumsum([0, *(len(places) for places, _ in sparse_rows)])
    places, values = (np.concatenate(parts) for parts in zip(*sparse_rows, strict=True))
    return csr_matrix((values, places, ends), shape=(len(texts), FEATURE_COUNT))


def _most_likely(likely: dict[str, float]) -> str:  # type: ignore[type-arg]
    return max(likely, key=lambda route: likely[route])


def _macro_f1(truth: NDArray[np.str_], guess: NDArray[np.str_]) -> float:
    scores = []
    for route in np.unique(truth):
        right = np.sum((truth == route) & (guess == route))
        scores.append(2 * right / (np.sum(truth == route) + np.sum(guess == route)))
    return float(np.mean(scores))


def _interval(truth: NDArray[np.str_], guess: NDArray[np.str_]) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    samples = (rng.integers(0, len(truth), len(truth)) for _ in range(ROUNDS // 10))
    low, high = np.quantile([_macro_f1(truth[places], guess[places]) for places in samples], (0.025, 0.975))
    return float(low), float(high)


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [(row["question"], row["route"]) for row in map(json.loads, lines)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the routes of messages.")
    parser.add_argument("files", nargs="*", type=Path, help="rows of question and route")
    parser.add_argument("--fit", action="store_true", help="fit the weights on the training file first")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="sets of plain questions")
    parser.add_argument("--limit", type=int, default=300, help="questions per set")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
