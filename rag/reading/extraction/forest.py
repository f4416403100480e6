"""The fitted judge of blocks: a sum of small decision trees, turned into a probability.

Gradient boosting (Friedman 2001, https://doi.org/10.1214/aos/1013203451), fitted by
`python -m benchmarks.extraction_fit` and kept as text beside this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
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

    def probability(self, row: Sequence[float]) -> float:
        """How likely a block with these features belongs to the page's own text, from 0 to 1."""
        total = self.start
        for node in self.trees:
            while type(node) is tuple:
                column, threshold, low, high = node
                node = low if row[column] <= threshold else high
            total += node  # type: ignore[operator]
        return 1.0 / (1.0 + math.exp(-total))


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
