"""Embedding models and rerankers by URL, with real servers that have the APIs and the faults of services."""

from __future__ import annotations

import http.client
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from rag.errors import ModelError
from rag.models.service import _MAX_ATTEMPTS, _PROBE_SECONDS, Scale, Service, ServiceEncoder, ServiceReranker, is_same
from rag.models.transformer import hash_characters
from tests.support.model_server import ModelServer, Shape, hash_texts, logits

TEXTS = [f"the bridge number {number} of the town" for number in range(150)]


def encoder(server: ModelServer, model: str = "m", *, seconds: float = 2.0, key: str = "") -> ServiceEncoder:
    service = Service(server.url, key, "EMBEDDING_BASE_URL")
    return ServiceEncoder(service, model, seconds=seconds, static=hash_characters)


def unit(texts: list[str], **how: Any) -> np.ndarray:
    rows = np.array(hash_texts(texts, **how), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("shape", ["openai", "tei"])
def test_vectors_are_those_of_their_texts_in_any_order(shape: Shape) -> None:
    with ModelServer(shape) as server:
        model = encoder(server)
        assert np.allclose(model.encode_passages(TEXTS), unit(TEXTS), atol=1e-6)
        assert np.allclose(model.encode_query(TEXTS[0]), unit(TEXTS[:1])[0], atol=1e-6)
        sent = len(server.requests)
        assert (model.dimension, model.encode_query(TEXTS[0]).shape) == (64, (64,))
        assert len(server.requests) == sent  # both are cached
        assert model.encode_passages([]).shape == (0, 64)


@pytest.mark.parametrize("text", ["", "   ", "\x00", "broken \ud800", "🙂" * 50, "x" * 20_000])
def test_odd_texts_have_vectors(text: str) -> None:
    with ModelServer("openai", max_characters=8_000) as server:
        assert np.linalg.norm(encoder(server).encode_passages([text])[0]) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-small", "query: a", "passage: b"),
        ("bge-m3:latest", "a", "b"),
        ("BAAI/bge-small-zh-v1.5", "为这个句子生成表示以用于检索相关文章：a", "b"),
        ("text-embedding-3-small", "a", "b"),
    ],
)
def test_prefixes_are_those_of_the_family(model: str, query: str, passage: str) -> None:
    with ModelServer("openai") as server:
        asked = encoder(server, model)
        asked.encode_query("a")
        asked.encode_passages(["b"])
        assert [request["input"] for request in server.requests[1:]] == [[query], [passage]]
        assert server.requests[0]["model"] == model


def test_batches_shrink_to_what_the_service_takes() -> None:
    with ModelServer("tei", max_texts=10) as server:
        model = encoder(server)
        assert np.allclose(model.encode_passages(TEXTS), unit(TEXTS), atol=1e-6)
        server.requests.clear()
        model.encode_passages(TEXTS)
        assert max(len(request["inputs"]) for request in server.requests) <= 10


def test_one_long_text_is_cut_and_others_stay_together() -> None:
    with ModelServer("openai", max_characters=500) as server:
        model = encoder(server)
        found = model.encode_passages([*TEXTS[:20], "word " * 300, *TEXTS[20:40]])
        assert np.allclose(np.delete(found, 20, axis=0), unit(TEXTS[:40]), atol=1e-6)
        server.requests.clear()
        model.encode_passages(TEXTS[:60])
        assert [len(request["input"]) for request in server.requests] == [60]


@pytest.mark.parametrize("fault", [429, 500, 503, (429, "0"), (503, "Wed, 21 Oct 2015 07:28:00 GMT")])
def test_passing_failures_are_repeated(fault: int | tuple[int, str]) -> None:
    with ModelServer("openai") as server:
        model = encoder(server)
        assert model.dimension == 64
        server.faults = [fault, fault]
        assert len(model.encode_passages(TEXTS[:2])) == 2
        assert len(server.requests) == 4


def test_a_service_that_asks_for_too_long_a_wait_is_not_waited_for() -> None:
    with ModelServer("openai") as server:
        model = encoder(server)
        assert model.dimension == 64
        server.faults, began = [(429, "60")], time.monotonic()
        assert fails(lambda: model.encode_query("a")) == "service_busy"
        assert time.monotonic() - began < 1.0


def test_a_silent_service_is_waited_for_once() -> None:
    with ModelServer("tei") as server:
        model = encoder(server, seconds=0.4)
        server.delay, began = 30.0, time.monotonic()
        assert fails(lambda: model.encode_query("a")) == "service_timeout"
        assert fails(lambda: model.encode_query("b")) == "service_timeout"
        assert time.monotonic() - began < 1.0


def test_an_import_asks_a_service_again_that_just_failed_a_question() -> None:
    with ModelServer("openai") as server:
        model = encoder(server, seconds=_PROBE_SECONDS)
        server.faults = [500] * _MAX_ATTEMPTS
        assert fails(lambda: model.encode_query("a")) == "service_failed"
        sent = len(server.requests)
        assert fails(lambda: model.encode_query("a")) == "service_failed"
        assert len(server.requests) == sent
        assert model.dimension == 64


