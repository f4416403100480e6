"""Rerankers by URL, with real servers that have the APIs of several services."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from rag.errors import ModelError
from rag.models.service import Scale, Service, ServiceReranker
from tests.support.model_server import ModelServer, Shape, logits

QUESTION = "who opened the bridge"
TEXTS = ["a bridge", "the mayor opened the bridge", "bread and salt"]


def reranker(server: ModelServer, scale: Scale = "", noted: list[Scale] | None = None) -> ServiceReranker:
    service = Service(server.url, "", "RERANKER_BASE_URL")
    return ServiceReranker(service, "m", scale, (noted if noted is not None else []).append)


def probabilities(question: str, texts: Sequence[str]) -> list[float]:
    return [1 / (1 + math.exp(-score)) for score in logits(question, texts)]


@pytest.mark.parametrize("shape", ["cohere", "tei", "voyage"])
def test_logits_become_probabilities_and_probabilities_stay(shape: Shape) -> None:
    for score, scale in ((logits, "logits"), (probabilities, "probabilities")):
        noted: list[Scale] = []
        with ModelServer(shape, score=score) as server:
            model = reranker(server, noted=noted)
            for _ in range(2):
                assert model.scores(QUESTION, TEXTS) == pytest.approx(probabilities(QUESTION, TEXTS))
                assert noted == [scale]
            assert server.requests[-2]["query"] == server.requests[-1]["query"] == QUESTION  # probed once


def test_a_scale_that_was_decided_counts_for_ever() -> None:
    with ModelServer("cohere", score=lambda question, texts: [0.5 + 0.1 * len(text) for text in texts]) as server:
        with pytest.raises(ModelError) as caught:
            reranker(server, "probabilities").scores(QUESTION, TEXTS)
        assert caught.value.code == "reranker_scale"
        assert reranker(server, "logits").scores(QUESTION, ["", "a"]) == pytest.approx([0.6225, 0.6457], abs=1e-3)


def test_one_that_ranks_the_answer_last_is_refused() -> None:
    with ModelServer("cohere", score=lambda question, texts: [-one for one in logits(question, texts)]) as server:
        with pytest.raises(ModelError) as caught:
            reranker(server).scores(QUESTION, TEXTS)
        assert caught.value.code == "reranker_wrong_order"


def test_batches_are_as_small_as_the_service_wants() -> None:
    texts = [f"text {number} of the bridge" for number in range(40)]
    with ModelServer("tei", max_texts=16) as server:
        found = reranker(server).scores(QUESTION, texts)
        assert found == pytest.approx(probabilities(QUESTION, texts))


def test_what_a_service_leaves_out_is_not_reached() -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        server.transform = lambda reply: {"results": reply["results"][:1]}
        assert [score is None for score in model.scores(QUESTION, TEXTS)] == [True, False, True]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({"results": [{"index": 0, "relevance_score": float("nan")}]}, "service_not_finite"),
        ({"results": [{"index": 5, "relevance_score": 1.0}]}, "service_unusable"),
        ({"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}, "service_unusable"),
        ({"results": []}, "service_unusable"),
        ({"error": "no"}, "service_unusable"),
        ("text", "service_unusable"),
    ],
)
def test_a_reply_of_another_kind_is_refused(reply: Any, code: str) -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        model.scores(QUESTION, TEXTS)
        server.transform = lambda _: reply
        with pytest.raises(ModelError) as caught:
            model.scores(QUESTION, TEXTS)
        assert caught.value.code == code


def test_a_slow_one_is_given_up_in_time() -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        model.scores(QUESTION, TEXTS)
        server.delay, began = 30.0, time.monotonic()
        with pytest.raises(ModelError) as caught:
            model.scores(QUESTION, TEXTS, seconds=0.3)
        assert (caught.value.code, time.monotonic() - began < 1.0) == ("service_timeout", True)
