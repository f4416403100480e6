"""The operator's search settings take effect."""

from __future__ import annotations

from typing import Any

import pytest

from rag.app import tuning_of
from rag.config import load_settings
from rag.errors import ConfigError
from rag.ingest.chunking import CHUNKERS, get_chunker
from rag.models.transformer import hash_characters
from rag.retrieval.strategies import Rerank, SearchRequest, Tuning, fuse_by_score
from rag.store.values import reciprocal_rank_fusion
from rag.text import weigh
from tests.retrieval.strategies.test_rerank import WordReranker

LEGS = {"dense": {"a": 1.0, "b": 0.5}, "sparse": {"b": 8.0, "a": 2.0}}


def test_every_setting_has_its_place() -> None:
    settings = load_settings(
        None, dense_weight=0.9, sparse_weight=0.3, rrf_k=60, fetch_k=80, pre_ranker="rrf", pre_top_k=7,
        context_characters=900,
    )  # fmt: skip
    assert tuning_of(settings) == Tuning(0.9, 0.3, 60, 80, "rrf", 7, 900)
    assert tuning_of(load_settings(None)) == Tuning()


def test_what_matters_is_one_weight_beside_the_other() -> None:
    assert fuse_by_score(LEGS, 0.9, 0.3) == pytest.approx(fuse_by_score(LEGS, 0.75, 0.25))
    alone = fuse_by_score(LEGS, 0.0, 1.0)
    assert max(alone, key=alone.__getitem__) == "b"
    with pytest.raises(ConfigError, match="DENSE_WEIGHT"):
        load_settings(None, dense_weight=0, sparse_weight=0)


def test_a_large_constant_evens_out_the_ranks() -> None:
    legs = {"dense": {"a": 9.0, "b": 8.0, "c": 7.0}, "sparse": {"b": 3.0, "c": 2.0, "a": 1.0}}
    sharp, even = reciprocal_rank_fusion(legs, 1), reciprocal_rank_fusion(legs, 60)
    assert sharp["b"] / sharp["c"] > even["b"] / even["c"] > 1.0


@pytest.mark.parametrize("pre_ranker", ["weighted", "rrf"])
def test_a_model_reads_as_many_candidates_as_are_set(engine: Any, pre_ranker: Any) -> None:
    reranker = WordReranker("lanes")
    request = SearchRequest("harbour ferry tea", tuning=Tuning(pre_ranker=pre_ranker, pre_top_k=2))
    found = Rerank().find(request, engine(reranker=reranker))
    assert len(reranker.texts) == len(found.hits) == 2


@pytest.mark.parametrize("name", CHUNKERS)
def test_no_chunk_is_larger_than_is_set(name: str) -> None:
    text = "\n\n".join(f"Ship {n} came in with oil and rope. It left with salt in its hold." for n in range(60))
    chunks = get_chunker(name, 300).split(text, hash_characters)
    assert len(chunks) > 10 and max(weigh(chunk.text) for chunk in chunks) <= 300