def fails(call: Callable[[], object]) -> str:
    with pytest.raises(ModelError) as caught:
        call()
    return caught.value.code


NOT_FINITE = [[float("nan")] * 64]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({"data": [{"index": 0, "embedding": NOT_FINITE[0]}]}, "service_not_finite"),
        ({"data": [{"index": 0, "embedding": [0.0] * 64}]}, "service_not_finite"),
        ({"data": [{"index": 0, "embedding": [1.0] * 32}]}, "service_dimension"),
        ({"data": []}, "service_unusable"),
        ({"data": [{"index": 7, "embedding": [1.0] * 64}]}, "service_unusable"),
        ({"data": [{"index": 0, "embedding": "text"}]}, "service_unusable"),
        ({"object": "list"}, "service_unusable"),
        ("text", "service_unusable"),
        ([], "service_unusable"),
    ],
)
def test_a_reply_of_another_kind_is_refused(reply: Any, code: str) -> None:
    with ModelServer("openai") as server:
        model = encoder(server)
        assert model.dimension == 64
        server.transform = lambda _: reply
        assert fails(lambda: model.encode_passages(["a"])) == code


def test_a_wrong_key_a_wrong_address_and_nobody_there() -> None:
    with ModelServer("openai", key="secret") as server:
        assert fails(lambda: encoder(server).dimension) == "service_wrong_key"
        assert encoder(server, key="secret").dimension == 64
    assert fails(lambda: encoder(server).dimension) == "service_unreachable"
    with ModelServer("cohere") as server:
        assert fails(lambda: encoder(server).dimension) == "service_wrong_address"


def test_another_model_of_the_same_dimension_has_another_fingerprint() -> None:
    with ModelServer("tei") as server:
        first = encoder(server).fingerprint()
        noise = np.random.default_rng(0).normal(0, 1e-4, 64)
        server.encode = lambda texts: (np.array(hash_texts(texts)) + noise).tolist()
        assert is_same(first, encoder(server).fingerprint())
        server.encode = lambda texts: hash_texts(texts, seed=1)
        assert not is_same(first, encoder(server).fingerprint())
        server.encode = lambda texts: hash_texts(texts, dimension=48)
        assert not is_same(first, encoder(server).fingerprint())


def test_it_costs_little_beside_the_service() -> None:
    with ModelServer("openai") as server:
        model = encoder(server)
        assert model.dimension == 64
        bare = http.client.HTTPConnection("127.0.0.1", server.port)
        ours, theirs = [], []
        for number in range(40):
            began = time.perf_counter()
            model.encode_query(f"question {number}")
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            bare.request("POST", "/v1/embeddings", json.dumps({"model": "m", "input": [f"question {number}"]}))
            assert bare.getresponse().read()
            theirs.append(time.perf_counter() - began)
        bare.close()
        assert statistics.median(ours) - statistics.median(theirs) < 0.010


QUESTION = "who opened the bridge"
PASSAGES = ["a bridge", "the mayor opened the bridge", "bread and salt"]


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
                assert model.scores(QUESTION, PASSAGES) == pytest.approx(probabilities(QUESTION, PASSAGES))
                assert noted == [scale]
            assert server.requests[-2]["query"] == server.requests[-1]["query"] == QUESTION  # probed once


def test_a_scale_that_was_decided_counts_for_ever() -> None:
    with ModelServer("cohere", score=lambda question, texts: [0.5 + 0.1 * len(text) for text in texts]) as server:
        assert fails(lambda: reranker(server, "probabilities").scores(QUESTION, PASSAGES)) == "reranker_scale"
        assert reranker(server, "logits").scores(QUESTION, ["", "a"]) == pytest.approx([0.6225, 0.6457], abs=1e-3)


def test_one_that_ranks_the_answer_last_is_refused() -> None:
    with ModelServer("cohere", score=lambda question, texts: [-one for one in logits(question, texts)]) as server:
        assert fails(lambda: reranker(server).scores(QUESTION, PASSAGES)) == "reranker_wrong_order"


def test_batches_are_as_small_as_the_service_wants() -> None:
    texts = [f"text {number} of the bridge" for number in range(40)]
    with ModelServer("tei", max_texts=16) as server:
        found = reranker(server).scores(QUESTION, texts)
        assert found == pytest.approx(probabilities(QUESTION, texts))


def test_what_a_service_leaves_out_is_not_reached() -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        server.transform = lambda reply: {"results": reply["results"][:1]}
        assert [score is None for score in model.scores(QUESTION, PASSAGES)] == [True, False, True]


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
def test_scores_of_another_kind_are_refused(reply: Any, code: str) -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        model.scores(QUESTION, PASSAGES)
        server.transform = lambda _: reply
        assert fails(lambda: model.scores(QUESTION, PASSAGES)) == code


def test_a_slow_one_is_given_up_in_time() -> None:
    with ModelServer("cohere") as server:
        model = reranker(server, "logits")
        model.scores(QUESTION, PASSAGES)
        server.delay, began = 30.0, time.monotonic()
        assert fails(lambda: model.scores(QUESTION, PASSAGES, seconds=0.3)) == "service_timeout"
        assert time.monotonic() - began < 1.0
