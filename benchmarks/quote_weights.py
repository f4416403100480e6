"""Fit the weights that choose sentences for quoted answers, `FEATURES` in rag/reasoning/extractive.py.

    python -m benchmarks.quote_weights [SET …] [--data FOLDER] [--limit N]

A softmax regression over the candidate sentences of each question maximises the likelihood of drawing one in the
evidence. The sets have equal weight. Each set is ranked by a fit on the others, compared with the similarity of the
same sentences by the embedding model alone: how often the first one is in the evidence, and the share of the first two.
The last line is the fit on all of them.
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

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, find_folders, load, sample_evenly
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.quoted import in_evidence
from rag.reasoning.extractive import FEATURES

SETS = ("xquad-en", "xquad-zh", "chroma", "hotpot", "musique")
"""The sets whose licence permits redistributing weights fitted on them."""
_PENALTY = 1e-3


@dataclass(frozen=True)
class Sample:
    """The features of the n candidate sentences of a question, and which of them are in its evidence."""

    features: NDArray[np.float64]
    right: NDArray[np.bool_]


def main() -> int:
    options = _options()
    folders = find_folders(options.data, options.sets)
    if not folders:
        print(f"no sets in {options.data}: give a folder with --data", file=sys.stderr)
        return 2
    samples: dict[str, list[Sample]] = {}
    with measured_app() as app:
        for folder in folders:
            data = load(folder)
            import_set(app, data, "semantic", data.name)
            samples[data.name] = list(sample_questions(app, data.name, data, options.limit))
            print(json.dumps({"set": data.name, "questions": len(samples[data.name])}), flush=True)
    report(samples)
    return 0


def sample_questions(app: MeasuredApp, library: str, data: Dataset, limit: int) -> Iterator[Sample]:
    """Yield samples of up to `limit` questions, evenly spread, that have evidence among the results."""
    reasoner = app.quoter(library)
    for row in sample_evenly([row for row in data.questions if row["evidence"]], limit):
        passages = app.search(row["question"], library=library).passages
        sentences, features = reasoner.score_sentences(row["question"], passages)
        is_statement = [not sentence.unit.leads for sentence in sentences]
        right = np.array(in_evidence(row, (sentence.unit.text for sentence in sentences)), dtype=bool)[is_statement]
        if right.any():
            yield Sample(features[is_statement], right)


def report(samples: dict[str, list[Sample]]) -> None:
    nearest = np.array([float(name == "similarity") for name in FEATURES])
    for name, own in samples.items():
        others = [sample for other, sample in samples.items() if other != name]
        scores = {"ours": _shares(own, fit(others)) if others else [], "nearest": _shares(own, nearest)}
        print(json.dumps({"set": name, **{k: [round(v, 3) for v in pair] for k, pair in scores.items()}}), flush=True)
    weights = fit(list(samples.values())).tolist()
    print(json.dumps({name: round(weight, 1) for name, weight in zip(FEATURES, weights, strict=True)}))


def _shares(sample: Sequence[Sample], weights: NDArray[np.float64]) -> list[float]:
    """Return the share in the evidence of the first sentence, and of the first two."""
    ranked = [one.right[np.argsort(-(one.features @ weights), kind="stable")] for one in sample]
    return [float(np.mean([right[:count].mean() for right in ranked])) for count in (1, 2)]


def fit(samples: Sequence[Sequence[Sample]]) -> NDArray[np.float64]:
    """Return the maximum-likelihood weights, by Newton's steps alternating with the expected draw (EM)."""
    questions = [(one, 1 / len(sample) / len(samples)) for sample in samples for one in sample]
    spread_of = np.concatenate([one.features for one, _ in questions]).std(axis=0) + 1e-9
    weights = np.zeros(len(spread_of))
    for _ in range(100):
        gradient, curvature = -_PENALTY * weights, _PENALTY * np.eye(len(weights))
        for one, weight in questions:
            scaled = one.features / spread_of
            odds = np.exp(scaled @ weights - (scaled @ weights).max())
            probabilities, posterior = odds / odds.sum(), odds * one.right / (odds @ one.right)
            mean = probabilities @ scaled
            gradient += weight * (posterior @ scaled - mean)
            curvature += weight * ((scaled * probabilities[:, None]).T @ scaled - np.outer(mean, mean))
        step = np.linalg.solve(curvature, gradient)
        weights += step / max(1.0, np.abs(step).max())  # a full step diverges with few questions
    return np.asarray(weights / spread_of)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=150, metavar="N", help="questions per set (default 150)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
