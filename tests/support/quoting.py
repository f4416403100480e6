"""A quoter for tests: real terms and embeddings, the same IDF for every term."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rag.models.embedding import EmbeddingModel, SentenceModel, SparseEncoder, load_embedding_model
from rag.reasoning.extractive import ExtractiveReasoner


@cache
def builtin_model() -> EmbeddingModel:
    return load_embedding_model("builtin")


SENTENCES = SentenceModel(builtin_model)


def make_quoter(*, weight: float = 1.0) -> ExtractiveReasoner:
    def weights(terms: Sequence[int]) -> dict[int, float]:
        return dict.fromkeys(terms, weight)

    return ExtractiveReasoner(SparseEncoder(), weights, meaning=SENTENCES)
