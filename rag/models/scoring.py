"""From the last hidden state to one score a pair of texts, by our forward pass or by the loaded model's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.models.precision import HalfLinears
from rag.models.tokens import Batch
from rag.models.transformer import EncoderPass, can_run

Rows = NDArray[np.float32]

# How far a score between 0 and 1 may be from what the loaded model gives in float32.
MAX_DIFFERENCE = 0.01


class Scorers:
    """The forward passes of a cross-encoder (see `engines.Engines`): batches to logits, (n, 1)."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model
        self._device = device
        self._halved: HalfLinears | None = None

    def own(self, *, half: bool) -> Callable[[Batch], Rows] | None:
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

    def loaded(self, *, half: bool) -> Callable[[Batch], Rows]:
        if half and self._halved is None:
            self._halved = HalfLinears(self._model)
        elif not half and self._halved is not None:
            self._halved.undo()
            self._halved = None
        model, device = self._model, self._device

        def score(batch: Batch) -> Rows:
            import torch

            given = {"input_ids": batch.ids, "attention_mask": batch.mask.astype(np.int64)}
            if batch.types is not None:
                given["token_type_ids"] = batch.types
            tensors = {key: torch.from_numpy(rows).to(device) for key, rows in given.items()}
            half_type = torch.autocast(device.split(":", 1)[0], torch.bfloat16, enabled=half)
            with torch.inference_mode(), half_type:
                logits: Rows = model(**tensors).logits.view(-1, 1).float().cpu().numpy()
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
