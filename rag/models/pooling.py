"""From the last hidden state to one unit vector a text, by our forward pass or by the loaded model's.

And sentence vectors without any: enough to see where a text changes its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.models.families import Pooling
from rag.models.precision import MIN_COSINE, HalfLinears
from rag.models.tokens import Batch
from rag.models.transformer import EncoderPass, can_run
from rag.text import encodable

Rows = NDArray[np.float32]
HASH_DIMENSION = 256


class Embedders:
    """The forward passes of an embedding model (see `engines.Engines`): batches to L2-normalised vectors, (n, d)."""

    def __init__(self, model: Any, pooling: Pooling, device: str) -> None:
        self._model = model
        self._pooling: Pooling = pooling
        self._device = device
        self._halved: HalfLinears | None = None

    def own(self, *, half: bool) -> Callable[[Batch], Rows] | None:
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

    def loaded(self, *, half: bool) -> Callable[[Batch], Rows]:
        if half and self._halved is None:
            self._halved = HalfLinears(self._model)
        elif not half and self._halved is not None:
            self._halved.undo()
            self._halved = None
        model, pooling, device = self._model, self._pooling, self._device

        def embed(batch: Batch) -> Rows:
            import torch

            inputs = torch.from_numpy(batch.ids).to(device)
            # A mask of ones costs time and says nothing.
            mask = None if batch.mask.all() else torch.from_numpy(batch.mask).to(device).long()
            with torch.inference_mode():
                with torch.autocast(device.split(":", 1)[0], torch.bfloat16, enabled=half):
                    hidden = model(input_ids=inputs, attention_mask=mask).last_hidden_state
                return _unit(_pooled(hidden.float(), batch, pooling))

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


def sum_of_rows(table: NDArray[np.float32], ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """For each list of ids the sum of the table's rows, (n, d); zeros for no ids."""
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    sums = np.zeros((len(ids), table.shape[1]), dtype=np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids if row])
        starts = np.concatenate(([0], np.cumsum(lengths[filled])[:-1]))
        sums[filled] = np.add.reduceat(table[flat], starts, axis=0)
    return sums


def hashed_characters(texts: Sequence[str]) -> NDArray[np.float32]:
    """Each text as a signed bag of hashed characters and character bigrams, (n, 256).

    For languages that the model's vocabulary does not hold. Hashing after Weinberger et al. 2009,
    "Feature Hashing for Large Scale Multitask Learning".
    """
    vectors = np.zeros((len(texts), HASH_DIMENSION), dtype=np.float32)
    for row, text in enumerate(texts):
        points = np.frombuffer(encodable(text).encode("utf-32-le"), dtype=np.uint32)
        grams = np.concatenate((points, points[:-1] * np.uint32(0x9E3779B1) ^ points[1:]))
        mixed = grams * np.uint32(0x85EBCA6B)
        mixed ^= mixed >> np.uint32(15)
        signs = np.where(mixed & np.uint32(1), 1.0, -1.0)
        buckets = (mixed >> np.uint32(1)) % np.uint32(HASH_DIMENSION)
        vectors[row] = np.bincount(buckets.astype(np.int64), weights=signs, minlength=HASH_DIMENSION)
    return vectors


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
    return scaled
