"""Pagelight's forward pass of BERT and RoBERTa encoders: every BGE up to M3, E5, GTE, MiniLM, and BGE's rerankers.

This pass takes over nine tenths of the time of an import. In transformers on a CPU, a third of it is overhead: copies
of weights, casts between precisions, masks, calls. Here the weights are packed once (see `Linear`), query, key and
value are a single multiplication, and activations stay in one precision; operations accumulate in float32.

The architecture is that of Devlin et al. 2019, "BERT" (arXiv 1810.04805), after Vaswani et al. 2017, "Attention Is All
You Need" (arXiv 1706.03762). `engines.py` checks that a pass agrees with the loaded model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rag.models.model_files import read_json
from rag.models.tokens import Batch

_KINDS = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})


def can_run(body: Any) -> bool:
    """True if `body`, a model of transformers, has the architecture of this pass."""
    config = body.config
    return (
        config.model_type in _KINDS
        and config.hidden_act == "gelu"
        and getattr(config, "position_embedding_type", None) in (None, "absolute")
        and not getattr(config, "is_decoder", False)
        and hasattr(body, "embeddings")
        and hasattr(body, "encoder")
    )


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: Any
    bias: Any
    epsilon: float

    def __call__(self, x: Any) -> Any:
        import torch

        return torch.nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, slots=True)
class _Layer:
    attended: Linear  # to query, key and value
    joined: Linear
    norm: _Norm
    widened: Linear
    narrowed: Linear
    last_norm: _Norm


class EncoderPass:
    """A forward pass to the encoder's last hidden state. Safe to share between threads; CPU only."""

    def __init__(self, body: Any, *, half: bool) -> None:
        """Pack the weights of `body`, in bfloat16 if `half`; `body` is unchanged."""
        import torch

        config, embeddings = body.config, body.embeddings
        self._dtype = torch.bfloat16 if half else torch.float32
        self._heads: int = config.num_attention_heads
        self._width: int = config.hidden_size // self._heads
        self._words = embeddings.word_embeddings.weight.detach()
        # RoBERTa's positions begin after the padding id.
        first = 0 if config.model_type == "bert" else config.pad_token_id + 1
        self._positions = embeddings.position_embeddings.weight.detach()[first:].float()
        self._types = embeddings.token_type_embeddings.weight.detach().float()
        self._norm = _norm(embeddings.LayerNorm)
        self._layers = [self._pack_layer(layer) for layer in body.encoder.layer]

    def __call__(self, batch: Batch, *, first: bool = False) -> Any:
        """Return (n, tokens, d) in the pass's precision, or (n, d) for the first tokens only if `first`."""
        import torch

        n, tokens = batch.ids.shape
        mask = None
        if batch.lengths.min() < tokens:
            pads = torch.from_numpy(~batch.mask)
            mask = torch.zeros(pads.shape, dtype=self._dtype).masked_fill_(pads, float("-inf"))[:, None, None]
        hidden = self._embed(batch)
        for number, layer in enumerate(self._layers):
            rows = 1 if first and number == len(self._layers) - 1 else tokens
            attended = self._attend(layer.attended(hidden), mask, n, tokens, rows)
            if rows != tokens:
                hidden = hidden.view(n, tokens, -1)[:, 0].contiguous()
            hidden = layer.norm(layer.joined.plus(attended, hidden))
            hidden = layer.last_norm(layer.narrowed.plus(layer.widened.gelu(hidden), hidden))
        return hidden if first else hidden.view(n, tokens, -1)

    def _embed(self, batch: Batch) -> Any:
        """Return the embeddings, (n · tokens, d)."""
        import torch

        n, tokens = batch.ids.shape
        words = torch.nn.functional.embedding(torch.from_numpy(batch.ids), self._words).float()
        if batch.types is None:
            words += self._positions[:tokens] + self._types[0]
        else:
            words += self._positions[:tokens]
            words += torch.nn.functional.embedding(torch.from_numpy(batch.types), self._types)
        return self._norm(words).to(self._dtype).view(n * tokens, -1)

    def _attend(self, projections: Any, mask: Any, n: int, tokens: int, rows: int) -> Any:
        """Apply attention with torch's kernel: (n · tokens, 3 d) to (n · rows, d)."""
        import torch

        query, key, value = projections.view(n, tokens, 3, self._heads, self._width).permute(2, 0, 3, 1, 4)
        heads = torch.nn.functional.scaled_dot_product_attention(
            query[:, :, :rows], key, value, attn_mask=mask, scale=1.0
        )
        return heads.transpose(1, 2).reshape(n * rows, -1)

    def _pack_layer(self, layer: Any) -> _Layer:
        attention, output = layer.attention.self, layer.attention.output
        return _Layer(
            self._pack_attention(attention),
            Linear(output.dense.weight, output.dense.bias, self._dtype),
            _norm(output.LayerNorm),
            Linear(layer.intermediate.dense.weight, layer.intermediate.dense.bias, self._dtype),
            Linear(layer.output.dense.weight, layer.output.dense.bias, self._dtype),
            _norm(layer.output.LayerNorm),
        )

    def _pack_attention(self, attention: Any) -> Linear:
        """Pack query (with the scale 1/√width), key and value into one layer."""
        import torch

        scale = self._width**-0.5
        parts = (attention.query, scale), (attention.key, 1.0), (attention.value, 1.0)
        weights = [part.weight.detach().float() * factor for part, factor in parts]
        biases = [part.bias.detach().float() * factor for part, factor in parts]
        return Linear(torch.cat(weights), torch.cat(biases), self._dtype)


