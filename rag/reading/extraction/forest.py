"""The fitted classifier of blocks: a sum of small decision trees, turned into a probability.

Gradient boosting (Friedman 2001, https://doi.org/10.1214/aos/1013203451), fitted by
`python -m benchmarks.extraction_fit` and stored as text next to this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from rag.reading.extraction.features import NAMES

WEIGHTS = Path(__file__).with_name("weights.json")
# A leaf is its value; a fork is (column, threshold, branch up to it, branch above it).
Node = float | tuple[int, float, "Node", "Node"]


class Forest:
    """Decision trees over the columns of `rag.reading.extraction.features.NAMES`."""

    def __init__(self, start: float, trees: Sequence[Node]) -> None:
        self.start = start
        self.trees = tuple(trees)
        self._score = _compile(start, self.trees)

    def probability(self, row: Sequence[float]) -> float:
        """Return how likely a block with these features belongs to the main text, from 0 to 1."""
        return 1.0 / (1.0 + math.exp(-self._score(row)))


def _compile(start: float, trees: Sequence[Node]) -> Callable[[Sequence[float]], float]:
    """Compile the sum of the trees: a page has hundreds of blocks, and walking tuples takes twice the time."""
    lines = ["def score(row):", f"    total = {float(start)!r}", *(f"    total += {_express(tree)}" for tree in trees)]
    namespace: dict[str, Callable[[Sequence[float]], float]] = {}
    exec("\n".join([*lines, "    return total"]), namespace)  # only numbers, see `_parse_node`
    return namespace["score"]


def _express(node: Node) -> str:
    """Return a tree as a Python expression of `row`."""
    if not isinstance(node, tuple):
        return repr(float(node))
    column, threshold, low, high = node
    return f"({_express(low)} if row[{int(column)}] <= {float(threshold)!r} else {_express(high)})"


@cache
def load_forest() -> Forest:
    """Load the forest that is part of the program. Raises ValueError if it was fitted to other features."""
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    if weights["names"] != list(NAMES):
        raise ValueError("weights.json was fitted to other features: run python -m benchmarks.extraction_fit")
    return Forest(weights["start"], [_parse_node(tree) for tree in weights["trees"]])


def _parse_node(data: float | list) -> Node:  # type: ignore[type-arg]
    if not isinstance(data, list):
        return float(data)
    column, threshold, low, high = data
    return (int(column), float(threshold), _parse_node(low), _parse_node(high))
