"""Fit the judge of a page's blocks: which belong to its own text.

    python -m benchmarks.extraction_fit [--data FOLDER] [--check] [--write]

--check fits on one half of the pages and scores the other, both ways, no site in both halves: the figures to believe.
--write fits on all of them and replaces rag/ingest/extraction/weights.json. Needs scikit-learn, which comes
with sentence-transformers; the program itself does not.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.extraction_labels import SET, Example, read_examples, read_truth
from benchmarks.extraction_score import line, score
from rag.ingest.extraction.choose import choose
from rag.ingest.extraction.features import NAMES
from rag.ingest.extraction.forest import WEIGHTS, Forest, Node

TREES = 90
LEAVES = 12
RATE = 0.1


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    examples = list(read_examples(options.data))
    if options.check:
        texts = dict[str, str]()
        for held_out in range(options.folds):
            part = [place == held_out for place in _parts(examples, options.seed, options.folds)]
            forest = fit([example for example, is_out in zip(examples, part, strict=True) if not is_out])
            texts |= {e.row["id"]: chosen(forest, e) for e, is_out in zip(examples, part, strict=True) if is_out}
        print("held out", line(score(read_truth(options.data), texts)))
    if options.write:
        write(fit(examples))
    return 0


def fit(examples: Sequence[Example]) -> Forest:
    """Gradient-boosted trees over the blocks of `examples`; pages count alike, blocks by their words."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]

    rows = np.array([row for example in examples for row in example.features])
    share = np.array([value for example in examples for value in example.wanted])
    weight = np.array([value for example in examples for value in _weights(example)])
    # A block that is wanted in part stands for a wanted and an unwanted one.
    some, rest = share > 0, share < 1
    weights = np.r_[(weight * share)[some], (weight * (1 - share))[rest]]
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=150,
        l2_regularization=5.0,
        max_features=0.3,
        max_bins=64,
        early_stopping=False,
        random_state=0,
    )
    answers = np.r_[np.ones(some.sum()), np.zeros(rest.sum())]
    model.fit(np.concatenate([rows[some], rows[rest]]), answers, sample_weight=weights / weights.mean())
    trees = [_tree(predictors[0].nodes, 0) for predictors in model._predictors]
    return Forest(float(model._baseline_prediction[0, 0]), trees)


def chosen(forest: Forest, example: Example) -> str:
    """The text that `forest` takes of a page."""
    chances = [forest.probability(row) for row in example.features]
    taken = choose(chances, example.sizes, example.facts)
    return "\n".join(text for text, is_taken in zip(example.blocks, taken, strict=True) if is_taken)


def write(forest: Forest, path: Path = WEIGHTS) -> None:
    """Store a forest as JSON, a tree a line."""
    trees = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in forest.trees)
    names = json.dumps(list(NAMES))
    path.write_text(f'{{"names": {names},\n"start": {forest.start:.6f},\n"trees": [\n{trees}\n]}}\n', encoding="utf-8")


def _weights(example: Example) -> list[float]:
    words = sum(example.sizes)
    right = sum(size * share for size, share in zip(example.sizes, example.wanted, strict=True))
    page = max(100.0, (words + right) / 2)
    return [(size + 0.5) / page for size in example.sizes]


def _tree(nodes: Any, i: int) -> Node:
    node = nodes[i]
    if node["is_leaf"]:
        return round(float(node["value"]), 5)
    low, high = _tree(nodes, int(node["left"])), _tree(nodes, int(node["right"]))
    return (int(node["feature_idx"]), round(float(node["num_threshold"]), 6), low, high)


def _parts(examples: Sequence[Example], seed: int, count: int) -> list[int]:
    """The part of each page, each kind spread over all, each site in one."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)
    of_site: dict[str, int] = {}
    seen: dict[str, int] = defaultdict(int)
    for i in order:
        row = examples[i].row
        of_site.setdefault(urlsplit(row["url"]).netloc, seen[row["type"]] % count)
        seen[row["type"]] += 1
    return [of_site[urlsplit(example.row["url"]).netloc] for example in examples]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extraction_fit", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, default=SET)
    parser.add_argument("--check", action="store_true", help="fit on a part, score the rest")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="fit on all pages and replace the weights")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