def _norm(norm: Any) -> _Norm:
    return _Norm(norm.weight.detach().float(), norm.bias.detach().float(), norm.eps)


class Linear:
    """A linear layer, y = activation(x Wᵀ + b), for x (tokens, inputs), W (outputs, inputs) and b (outputs,).

    oneDNN packs the weights once for the CPU, as in torch's freezing. Otherwise torch repacks them in every call, and
    multiplies float32 with MKL, which uses half of the vector width on AMD CPUs. On one core of an AMD EPYC with
    AVX-512: float32 250 GFLOP/s against 108, bfloat16 500 against 470 and, for the dozen tokens of a question, 340
    against 230.
    """

    def __init__(self, weight: Any, bias: Any, dtype: Any) -> None:
        import torch

        self._bias = bias.detach().to(dtype).contiguous()
        weight = weight.detach().to(dtype).contiguous()
        self._packed = can_pack(dtype)
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS) if self._packed else weight

    def __call__(self, x: Any) -> Any:
        import torch

        if self._packed:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return torch.nn.functional.linear(x, self._weight, self._bias)

    def gelu(self, x: Any) -> Any:
        """Return gelu(x Wᵀ + b), with the error function."""
        import torch

        if self._packed:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "gelu", [], "none")
        return torch.nn.functional.gelu(self(x))

    def plus(self, x: Any, other: Any) -> Any:
        """Return x Wᵀ + b + other, in one pass over the result."""
        import torch

        if self._packed:
            return torch.ops.mkldnn._linear_pointwise.binary(x, other, self._weight, self._bias, "add")
        return self(x) + other


# The layout is optimised for this number of tokens, about that of a batch; any other number works as well.
_ROWS = 512


@cache
def can_pack(dtype: Any) -> bool:
    """True if torch has oneDNN's packed layers for `dtype` on this processor, with correct results.

    bfloat16 needs AVX-512 or similar.
    """
    import torch

    if not torch._C._has_mkldnn:
        return False
    x, weight, bias = torch.ones(2, 16, dtype=dtype), torch.eye(16, dtype=dtype), torch.ones(16, dtype=dtype)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
        doubled = torch.ops.mkldnn._linear_pointwise.binary(x, x, packed, bias, "add")
        plain = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    except (RuntimeError, AttributeError, TypeError):  # NotImplementedError is a RuntimeError
        return False
    return bool(torch.equal(doubled, torch.full_like(x, 3.0)) and torch.equal(plain, torch.full_like(x, 2.0)))


def read_bert(folder: Path) -> Any:
    """Return `.model`, a tree of weights (as stored, on the CPU) that cannot be called, and `.tokenizer`.

    This avoids transformers, whose import takes two thirds of the time to load the built-in model. The files are
    trusted: their digest was verified when the folder was found.
    """
    from safetensors.torch import load_file

    config = read_json(folder / "config.json")
    model = SimpleNamespace(config=SimpleNamespace(**config))
    for name, weight in load_file(folder / "model.safetensors").items():
        *path, leaf = name.split(".")
        setattr(_node_at(model, path), leaf, weight)
    for node in _find_norms(model):
        node.eps = config["layer_norm_eps"]
    model.encoder.layer = [layer for _, layer in sorted(vars(model.encoder.layer).items(), key=lambda kv: int(kv[0]))]
    model.get_input_embeddings = lambda: model.embeddings.word_embeddings
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    tokens = read_json(folder / "tokenizer_config.json")
    ids = {f"{name}_token_id": tokenizer.token_to_id(tokens[f"{name}_token"]) for name in ("unk", "pad")}
    return SimpleNamespace(
        model=model, tokenizer=SimpleNamespace(backend_tokenizer=tokenizer, get_vocab=tokenizer.get_vocab, **ids)
    )


@cache
def _read_tokenizer(path: Path) -> Any:
    """Return the tokenizer in a file, cached for all models that use it: it takes longer to load than their weights."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(path))


def _node_at(root: Any, path: list[str]) -> Any:
    for name in path:
        if not hasattr(root, name):
            setattr(root, name, SimpleNamespace())
        root = getattr(root, name)
    return root


def _find_norms(node: Any) -> list[Any]:
    below = [(name, child) for name, child in vars(node).items() if isinstance(child, SimpleNamespace)]
    return [norm for name, child in below for norm in ([child] if name == "LayerNorm" else _find_norms(child))]
