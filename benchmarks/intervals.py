"""How far a figure of a sample can be trusted: see `rag.evaluation.statistics`, and what benchmarks need beside it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rag.evaluation.statistics import ROUNDS, Estimate, Figures, Weights, auroc, draws, estimate, mean, share

__all__ = ["ROUNDS", "Estimate", "Figures", "auroc", "balanced", "draws", "estimate", "mean", "told"]


def balanced(weights: Weights, wrong: ArrayLike, flagged: ArrayLike) -> Figures:
    """The mean of the share of the wrong that is flagged, and of the others that is not."""
    bad, marked = np.asarray(wrong, dtype=float), np.asarray(flagged, dtype=float)
    recall = share(weights @ (bad * marked), weights @ bad)
    spared = share(weights @ ((1 - bad) * (1 - marked)), weights @ (1 - bad))
    return (recall + spared) / 2


def told(values: Sequence[float], groups: Sequence[Hashable] = (), *, signed: bool = False) -> str:
    """The mean with its interval, for a table: `0.746 (0.690 to 0.800)`."""
    found = estimate(mean(draws(groups or range(len(values))), values))
    return format(found, "+" if signed else "")
