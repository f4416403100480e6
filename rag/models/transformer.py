"""Forward passes of BERT and RoBERTa encoders, by Pagelight or by the loaded model, over batches of token ids.

Pagelight's pass (Devlin et al. 2019, "BERT", arXiv 1810.04805, after Vaswani et al. 2017, "Attention Is All You Need",
arXiv 1706.03762) takes over nine tenths of the time of an import. In transformers on a CPU, a third of it is overhead:
copies of weights, casts between precisions, masks, calls. Here the weights are packed once (see `Linear`), query, key
and value are a single multiplication, and activations stay in one precision; operations accumulate in float32. It is
used only if it agrees with the loaded model.

Texts of similar length share a batch, which minimises padding. Concurrent calls share a batch; a single caller waits
for no others. Threads work on separate batches instead of sharing each operation. On two cores, two single-core threads
took 0.70 s, against 0.83 s by torch's parallelism, and 1.0 s against 4.4 s while other programs used the cores: nothing
waits at a barrier for a thread that is not running.
"""

from __future__ import annotations

import logging
import platform
import threading
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.models.model_files import Pooling, read_json
from rag.text import make_encodable

log = logging.getLogger(__name__)


# Lengths are rounded up to a multiple of this, since each new shape compiles kernels: about 0.3 ms per operation.
_STEP = 8
_MAX_TEXTS = 256
HASH_DIMENSION = 256
_UNUSED_POSITIONS = 2  # RoBERTa's positions begin after the padding id
_MIN_TOKENS = 128  # a smaller batch is not worth a thread


