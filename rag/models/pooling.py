"""From the last hidden state to one unit vector a text, by our forward pass or by the loaded model's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.models.batches import Batch
from rag.models.families import Pooling
from rag.models.precision import MIN_COSINE, HalfLinears
from rag.models.transformer import EncoderPass, can_run

Rows = NDArray[np.float32]


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
