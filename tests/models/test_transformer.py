"""Our forward pass compared with transformers', the choice of a pass, batches, and models read from their files."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag.models import model_files
from rag.models import transformer as module
from rag.models.embedding import FlagEncoder
from rag.models.model_files import BUILTIN, MINILM, family_of, find_model, load_flag_model
from rag.models.transformer import (
    CallBatcher,
    Embedders,
    EncoderPass,
    Linear,
    Rows,
    Scorers,
    TokenBatch,
    Tokens,
    can_run,
    choose,
    group_by_length,
    pad_rows,
    read_bert,
    sigmoid,
    usable_positions,
)

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


def _batch(kind: str, lengths: tuple[int, ...] = (23, 17, 5, 1)) -> TokenBatch:
    rng = np.random.default_rng(5)
    rows = [rng.integers(5, SHAPE["vocab_size"], size=length).tolist() for length in lengths]
    return pad_rows(rows, 0 if kind == "bert" else 1, 64)


def _hidden(model: Any, batch: TokenBatch) -> Any:
    import torch

    given: dict[str, Any] = {"attention_mask": torch.from_numpy(batch.mask).long()}
    if batch.types is not None:
        given["token_type_ids"] = torch.from_numpy(batch.types)
    with torch.inference_mode():
        return model(input_ids=torch.from_numpy(batch.ids), **given).last_hidden_state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half", [False, True])
def test_it_gives_what_the_loaded_model_gives(kind: str, half: bool) -> None:
    import torch

    model, batch = _built("AutoModel", kind), _batch(kind)
    expected = _hidden(model, batch)
    with torch.inference_mode():
        found = EncoderPass(model, half=half)(batch).float()
        for row, length in enumerate(batch.lengths):
            cosines = torch.cosine_similarity(found[row, :length], expected[row, :length], dim=-1)
            assert float(cosines.min()) > (0.999 if half else 0.999999)
            if not half:
                assert torch.allclose(found[row, :length], expected[row, :length], atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_first_tokens_alone_are_the_same_as_among_all(kind: str) -> None:
    import torch

    model, batch = _built("AutoModel", kind), _batch(kind)
    with torch.inference_mode():
        for half, tolerance in ((False, 1e-5), (True, 0.05)):
            encode = EncoderPass(model, half=half)
            assert torch.allclose(encode(batch, first=True), encode(batch)[:, 0], atol=tolerance)


def test_one_text_without_padding_and_the_longest_text() -> None:
    import torch

    model = _built("AutoModel", "xlm-roberta")
    with torch.inference_mode():
        for lengths in ((8,), (3,), (64,), (64, 64)):
            batch = _batch("xlm-roberta", lengths)
            found, expected = EncoderPass(model, half=False)(batch), _hidden(model, batch)
            for row, length in enumerate(lengths):
                assert torch.allclose(found[row, :length], expected[row, :length], atol=1e-4)


def test_token_types_are_told_apart() -> None:
    import torch

    model, plain = _built("AutoModel", "bert"), _batch("bert")
    batch = TokenBatch(plain.ids, plain.lengths, (np.arange(plain.ids.shape[1]) % 2 + 0 * plain.ids).astype(np.int64))
    with torch.inference_mode():
        found = EncoderPass(model, half=False)(batch)
        assert torch.allclose(found[0, :23], _hidden(model, batch)[0, :23], atol=1e-4)
        assert not torch.allclose(found[0, :23], EncoderPass(model, half=False)(plain)[0, :23], atol=1e-2)


def test_scores_beyond_what_exp_holds_overflow_nothing() -> None:
    import torch

    model, batch = _built("AutoModel", "bert"), _batch("bert")
    with torch.no_grad():
        model.encoder.layer[0].attention.self.query.weight *= 4_000
    embed = Embedders(model, "mean", "cpu").native_pass(half=True)
    assert embed is not None
    vectors = embed(batch)
    assert np.isfinite(vectors).all()
    assert (vectors * Embedders(model, "mean", "cpu").loaded_pass(half=False)(batch)).sum(axis=1).min() > 0.98


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
@pytest.mark.parametrize("half", [False, True])
def test_pooled_vectors_are_the_loaded_models(pooling: Any, half: bool) -> None:
    engines = Embedders(_built("AutoModel", "xlm-roberta"), pooling, "cpu")
    batch = _batch("xlm-roberta")
    expected = engines.loaded_pass(half=False)(batch)
    own = engines.native_pass(half=half)
    assert own is not None
    assert (own(batch) * expected).sum(axis=1).min() > (0.999 if half else 0.999999)
    assert engines.are_close(expected, own(batch))
    assert not engines.are_close(expected, expected[::-1])


def test_half_linears_are_put_back() -> None:
    engines, batch = Embedders(_built("AutoModel", "bert"), "mean", "cpu"), _batch("bert")
    before = engines.loaded_pass(half=False)(batch)
    halved = engines.loaded_pass(half=True)(batch)
    assert (before * halved).sum(axis=1).min() > 0.99
    assert (before == engines.loaded_pass(half=False)(batch)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half", [False, True])
def test_a_cross_encoders_scores_are_the_loaded_models(kind: str, half: bool) -> None:
    model = _built("AutoModelForSequenceClassification", kind)
    batch, engines = _batch(kind), Scorers(model, "cpu")
    expected = engines.loaded_pass(half=False)(batch)
    own = engines.native_pass(half=half)
    assert own is not None
    assert np.abs(own(batch) - expected).max() < (0.1 if half else 1e-4)
    assert np.ptp(sigmoid(expected)) > 0.05, "texts must differ for the comparison to say anything"
    assert not engines.are_close(expected, expected + 1)


def test_other_shapes_are_left_to_the_loaded_model() -> None:
    assert can_run(_built("AutoModel", "bert"))
    assert not can_run(_built("AutoModel", "bert", hidden_act="relu"))
    assert not can_run(_built("AutoModel", "bert", is_decoder=True))
    other = _built("AutoModel", "electra", embedding_size=32)
    assert not can_run(other)
    assert Embedders(other, "mean", "cpu").native_pass(half=False) is None
    assert Embedders(_built("AutoModel", "bert"), "mean", "cuda:0").native_pass(half=False) is None


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("tokens", [1, 13, 700])
def test_it_is_a_linear_layer(monkeypatch: pytest.MonkeyPatch, packed: bool, tokens: int) -> None:
    import torch

    able = module.can_pack
    if packed and not able(torch.float32):
        pytest.skip("this build of torch has no packed layers")
    monkeypatch.setattr(module, "can_pack", lambda dtype: packed and able(dtype))
    make = torch.Generator().manual_seed(1)
    x, other = torch.randn(tokens, 32, generator=make), torch.randn(tokens, 48, generator=make)
    weight, bias = torch.randn(48, 32, generator=make), torch.randn(48, generator=make)
    plain = torch.nn.functional.linear(x, weight, bias)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.3)):
        layer = Linear(weight, bias, dtype)
        given = x.to(dtype)
        with torch.inference_mode():
            assert torch.allclose(layer(given).float(), plain, atol=tolerance)
            assert torch.allclose(layer.gelu(given).float(), torch.nn.functional.gelu(plain), atol=tolerance)
            assert torch.allclose(layer.plus(given, other.to(dtype)).float(), plain + other, atol=tolerance)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 500])
def test_each_text_is_in_one_group_and_groups_keep_to_the_budget(count: int, workers: int) -> None:
    rng = random.Random(count)
    lengths = [rng.randint(1, 256) for _ in range(count)]
    groups = group_by_length(lengths, 1024, workers)
    assert sorted(place for group in groups for place in group) == list(range(count))
    for group in groups:
        assert len(group) == 1 or max(lengths[place] for place in group) * len(group) <= 1024 * 1.25
    rectangles = sum(max(lengths[place] for place in group) * len(group) for group in groups)
    assert rectangles <= 1.15 * sum(lengths) + 256


def test_workers_get_the_same_work() -> None:
    groups = group_by_length([100] * 33, 1024, 2)
    assert len(groups) % 2 == 0 or len(groups[-1]) <= 3
    assert len(group_by_length([100] * 12, 1024, 2)) == 2
    assert len(group_by_length([5] * 12, 1024, 2)) == 1, "too little to share"


def test_a_long_text_goes_alone() -> None:
    assert group_by_length([4000, 3, 2], 1024, 1)[0] == [0]


def test_lengths_are_rounded_up_to_shared_ones_within_the_limit_of_the_model() -> None:
    batch = pad_rows([[1, 2, 3], [4]], 9, 62)
    assert batch.ids.tolist() == [[1, 2, 3, 9, 9, 9, 9, 9], [4, 9, 9, 9, 9, 9, 9, 9]]
    assert batch.mask.sum(axis=1).tolist() == batch.lengths.tolist() == [3, 1]
    assert pad_rows([[1] * 61], 9, 62).ids.shape == (1, 62)
    types = pad_rows([[1, 2], [3]], 9, 62, [[0, 1], [1]]).types
    assert types is not None
    assert types.tolist() == [[0, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(("positions", "has_unused", "usable"), [(514, True, 512), (512, False, 512), (None, True, 62)])
def test_positions_that_roberta_never_uses_are_subtracted(positions: int | None, has_unused: bool, usable: int) -> None:
    config = SimpleNamespace(max_position_embeddings=positions)
    assert usable_positions(config, 64, has_unused=has_unused) == usable


class Backend:
    """A tokenizer that counts how often it is configured."""

    def __init__(self, **truncation: Any) -> None:
        self.truncation: dict[str, Any] | None = truncation or None
        self.padding = None
        self.settings = 0

    def no_padding(self) -> None:
        self.settings += 1

    def enable_truncation(self, limit: int) -> None:
        self.truncation = {"max_length": limit, "stride": 0, "strategy": "longest_first", "direction": "right"}


@pytest.mark.parametrize("before", [{}, {"max_length": 9}, {"max_length": 8, "stride": 0, "direction": "left"}])
def test_a_shared_tokenizer_is_set_once(before: dict[str, Any]) -> None:
    """Configuring it while another thread encodes raises "Already borrowed"."""
    backend = Backend(**before)
    for _ in range(2):
        Tokens(SimpleNamespace(backend_tokenizer=backend), 8)
    assert backend.settings == 1
    assert backend.truncation == {"max_length": 8, "stride": 0, "strategy": "longest_first", "direction": "right"}


def test_the_models_of_a_folder_share_its_tokenizer() -> None:
    folder = find_model(BUILTIN).folder
    one, other = (read_bert(folder).tokenizer.backend_tokenizer for _ in range(2))
    assert one is other


SAMPLE = pad_rows([[1, 2, 3]], 0, 8)
EXACT: Rows = np.array([[1.0, 0.0]], dtype=np.float32)
WRONG: Rows = np.array([[0.0, 1.0]], dtype=np.float32)


class FakeEngines:
    """Engines whose passes return fixed rows."""

    def __init__(self, **passes: Rows) -> None:
        self.passes = passes
        self.asked: list[str] = []

    def native_pass(self, *, half: bool) -> Callable[[TokenBatch], Rows] | None:
        return (
            self._pass("native_half" if half else "native")
            if any(key.startswith("native") for key in self.passes)
            else None
        )

    def loaded_pass(self, *, half: bool) -> Callable[[TokenBatch], Rows]:
        return self._pass("loaded_half" if half else "loaded")

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum() > 0.999)

    def _pass(self, name: str) -> Callable[[TokenBatch], Rows]:
        def run(batch: TokenBatch) -> Rows:
            self.asked.append(name)
            return self.passes[name]

        return run


@pytest.mark.parametrize(
    ("half", "passes", "chosen"),
    [
        (True, {"native_half": EXACT, "native": EXACT}, ("native", True)),
        (True, {"native_half": WRONG, "native": EXACT}, ("native", False)),
        (True, {"native_half": WRONG, "native": WRONG, "loaded_half": EXACT}, ("loaded", True)),
        (True, {"native_half": WRONG, "native": WRONG, "loaded_half": WRONG}, ("loaded", False)),
        (True, {"loaded_half": EXACT}, ("loaded", True)),
        (False, {"native": EXACT}, ("native", False)),
        (False, {}, ("loaded", False)),
    ],
)
def test_the_first_that_is_close(half: bool, passes: dict[str, Rows], chosen: tuple[str, bool]) -> None:
    engines = FakeEngines(loaded=EXACT, **passes)
    forward, choice = choose(engines, SAMPLE, half=half, run=lambda work: work())
    assert (choice.kind, choice.half) == chosen
    assert engines.asked[0] == "loaded"
    assert all(engines.asked.count(name) == 1 for name in engines.asked)
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
        together = CallBatcher(work, submit, max_items=8)
        first = callers.submit(together.process, 0)
        assert began.wait(60)
        rest = [callers.submit(together.process, number) for number in range(1, 12)]
        while len(opened) < 3 or together._open is None or len(together._open.items) < 3:
            time.sleep(0.001)  # until all eleven are in two groups, the second of three
        go_on.set()
        assert [future.result() for future in (first, *rest)] == [number * 10 for number in range(12)]
    assert [len(items) for items in seen] == [1, 8, 3]


def test_one_after_the_other_each_goes_alone() -> None:
    seen: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        seen.append(len(items))
        return list(items)

    with ThreadPoolExecutor(1) as thread:
        together = CallBatcher(work, thread.submit, max_items=8)
        assert [together.process(number) for number in range(3)] == [0, 1, 2]
    assert seen == [1, 1, 1]


def test_what_goes_wrong_is_told_and_forgotten() -> None:
    def work(items: Sequence[int]) -> list[float]:
        return [1 / item for item in items]

    with ThreadPoolExecutor(1) as thread:
        together = CallBatcher(work, thread.submit, max_items=8)
        with pytest.raises(ZeroDivisionError):
            together.process(0)
        assert together.process(2) == 0.5


TEXTS = [
    "The lighthouse of Vik was built in 1910.",
    "café naïve, Ünïcode, ﬁ, İ, emoji 😀",
    "检索系统先找到段落。",
    "[CLS] [SEP] [UNK] [MASK] <mask>",
    " \n\ttabs\t",
    "word " * 600,
    "",
]


@pytest.mark.parametrize("name", [model_files.E5, MINILM])
def test_tokens_and_vectors_are_those_of_the_loaded_model(name: str) -> None:
    found = find_model(name)
    family = family_of(found.origin, found.folder)
    plain, loaded = (
        FlagEncoder(flag, family, name=name, device="cpu", exact=True)
        for flag in (read_bert(found.folder), load_flag_model(name, found.folder, family.pooling, "cpu"))
    )
    assert plain._tokens.encode(TEXTS) == loaded._tokens.encode(TEXTS)
    assert np.array_equal(plain._tokens.unreadable, loaded._tokens.unreadable)
    assert (plain.dimension, plain._max_tokens, plain._pad) == (loaded.dimension, loaded._max_tokens, loaded._pad)
    np.testing.assert_allclose(plain.encode_passages(TEXTS), loaded.encode_passages(TEXTS), atol=1e-5)
    np.testing.assert_allclose(plain.sentence_vectors(TEXTS), loaded.sentence_vectors(TEXTS), atol=1e-5)