class Tokens:
    """A model's tokenizer with fixed settings, so that threads and models can share it.

    FlagEmbedding and transformers set truncation and padding at every call, which makes a Rust tokenizer that threads
    share raise "Already borrowed".
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._lock = threading.Lock()
        self.max_tokens = max_tokens
        if self._backend is not None and not _has_settings(self._backend, max_tokens):
            self._backend.no_padding()
            self._backend.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """Return the token ids of each text, truncated to `max_tokens`; with special tokens by default."""
        texts = [make_encodable(text) for text in texts]
        if self._backend is not None:
            return [item.ids for item in self._backend.encode_batch_fast(texts, add_special_tokens=special)]
        with self._lock:
            encoding = self._tokenizer(texts, truncation=True, max_length=self.max_tokens, add_special_tokens=special)
        return [list(ids) for ids in encoding["input_ids"]]

    @cached_property
    def unreadable(self) -> NDArray[np.bool_]:
        """A flag for each token id: True if the model cannot read its text. Reading the vocabulary takes half a second.

        These are the unknown token and tokens in scripts that are rare in the vocabulary: an English vocabulary has 488
        Chinese characters and all Cyrillic letters, yet the model reads neither language. A vocabulary of bytes has no
        unknown token and reads everything.
        """
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        flags = np.zeros(max(vocabulary.values()) + 1, dtype=np.bool_)
        if self._tokenizer.unk_token_id is None:
            return flags
        scripts = {
            index: next((_script_of(character) for character in token if character.isalpha()), "")
            for token, index in vocabulary.items()
        }
        enough = min(1000, max(2, len(vocabulary) // 50))
        counts = Counter(scripts.values())
        for index, script in scripts.items():
            flags[index] = script != "" and counts[script] < enough
        flags[self._tokenizer.unk_token_id] = True
        return flags


def _has_settings(backend: Any, max_tokens: int) -> bool:
    """True if a shared tokenizer has these settings already: changing them while another thread encodes raises."""
    truncation = {"max_length": max_tokens, "stride": 0, "strategy": "longest_first", "direction": "right"}
    return backend.padding is None and backend.truncation == truncation


@cache
def _script_of(letter: str) -> str:
    """Return the letter's script by its Unicode name (LATIN, CJK, …), or an empty string."""
    return unicodedata.name(letter, "").split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Padded token ids and, for models that distinguish the texts of a pair, token types, (n, tokens); lengths (n,)."""

    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    types: NDArray[np.int64] | None = None

    @property
    def mask(self) -> NDArray[np.bool_]:
        """A mask, (n, tokens): True for tokens, False for padding."""
        mask: NDArray[np.bool_] = np.arange(self.ids.shape[1]) < self.lengths[:, None]
        return mask


def pad_rows(
    rows: Sequence[Sequence[int]], pad: int, max_tokens: int, types: Sequence[Sequence[int]] | None = None
) -> TokenBatch:
    """Pad the rows with `pad` to a common length of up to `max_tokens`."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    longest = int(lengths.max())
    width = max(longest, min(max_tokens, -(-longest // _STEP) * _STEP))
    return TokenBatch(_fill(rows, pad, width), lengths, None if types is None else _fill(types, 0, width))


def usable_positions(config: Any, default: int, *, has_unused: bool = True) -> int:
    """Return how many tokens fit the positions of a model, or `default` positions if its config does not say.

    `has_unused` subtracts the positions that RoBERTa never uses.
    """
    positions: int = getattr(config, "max_position_embeddings", None) or default
    return positions - (_UNUSED_POSITIONS if has_unused else 0)


def group_by_length(lengths: Sequence[int], budget: int, workers: int) -> list[list[int]]:
    """Return indexes of `lengths`, longest first, in groups of up to about `budget` tokens.

    Groups are sized to give all workers the same amount of work; a small last group evens it out.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    total = sum(lengths)
    rounds = max(1, -(-total // (budget * workers)))
    share = min(budget, max(_MIN_TOKENS, -(-total // (rounds * workers))))
    groups: list[list[int]] = []
    begin = 0
    while begin < len(order):
        size = min(_MAX_TEXTS, max(1, round(share / max(1, lengths[order[begin]]))))
        groups.append(order[begin : begin + size])
        begin += size
    return groups


def _fill(rows: Sequence[Sequence[int]], fill: int, width: int) -> NDArray[np.int64]:
    rectangle = np.full((len(rows), width), fill, dtype=np.int64)
    for place, row in enumerate(rows):
        rectangle[place, : len(row)] = row
    return rectangle


def sum_of_rows(
    rows_of: Callable[[NDArray[np.int64]], NDArray[np.float32]], dimension: int, ids: Sequence[Sequence[int]]
) -> NDArray[np.float32]:
    """Return the sum of the rows that `rows_of` looks up for each list of ids, (n, dimension); zeros for no ids."""
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    sums = np.zeros((len(ids), dimension), dtype=np.float32)
    not_empty = np.flatnonzero(lengths)
    if len(not_empty):
        flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids if row])
        starts = np.concatenate(([0], np.cumsum(lengths[not_empty])[:-1]))
        sums[not_empty] = np.add.reduceat(rows_of(flat), starts, axis=0)
    return sums


def hash_characters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return each text as a signed bag of hashed characters and character bigrams, (n, 256).

    Used for languages outside the model's vocabulary. The hashing follows Weinberger et al. 2009, "Feature Hashing for
    Large Scale Multitask Learning".
    """
    vectors = np.zeros((len(texts), HASH_DIMENSION), dtype=np.float32)
    for row, text in enumerate(texts):
        points = np.frombuffer(make_encodable(text).encode("utf-32-le"), dtype=np.uint32)
        grams = np.concatenate((points, points[:-1] * np.uint32(0x9E3779B1) ^ points[1:]))
        mixed = grams * np.uint32(0x85EBCA6B)
        mixed ^= mixed >> np.uint32(15)
        signs = np.where(mixed & np.uint32(1), 1.0, -1.0)
        buckets = (mixed >> np.uint32(1)) % np.uint32(HASH_DIMENSION)
        vectors[row] = np.bincount(buckets.astype(np.int64), weights=signs, minlength=HASH_DIMENSION)
    return vectors


def normalise_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the rows to length 1, except for rows of zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
    return scaled


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

    def __call__(self, batch: TokenBatch, *, first: bool = False) -> Any:
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

    def _embed(self, batch: TokenBatch) -> Any:
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
        """Pack the weights; query (with the scale 1/√width), key and value become one layer."""
        import torch

        attention, output = layer.attention.self, layer.attention.output
        parts = (attention.query, self._width**-0.5), (attention.key, 1.0), (attention.value, 1.0)
        weights = [part.weight.detach().float() * factor for part, factor in parts]
        biases = [part.bias.detach().float() * factor for part, factor in parts]
        return _Layer(
            Linear(torch.cat(weights), torch.cat(biases), self._dtype),
            Linear(output.dense.weight, output.dense.bias, self._dtype),
            _norm(output.LayerNorm),
            Linear(layer.intermediate.dense.weight, layer.intermediate.dense.bias, self._dtype),
            Linear(layer.output.dense.weight, layer.output.dense.bias, self._dtype),
            _norm(layer.output.LayerNorm),
        )


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
        node = model
        for step in path:
            if not hasattr(node, step):
                setattr(node, step, SimpleNamespace())
            node = getattr(node, step)
        setattr(node, leaf, weight)
        if path[-1] == "LayerNorm":
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


Kind = Literal["native", "loaded"]
Rows = NDArray[np.float32]
Forward = Callable[[TokenBatch], Rows]

# Minimum cosine between a vector and that of the loaded model in float32.
MIN_COSINE = 0.999
# Maximum difference between a score (0 to 1) and that of the loaded model in float32.
MAX_DIFFERENCE = 0.01
Item = TypeVar("Item")
Result = TypeVar("Result")
_MAX_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """The kind and precision of a forward pass."""

    kind: Kind
    half: bool

    @property
    def precision(self) -> str:
        return "bfloat16" if self.half else "float32"


def choose(
    engines: Embedders | Scorers, sample: TokenBatch, *, half: bool, run: Callable[[Callable[[], Any]], Any]
) -> tuple[Forward, Choice]:
    """Return the fastest forward pass that agrees with the loaded model in float32.

    `half` allows half precision; `run` executes work in the thread that will do it later. Takes two passes of the
    sample if the first candidate agrees.
    """
    expected: Rows = run(lambda: engines.loaded_pass(half=False)(sample))
    candidates: tuple[tuple[Kind, bool], ...] = (("native", True), ("native", False), ("loaded", True))
    for kind, is_half in candidates if half else candidates[1:2]:
        make_pass = engines.native_pass if kind == "native" else engines.loaded_pass
        engine = run(partial(make_pass, half=is_half))  # torch's own threads would wait for those that draw pages
        if engine is None:
            continue
        if engines.are_close(expected, run(partial(engine, sample))):
            return engine, Choice(kind, is_half)
        log.info("The %s pass (half precision: %s) would change the results, so it is not used", kind, is_half)
    return engines.loaded_pass(half=False), Choice("loaded", False)


def has_bfloat16(device: str) -> bool:
    """True if `device` multiplies bfloat16 in hardware; emulated, it would be slower than float32."""
    if device.startswith("cuda"):
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu" or platform.system() != "Linux":
        return False
    try:
        flags = set(Path("/proc/cpuinfo").read_text("utf-8").split())
    except OSError:
        return False
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


class _HalfLinears:
    """A model's linear layers, in bfloat16 on request: autocast would convert their weights in every forward pass."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._kind = device.split(":", 1)[0]
        self._originals: list[tuple[Any, Any, Any]] = []

    def set(self, half: bool) -> None:
        """Convert the layers, or restore their original weights."""
        import torch

        for layer, weight, bias in self._originals:
            layer.weight, layer.bias = weight, bias
        layers = [layer for layer in self._model.modules() if half and isinstance(layer, torch.nn.Linear)]
        self._originals = [(layer, layer.weight, layer.bias) for layer in layers]
        for layer, weight, bias in self._originals:
            layer.weight = torch.nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
            if bias is not None:
                layer.bias = torch.nn.Parameter(bias.detach().to(torch.bfloat16), requires_grad=False)

    def autocast(self, half: bool) -> Any:
        import torch

        return torch.autocast(self._kind, torch.bfloat16, enabled=half)


class Embedders:
    """The forward passes of an embedding model: batches to L2-normalised vectors, (n, d)."""

    def __init__(self, model: Any, pooling: Pooling, device: str) -> None:
        self._model = model
        self._pooling: Pooling = pooling
        self._device = device
        self._linears = _HalfLinears(model, device)

    def native_pass(self, *, half: bool) -> Forward | None:
        if self._device != "cpu" or not can_run(self._model):
            return None
        encode, pooling = EncoderPass(self._model, half=half), self._pooling

        def embed(batch: TokenBatch) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=pooling == "cls").float()
                return _unit_vectors(hidden if pooling == "cls" else _pool(hidden, batch, pooling))

        return embed

    def loaded_pass(self, *, half: bool) -> Forward:
        if not callable(self._model) and (native := self.native_pass(half=half)):
            return native  # the model is weights only: tests compare these vectors with FlagEmbedding's
        self._linears.set(half)

        def embed(batch: TokenBatch) -> Rows:
            import torch

            inputs = torch.from_numpy(batch.ids).to(self._device)
            # A mask of ones costs time without effect.
            mask = None if batch.mask.all() else torch.from_numpy(batch.mask).to(self._device).long()
            with torch.inference_mode():
                with self._linears.autocast(half):
                    hidden = self._model(input_ids=inputs, attention_mask=mask).last_hidden_state
                return _unit_vectors(_pool(hidden.float(), batch, self._pooling))

        return embed

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum(axis=1).min() >= MIN_COSINE)


def _pool(hidden: Any, batch: TokenBatch, pooling: Pooling) -> Any:
    """Pool (n, tokens, d) to (n, d)."""
    import torch

    if pooling == "cls":
        return hidden[:, 0]
    lengths = torch.from_numpy(batch.lengths).to(hidden.device)[:, None]
    if pooling == "last":
        return hidden.take_along_dim((lengths - 1).unsqueeze(-1), dim=1)[:, 0]
    mask = torch.from_numpy(batch.mask).to(hidden.device, hidden.dtype)
    return torch.bmm(mask[:, None], hidden)[:, 0] / lengths


def _unit_vectors(pooled: Any) -> Rows:
    import torch

    vectors: Rows = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
    return vectors


class Scorers:
    """The forward passes of a cross-encoder: batches to logits, (n, 1)."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._linears = _HalfLinears(model, device)

    def native_pass(self, *, half: bool) -> Forward | None:
        body = getattr(self._model, self._model.base_model_prefix, None)
        head = _find_head(self._model)
        if self._device != "cpu" or body is None or head is None or not can_run(body):
            return None
        encode = EncoderPass(body, half=half)

        def score(batch: TokenBatch) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=True).float()
                logits: Rows = head(hidden[:, None]).view(-1, 1).numpy()
            return logits

        return score

    def loaded_pass(self, *, half: bool) -> Forward:
        self._linears.set(half)

        def score(batch: TokenBatch) -> Rows:
            import torch

            arrays = {"input_ids": batch.ids, "attention_mask": batch.mask.astype(np.int64)}
            if batch.types is not None:
                arrays["token_type_ids"] = batch.types
            tensors = {key: torch.from_numpy(rows).to(self._device) for key, rows in arrays.items()}
            with torch.inference_mode(), self._linears.autocast(half):
                logits: Rows = self._model(**tensors).logits.view(-1, 1).float().cpu().numpy()
            return logits

        return score

    def are_close(self, exact: Rows, rows: Rows) -> bool:
        return bool(np.abs(sigmoid(exact) - sigmoid(rows)).max() <= MAX_DIFFERENCE)


def sigmoid(logits: Rows) -> NDArray[np.float64]:
    """Return 1 / (1 + e⁻ˣ), without overflow."""
    scores: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -60.0, 60.0)))
    return scores


