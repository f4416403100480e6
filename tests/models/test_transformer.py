"""Our forward pass compared with transformers', on small models with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rag.models import transformer as module
from rag.models.transformer import Batch, Embedders, EncoderPass, Linear, Scorers, can_run, pad_rows, sigmoid

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
    return pad_rows(rows, 0 if kind == "bert" else 1, 64)


def _hidden(model: Any, batch: Batch) -> Any:
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
    batch = Batch(plain.ids, plain.lengths, (np.arange(plain.ids.shape[1]) % 2 + 0 * plain.ids).astype(np.int64))
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
