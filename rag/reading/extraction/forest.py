"""The fitted judge of blocks: a sum of small decision trees, turned into a probability.

Gradient boosting (Friedman 2001, https://doi.org/10.1214/aos/1013203451), fitted by
`python -m benchmarks.extraction_fit` and kept as text beside this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from rag.reading.extraction.features import NAMES

WEIGHTS = Path(__file__).with_name("weights.json")
# A leaf is its value; a fork is (column, threshold, where it is not above, where it is).
Node = float | tuple[int, float, "Node", "Node"]


class Forest:
    """Trees over the columns of `rag.reading.extraction.features.NAMES`."""

    def __init__(self, start: float, trees: Sequence[Node]) -> None:
        self.start = start
        self.trees = tuple(trees)
        self._score = _compiled(start, self.trees)

    def probability(self, row: Sequence[float]) -> float:
        """How likely a block with these features belongs to the page's own text, from 0 to 1."""
        return 1.0 / (1.0 + math.exp(-self._score(row)))


def _compiled(start: float, trees: Sequence[Node]) -> Callable[[Sequence[float]], float]:
    """The sum of the trees as one function: a page has hundreds of blocks, and walking tuples takes twice the time."""
    lines = ["def score(row):", f"    total = {float(start)!r}", *(f"    total += {_written(tree)}" for tree in trees)]
    made: dict[str, Callable[[Sequence[float]], float]] = {}
    exec("\n".join([*lines, "    return total"]), made)  # numbers of our own, see `_node`
    return made["score"]


def _written(node: Node) -> str:
    """A tree as a Python expression of `row`."""
    if not isinstance(node, tuple):
        return repr(float(node))
    column, threshold, low, high = node
    return f"({_written(low)} if row[{int(column)}] <= {float(threshold)!r} else {_written(high)})"


@cache
def fitted() -> Forest:
    """The forest that comes with the program. Raises ValueError when it was fitted to other features."""
    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    if stored["names"] != list(NAMES):
        raise ValueError("weights.json was fitted to other features: run python -m benchmarks.extraction_fit")
    return Forest(stored["start"], [_node(tree) for tree in stored["trees"]])


def _node(stored: float | list) -> Node:  # type: ignore[type-arg]
    if not isinstance(stored, list):
        return float(stored)
    column, threshold, low, high = stored
    return (int(column), float(threshold), _node(low), _node(high))
