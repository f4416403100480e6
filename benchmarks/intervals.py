"""Confidence intervals of a sample's figures: `rag.evaluation.statistics`, and additions for benchmarks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rag.evaluation.statistics import (
    ROUNDS,
    Estimate,
    Figures,
    Weights,
    auroc,
    bootstrap_weights,
    estimate,
    mean,
    share,
)

__all__ = [
    "ROUNDS",
    "Estimate",
    "Figures",
    "auroc",
    "bootstrap_weights",
    "estimate",
    "format_mean",
    "mean",
    "mean_recall",
]


def mean_recall(weights: Weights, wrong: ArrayLike, flagged: ArrayLike) -> Figures:
    """Return the balanced accuracy: the mean of recall on the wrong units and specificity on the others."""
    bad, flags = np.asarray(wrong, dtype=float), np.asarray(flagged, dtype=float)
    recall = share(weights @ (bad * flags), weights @ bad)
    specificity = share(weights @ ((1 - bad) * (1 - flags)), weights @ (1 - bad))
    return (recall + specificity) / 2


def format_mean(values: Sequence[float], groups: Sequence[Hashable] = (), *, signed: bool = False) -> str:
    """Format the mean with its interval, for a table: `0.746 (0.690 to 0.800)`."""
    mean_estimate = estimate(mean(bootstrap_weights(groups or range(len(values))), values))
    return format(mean_estimate, "+" if signed else "")
