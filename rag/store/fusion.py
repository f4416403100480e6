"""How the answers of a search's legs become one ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from rag.types import SparseVector

Legs = Mapping[str, Mapping[str, float]]  # leg -> point id -> score
Fusion = Callable[[Legs], Mapping[str, float]]  # the legs' answers -> point id -> fused score
Query = tuple[NDArray[np.float32] | None, SparseVector | None]  # what the dense and the sparse leg are asked

RRF_K = 2  # Qdrant's default; ranks count from 0


def reciprocal_rank_fusion(legs: Legs, k: float = RRF_K) -> dict[str, float]:
    """The sum of 1 / (k + rank), ranks from 0 (Cormack et al., SIGIR 2009). One leg keeps its own scores."""
    if len(legs) == 1:
        return dict(next(iter(legs.values())))
    fused: dict[str, float] = {}
    for scores in legs.values():
        for rank, found in enumerate(best_first(scores)):
            fused[found] = fused.get(found, 0.0) + 1.0 / (k + rank)
    return fused


def best_first(scores: Mapping[str, float]) -> list[str]:
    """The ids, those of equal scores by themselves."""
    by_id = sorted(scores)
    by_id.sort(key=scores.__getitem__, reverse=True)  # stable: equal scores stay in the order of their ids
    return by_id
