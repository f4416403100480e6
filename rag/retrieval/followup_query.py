"""Queries for follow-ups, which include the words of earlier questions, with less weight the longer the follow-up is.

The question stays unchanged, and no word list decides whether it needs the others. Tuned on CAsT 2021 and on questions
after a change of subject (benchmarks.followups); see docs/decisions/0010-conversations-and-roles.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rag.models.embedding import EmbeddingModel
from rag.models.sparse import LexicalHead, SparseEncoder
from rag.types import SparseVector

HALF_WEIGHT_TERMS: Final = 4.0
"""Number of terms of a question at which the one before it gets half its weight."""
DECAY: Final = 0.5
"""Weight of each earlier question relative to the one after it."""
MAX_TURNS: Final = 4


def term_weights(question: str, before: Sequence[str], encoder: SparseEncoder) -> dict[int, float]:
    """Return the terms of the question, at 1, and of those `before` it, oldest first; a term has its largest weight."""
    weights = dict.fromkeys(encoder.encode_query(question).indices, 1.0)
    for earlier, weight in _weights_of(before, len(weights)):
        for term in encoder.encode_query(earlier).indices:
            weights.setdefault(term, weight)
    return weights


def sparse_query(question: str, before: Sequence[str], encoder: SparseEncoder) -> SparseVector:
    weights = term_weights(question, before, encoder)
    return SparseVector(list(weights), list(weights.values()))


def learned_query(
    question: str,
    before: Sequence[str],
    head: LexicalHead,
    encoder: SparseEncoder,
    idf: Callable[[Sequence[int]], Mapping[int, float]],
) -> SparseVector:
    """Return the learned terms of the question and of those `before` it; a term's largest weight counts.

    Weights are divided by `idf`, since the engine multiplies by it, and learned weights already include rarity.
    """
    earlier = _weights_of(before, len(encoder.encode_query(question).indices))
    texts = [(question, 1.0), *earlier]
    weights: dict[int, float] = {}
    for vector, (_, share) in zip(head.encode([text for text, _ in texts]), texts, strict=True):
        for term, value in zip(vector.indices, vector.values, strict=True):
            weights[term] = max(share * value, weights.get(term, 0.0))
    rarity = idf(sorted(weights))
    return SparseVector(list(weights), [value / rarity[term] for term, value in weights.items()])


def dense_query(
    question: str, before: Sequence[str], model: EmbeddingModel, encoder: SparseEncoder
) -> NDArray[np.float32]:
    """Return the normalised weighted sum of the questions' vectors, (d,), except those that the model cannot read."""
    vector = model.encode_query(question)
    for earlier, weight in _weights_of(before, len(encoder.encode_query(question).indices)):
        if model.can_read(earlier):
            vector = vector + np.float32(weight) * model.encode_query(earlier)
    unit: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return unit


def _weights_of(before: Sequence[str], terms: int) -> list[tuple[str, float]]:
    """Return the last questions, latest first, with their weights relative to a question with `terms` terms."""
    latest = HALF_WEIGHT_TERMS / (HALF_WEIGHT_TERMS + terms)
    return [(earlier, latest * DECAY**turn) for turn, earlier in enumerate(reversed(before[-MAX_TURNS:]))]