def _find_head(model: Any) -> Callable[[Any], Any] | None:
    """Return the head from the hidden states of first tokens, (n, 1, d), to logits; None for an unknown layout."""
    body, classifier = getattr(model, model.base_model_prefix, None), getattr(model, "classifier", None)
    if classifier is None:
        return None
    if model.config.model_type != "bert":
        return lambda hidden: classifier(hidden)  # RoBERTa's classifier takes the first token itself
    pooler = getattr(body, "pooler", None)
    return None if pooler is None else lambda hidden: classifier(pooler(hidden))


class _Group(Generic[Item, Result]):
    """The items that arrived since the last batch began."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.results: Future[Sequence[Result]]


class CallBatcher(Generic[Item, Result]):
    """A batcher that turns many calls with one item each into few calls of `work` with a list.

    There is no timer: items that arrive while the thread is busy are processed together once it is free. `submit`
    queues a task for that thread.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Sequence[Result]],
        submit: Callable[[Callable[[], Sequence[Result]]], Future[Sequence[Result]]],
        *,
        max_items: int,
    ) -> None:
        self._work = work
        self._submit = submit
        self._max_items = max_items
        self._lock = threading.Lock()
        self._open: _Group[Item, Result] | None = None

    def process(self, item: Item) -> Result:
        """Return the result for `item`. Raises the errors of `work`."""
        with self._lock:
            group = self._open
            if group is None or len(group.items) >= self._max_items:
                group = self._open = _Group()
                group.results = self._submit(lambda: self._run(group))
            place = len(group.items)
            group.items.append(item)
        return group.results.result()[place]

    def _run(self, group: _Group[Item, Result]) -> Sequence[Result]:
        with self._lock:  # the next caller begins a new group
            if self._open is group:
                self._open = None
        return self._work(group.items)


