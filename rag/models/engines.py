"""Forward passes of a loaded model, ours or its own, to a vector a text or a score a pair; and which is used here."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.models.families import Pooling
from rag.models.tokens import Batch
from rag.models.transformer import EncoderPass, can_run

log = logging.getLogger(__name__)

Kind = Literal["own", "loaded"]
Rows = NDArray[np.float32]
Forward = Callable[[Batch], Rows]

# The lowest cosine between a vector and what the loaded model gives in float32.
MIN_COSINE = 0.999
# How far a score between 0 and 1 may be from what the loaded model gives in float32.
MAX_DIFFERENCE = 0.01


@dataclass(frozen=True, slots=True)
class Choice:
    """A forward pass, by name."""

    kind: Kind
    half: bool

    @property
    def precision(self) -> str:
        return "bfloat16" if self.half else "float32"


class Engines(Protocol):
    """The forward passes that a model has; each turns a batch into a row of numbers a text."""

    def own(self, *, half: bool) -> Forward | None:
        """Ours; None where it does not fit the model or the device."""
        ...

    def loaded(self, *, half: bool) -> Forward:
        """The loaded model's own."""
        ...

    def close(self, exact: Rows, rows: Rows) -> bool:
        """Whether `rows` may stand for `exact`."""
        ...


def choose(
    engines: Engines, sample: Batch, *, half: bool, run: Callable[[Callable[[], Any]], Any]
) -> tuple[Forward, Choice]:
    """The first forward pass, in the order of their speed, that gives what the loaded model gives in float32.

    `half` says whether the device has half precision; `run` runs work in the thread that will do it. Takes two passes
    of the sample where nothing is amiss.
    """
    wanted: Rows = run(partial(engines.loaded(half=False), sample))
    candidates: tuple[tuple[Kind, bool], ...] = (("own", True), ("own", False), ("loaded", True))
    for kind, halved in candidates if half else candidates[1:2]:
        engine = engines.own(half=halved) if kind == "own" else engines.loaded(half=halved)
        if engine is None:
            continue
        if engines.close(wanted, run(partial(engine, sample))):
            return engine, Choice(kind, halved)
        log.info("The %s pass (half precision: %s) would change the results, so it is not used", kind, halved)
    return engines.loaded(half=False), Choice("loaded", False)


def has_bfloat16(device: str) -> bool:
    """Whether `device` multiplies bfloat16 in hardware; emulated, it would be slower than float32."""
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
    """A model's linear layers, in bfloat16 when told so: autocast would turn their weights in every forward pass."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._kind = device.split(":", 1)[0]
        self._kept: list[tuple[Any, Any, Any]] = []

    def set(self, half: bool) -> None:
        """Turn the layers, or put their own weights back."""
        import torch

        for layer, weight, bias in self._kept:
            layer.weight, layer.bias = weight, bias
        layers = [layer for layer in self._model.modules() if half and isinstance(layer, torch.nn.Linear)]
        self._kept = [(layer, layer.weight, layer.bias) for layer in layers]
        for layer, weight, bias in self._kept:
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

    def own(self, *, half: bool) -> Forward | None:
        if self._device != "cpu" or not can_run(self._model):
            return None
        encode, pooling = EncoderPass(self._model, half=half), self._pooling

        def embed(batch: Batch, *, careful: bool = False) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=pooling == "cls", careful=careful)
                vectors = _unit(hidden.float() if pooling == "cls" else _pooled(hidden.float(), batch, pooling))
            return vectors if careful or np.isfinite(vectors).all() else embed(batch, careful=True)

        return embed

    def loaded(self, *, half: bool) -> Forward:
        self._linears.set(half)

        def embed(batch: Batch) -> Rows:
            import torch

            inputs = torch.from_numpy(batch.ids).to(self._device)
            # A mask of ones costs time and says nothing.
            mask = None if batch.mask.all() else torch.from_numpy(batch.mask).to(self._device).long()
            with torch.inference_mode():
                with self._linears.autocast(half):
                    hidden = self._model(input_ids=inputs, attention_mask=mask).last_hidden_state
                return _unit(_pooled(hidden.float(), batch, self._pooling))

        return embed

    def close(self, exact: Rows, rows: Rows) -> bool:
        return bool((exact * rows).sum(axis=1).min() >= MIN_COSINE)


def _pooled(hidden: Any, batch: Batch, pooling: Pooling) -> Any:
    """(n, tokens, d) to (n, d)."""
    import torch

    if pooling == "cls":
        return hidden[:, 0]
    lengths = torch.from_numpy(batch.lengths).to(hidden.device)[:, None]
    if pooling == "last":
        return hidden.take_along_dim((lengths - 1).unsqueeze(-1), dim=1)[:, 0]
    mask = torch.from_numpy(batch.mask).to(hidden.device, hidden.dtype)
    return torch.bmm(mask[:, None], hidden)[:, 0] / lengths


def _unit(pooled: Any) -> Rows:
    import torch

    vectors: Rows = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
    return vectors


class Scorers:
    """The forward passes of a cross-encoder: batches to logits, (n, 1)."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._linears = _HalfLinears(model, device)

    def own(self, *, half: bool) -> Forward | None:
        body = getattr(self._model, self._model.base_model_prefix, None)
        head = _head(self._model)
        if self._device != "cpu" or body is None or head is None or not can_run(body):
            return None
        encode = EncoderPass(body, half=half)

        def score(batch: Batch, *, careful: bool = False) -> Rows:
            import torch

            with torch.inference_mode():
                hidden = encode(batch, first=True, careful=careful).float()
                logits: Rows = head(hidden[:, None]).view(-1, 1).numpy()
            return logits if careful or np.isfinite(logits).all() else score(batch, careful=True)

        return score

    def loaded(self, *, half: bool) -> Forward:
        self._linears.set(half)

        def score(batch: Batch) -> Rows:
            import torch

            given = {"input_ids": batch.ids, "attention_mask": batch.mask.astype(np.int64)}
            if batch.types is not None:
                given["token_type_ids"] = batch.types
            tensors = {key: torch.from_numpy(rows).to(self._device) for key, rows in given.items()}
            with torch.inference_mode(), self._linears.autocast(half):
                logits: Rows = self._model(**tensors).logits.view(-1, 1).float().cpu().numpy()
            return logits

        return score

    def close(self, exact: Rows, rows: Rows) -> bool:
        return bool(np.abs(sigmoid(exact) - sigmoid(rows)).max() <= MAX_DIFFERENCE)


def sigmoid(logits: Rows) -> NDArray[np.float64]:
    """1 / (1 + e⁻ˣ), without overflow."""
    scores: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -60.0, 60.0)))
    return scores


def _head(model: Any) -> Callable[[Any], Any] | None:
    """What turns (n, 1, d), the hidden state of the first tokens, into logits; None for an unknown layout."""
    body, classifier = getattr(model, model.base_model_prefix, None), getattr(model, "classifier", None)
    if classifier is None:
        return None
    if model.config.model_type != "bert":
        return lambda hidden: classifier(hidden)  # RoBERTa's classifier takes the first token itself
    pooler = getattr(body, "pooler", None)
    return None if pooler is None else lambda hidden: classifier(pooler(hidden))
