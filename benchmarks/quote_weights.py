"""Fit the weights by which sentences are chosen for quoted answers, `FEATURES` in rag/reasoning/extractive.py.

    python -m benchmarks.quote_weights [SET …] [--data FOLDER] [--limit N]

A softmax regression over the sentences of the passages that each question is answered from: the likelihood that one
in the evidence is drawn. The sets weigh alike. What is printed of a set was predicted by a fit on the others, beside
the sentence nearest to the question by the model alone, among the same sentences: how often the first one stands in
the evidence, and which share of the first two. The last line is the fit on all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, find, load, spread
from benchmarks.ours import MeasuredApp, measured_app, take_in
from benchmarks.quoted import in_evidence
from rag.reasoning.extractive import FEATURES

SETS = ("xquad-en", "xquad-zh", "chroma", "hotpot", "musique")
"""Those whose licence lets weights that were fitted on them be handed on."""
_PENALTY = 1e-3


@dataclass(frozen=True)
class Asked:
    """The features of the n sentences that a question may be answered by, and which of them are in its evidence."""

    features: NDArray[np.float64]
    right: NDArray[np.bool_]


def main() -> int:
    options = _options()
    folders = find(options.data, options.sets)
    if not folders:
        print(f"no sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    samples: dict[str, list[Asked]] = {}
    with measured_app() as app:
        for folder in folders:
            data = load(folder)
            take_in(app, data, "semantic", data.name)
            samples[data.name] = list(asked(app, data.name, data, options.limit))
            print(json.dumps({"set": data.name, "questions": len(samples[data.name])}), flush=True)
    report(samples)
    return 0


def asked(app: MeasuredApp, library: str, data: Dataset, limit: int) -> Iterator[Asked]:
    """At most `limit` questions, evenly spread, of those that have evidence among what was found."""
    reasoner = app.quoter(library)
    for row in spread([row for row in data.questions if row["evidence"]], limit):
        sentences, features = reasoner.score_sentences(
            row["question"], app.search(row["question"], library=library).passages
        )
        stating = [not sentence.quoted.asks for sentence in sentences]
        right = np.array(in_evidence(row, (sentence.quoted.text for sentence in sentences)), dtype=bool)[stating]
        if right.any():
            yield Asked(features[stating], right)


def report(samples: dict[str, list[Asked]]) -> None:
    plain = np.array([float(name == "near") for name in FEATURES])
    for name, own in samples.items():
        others = [sample for other, sample in samples.items() if other != name]
        scores = {"ours": _shares(own, fit(others)) if others else [], "nearest": _shares(own, plain)}
        print(json.dumps({"set": name, **{k: [round(v, 3) for v in pair] for k, pair in scores.items()}}), flush=True)
    weights = fit(list(samples.values())).tolist()
    print(json.dumps({name: round(weight, 1) for name, weight in zip(FEATURES, weights, strict=True)}))


def _shares(sample: Sequence[Asked], weights: NDArray[np.float64]) -> list[float]:
    """Of the first sentence, and of the first two, the share in the evidence."""
    ranked = [one.right[np.argsort(-(one.features @ weights), kind="stable")] for one in sample]
    return [float(np.mean([right[:count].mean() for right in ranked])) for count in (1, 2)]


def fit(samples: Sequence[Sequence[Asked]]) -> NDArray[np.float64]:
    """The weights of most likelihood, by Newton's steps between which the one drawn is as likely as it then is (EM)."""
    questions = [(one, 1 / len(sample) / len(samples)) for sample in samples for one in sample]
    spread_of = np.concatenate([one.features for one, _ in questions]).std(axis=0) + 1e-9
    found = np.zeros(len(spread_of))
    for _ in range(100):
        gradient, curvature = -_PENALTY * found, _PENALTY * np.eye(len(found))
        for one, weight in questions:
            scaled = one.features / spread_of
            odds = np.exp(scaled @ found - (scaled @ found).max())
            likely, drawn = odds / odds.sum(), odds * one.right / (odds @ one.right)
            mean = likely @ scaled
            gradient += weight * (drawn @ scaled - mean)
            curvature += weight * ((scaled * likely[:, None]).T @ scaled - np.outer(mean, mean))
        step = np.linalg.solve(curvature, gradient)
        found += step / max(1.0, np.abs(step).max())  # a whole one leads astray where few are asked
    return np.asarray(found / spread_of)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=150, metavar="N", help="questions of a set (default 150)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