class Workers:
    """Worker threads that share the cores; a single thread if `serial`, as for a GPU."""

    def __init__(self, *, serial: bool = False) -> None:
        import torch

        cores = torch.get_num_threads()
        self.count = 1 if serial else min(cores, _MAX_WORKERS)
        self._share = max(1, cores // self.count)
        self._batches = ThreadPoolExecutor(self.count, "encode", initializer=self._take_share)
        # In a separate thread, a query does not wait behind the batches of an import.
        self._single = self._batches if serial else ThreadPoolExecutor(1, "query", initializer=self._take_share)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Submit a task that a caller is waiting for, such as a query."""
        return self._single.submit(work)

    def run(self, work: Callable[[], Result]) -> Result:
        """Run a task that a caller is waiting for, and return its result."""
        return self.submit(work).result()

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, in order; few are submitted ahead, so that callers take turns."""
        return map_ahead(self._batches, work, items, 2 * self.count)

    def map_groups(
        self, work: Callable[[Sequence[int]], Iterable[Result]], lengths: Sequence[int], budget: int
    ) -> list[Result]:
        """Process texts with these lengths in groups (`group_by_length`); return the results in order."""
        results: dict[int, Result] = {}
        for group, found in self.each(work, group_by_length(lengths, budget, self.count)):
            results.update(zip(group, found, strict=True))
        return [results[place] for place in range(len(lengths))]

    def _take_share(self) -> None:
        import torch

        torch.set_num_threads(self._share)  # for this thread only


def map_ahead(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], depth: int
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order, while `pool` processes up to `depth` more."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        waiting.append((item, pool.submit(work, item)))
        if len(waiting) > depth:
            finished, future = waiting.popleft()
            yield finished, future.result()
    for finished, future in waiting:
        yield finished, future.result()
