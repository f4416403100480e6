"""Forward passes, on small models with random weights, in which precision they are made, and callers that share one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rag.models.engines import Embedder, Rows, Scorer, Together, choose, sigmoid
from rag.models.tokens import Batch, padded

SAMPLE = padded([[1, 2, 3]], 0, 8)
EXACT: Rows = np.array([[1.0, 0.0]], dtype=np.float32)
WRONG: Rows = np.array([[0.0, 1.0]], dtype=np.float32)


SHAPE = {
    "vocab_size": 90,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "initializer_range": 0.2,
}
KINDS = ("bert", "xlm-roberta", "roberta")


def _config(kind: str, **more: Any) -> Any:
    from transformers import AutoConfig

    pad = 0 if kind == "bert" else 1
    return AutoConfig.for_model(kind, **{**SHAPE, "pad_token_id": pad, "num_labels": 1, **more})


def _built(auto: str, kind: str, **more: Any) -> Any:
    import torch
    import transformers

    with torch.random.fork_rng():
        torch.manual_seed(3)
        return getattr(transformers, auto).from_config(_config(kind, **more)).eval()


def _batch(kind: str, lengths: tuple[int, ...] = (23, 17, 5, 1)) -> Batch:
    rng = np.random.default_rng(5)
    rows = [rng.integers(5, SHAPE["vocab_size"], size=length).tolist() for length in lengths]
    return padded(rows, 0 if kind == "bert" else 1, 64)


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_pooled_vectors_in_half_precision_are_those_of_float32(pooling: Any) -> None:
    engine, batch = Embedder(_built("AutoModel", "xlm-roberta"), pooling, "cpu"), _batch("xlm-roberta")
    expected = engine.forward(half=False)(batch)
    halved = engine.forward(half=True)(batch)
    assert engine.close(expected, halved)
    assert not engine.close(expected, expected[::-1])


def test_padding_changes_no_vector() -> None:
    engine = Embedder(_built("AutoModel", "bert"), "mean", "cpu")
    forward, batch = engine.forward(half=False), _batch("bert")
    together = forward(batch)
    for row, length in enumerate(batch.lengths):
        alone = forward(padded([batch.ids[row, :length].tolist()], 0, 64))
        assert np.allclose(together[row], alone[0], atol=1e-5)


def test_half_linears_are_put_back() -> None:
    engine, batch = Embedder(_built("AutoModel", "bert"), "mean", "cpu"), _batch("bert")
    before = engine.forward(half=False)(batch)
    halved = engine.forward(half=True)(batch)
    assert (before * halved).sum(axis=1).min() > 0.99
    assert (before == engine.forward(half=False)(batch)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cross_encoders_scores_in_half_precision_are_those_of_float32(kind: str) -> None:
    engine, batch = Scorer(_built("AutoModelForSequenceClassification", kind), "cpu"), _batch(kind)
    expected = engine.forward(half=False)(batch)
    assert np.abs(engine.forward(half=True)(batch) - expected).max() < 0.1
    assert np.ptp(sigmoid(expected)) > 0.05, "texts must differ for the comparison to say anything"
    assert not engine.close(expected, expected + 1)


class FakeEngine:
    """Its passes give their rows."""

    def __init__(self, halved: Rows) -> None:
        self.halved = halved
        self.made: list[bool] = []

    def forward(self, *, half: bool) -> Callable[[Batch], Rows]:
        self.made.append(half)
        return lambda batch: self.halved if half else EXACT

    def close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum() > 0.999)


@pytest.mark.parametrize(
    ("half", "halved", "precision"),
    [(True, EXACT, "bfloat16"), (True, WRONG, "float32"), (False, EXACT, "float32")],
)
def test_half_precision_is_taken_where_it_gives_the_same(half: bool, halved: Rows, precision: str) -> None:
    engine = FakeEngine(halved)
    forward, found = choose(engine, SAMPLE, half=half, run=lambda work: work())
    assert found == precision
    assert engine.made[-1] is (precision == "bfloat16"), "the weights stay as the last pass needs them"
    assert (forward(SAMPLE) == EXACT).all()


def test_what_comes_in_while_the_thread_is_busy_goes_together() -> None:
    seen: list[list[int]] = []
    opened: list[Future[Sequence[int]]] = []
    began, go_on = threading.Event(), threading.Event()

    def work(items: Sequence[int]) -> list[int]:
        seen.append(list(items))
        began.set()
        go_on.wait(60)
        return [item * 10 for item in items]

    def submit(group: Callable[[], Sequence[int]]) -> Future[Sequence[int]]:
        opened.append(thread.submit(group))
        return opened[-1]

    with ThreadPoolExecutor(1) as thread, ThreadPoolExecutor(12) as callers:
        together = Together(work, submit, most=8)
        first = callers.submit(together.ask, 0)
        assert began.wait(60)
        rest = [callers.submit(together.ask, number) for number in range(1, 12)]
        while len(opened) < 3 or together._open is None or len(together._open.items) < 3:
            time.sleep(0.001)  # until all eleven stand in two groups, the second of three
        go_on.set()
        assert [future.result() for future in (first, *rest)] == [number * 10 for number in range(12)]
    assert [len(items) for items in seen] == [1, 8, 3]


def test_one_after_the_other_each_goes_alone() -> None:
    seen: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        seen.append(len(items))
        return list(items)

    with ThreadPoolExecutor(1) as thread:
        together = Together(work, thread.submit, most=8)
        assert [together.ask(number) for number in range(3)] == [0, 1, 2]
    assert seen == [1, 1, 1]


def test_what_goes_wrong_is_told_and_forgotten() -> None:
    def work(items: Sequence[int]) -> list[float]:
        return [1 / item for item in items]

    with ThreadPoolExecutor(1) as thread:
        together = Together(work, thread.submit, most=8)
        with pytest.raises(ZeroDivisionError):
            together.ask(0)
        assert together.ask(2) == 0.5
