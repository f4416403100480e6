"""Fit the classifier of a page's blocks: which belong to the main text.

    python -m benchmarks.extraction_fit [--data FOLDER ...]

Fits on all pages of the sets and replaces rag/reading/extraction/weights.json. `python -m benchmarks.extraction --folds
5` measures it on unseen pages. Needs scikit-learn, which sentence-transformers installs; the app itself does not.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.extraction_labels import SETS, Example, read_examples, read_truth
from rag.reading.extraction.features import FEATURE_NAMES, WEIGHTS, Forest, Node

ENSEMBLES = 3  # they differ in the features that each split may use
TREES = 90
LEAVES = 12
RATE = 0.1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extraction_fit", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, action="append", help="a set of pages; may be repeated")
    write(fit(list(read_examples(read_truth(parser.parse_args(arguments).data or SETS)))))
    return 0


def fit_folds(examples: Sequence[Example], folds: int, seed: int = 0) -> dict[str, Forest]:
    """Return for each page, by its id, a forest fitted to the pages of other sites."""
    parts, forests = _parts(examples, folds, seed), dict[str, Forest]()
    for held_part in range(folds):
        forest = fit([example for example, part in zip(examples, parts, strict=True) if part != held_part])
        forests |= {e.row["id"]: forest for e, part in zip(examples, parts, strict=True) if part == held_part}
    return forests


def fit(examples: Sequence[Example]) -> Forest:
    """Fit the mean of several gradient-boosted ensembles; pages have equal weight, blocks weigh by their words."""
    import numpy as np

    rows = np.array([row for example in examples for row in example.features])
    share = np.array([value for example in examples for value in example.wanted])
    weight = np.array([value for example in examples for value in _weights(example)])
    # A block that is partly wanted counts as a wanted and an unwanted one.
    wanted, unwanted = share > 0, share < 1
    weights = np.r_[(weight * share)[wanted], (weight * (1 - share))[unwanted]]
    answers = np.r_[np.ones(wanted.sum()), np.zeros(unwanted.sum())]
    samples = np.concatenate([rows[wanted], rows[unwanted]]), answers, weights / weights.mean()
    models = [_boost(*samples, seed) for seed in range(ENSEMBLES)]
    trees = [_tree(predictors[0].nodes, 0) for model in models for predictors in model._predictors]
    return Forest(float(models[0]._baseline_prediction[0, 0]), trees)


def _boost(rows: Any, answers: Any, weights: Any, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=150,
        l2_regularization=5.0,
        max_features=0.3,
        max_bins=64,
        early_stopping=False,
        random_state=seed,
    )
    return model.fit(rows, answers, sample_weight=weights)


def write(forest: Forest, path: Path = WEIGHTS) -> None:
    """Write a forest as JSON, one tree per line."""
    trees = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in forest.trees)
    names = json.dumps(list(FEATURE_NAMES))
    path.write_text(f'{{"names": {names},\n"start": {forest.start:.6f},\n"trees": [\n{trees}\n]}}\n', encoding="utf-8")


def _weights(example: Example) -> list[float]:
    words = sum(example.sizes)
    right = sum(size * share for size, share in zip(example.sizes, example.wanted, strict=True))
    page = max(100.0, (words + right) / 2)
    return [(size + 0.5) / page for size in example.sizes]


def _tree(nodes: Any, i: int) -> Node:
    node = nodes[i]
    if node["is_leaf"]:
        return round(float(node["value"]) / ENSEMBLES, 5)
    low, high = _tree(nodes, int(node["left"])), _tree(nodes, int(node["right"]))
    return (int(node["feature_idx"]), round(float(node["num_threshold"]), 6), low, high)


def _parts(examples: Sequence[Example], count: int, seed: int) -> list[int]:
    """Return the fold of each page: each kind spread over all folds, each site in one."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)
    of_site: dict[str, int] = {}
    seen: dict[str, int] = defaultdict(int)
    for i in order:
        row = examples[i].row
        of_site.setdefault(row["site"], seen[row["type"]] % count)
        seen[row["type"]] += 1
    return [of_site[example.row["site"]] for example in examples]


if __name__ == "__main__":
    raise SystemExit(main())
