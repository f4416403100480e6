"""Cross-encoders: question and passage read together, through FlagEmbedding's FlagReranker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError

log = logging.getLogger(__name__)

_MAX_TOKENS = 512
_MAX_QUESTION = 1_500  # characters; more would leave no room for the passage
_WAVE = 16  # candidates between two looks at the clock
_BATCH_TOKENS = 4096  # in one forward pass, padding included
_BATCH_TOKENS_GPU = 65536
_ABOUT_RERANKERS = {
    "embedding_no_folder": "reranker_no_folder",
    "embedding_incomplete": "reranker_incomplete",
    "embedding_unknown": "reranker_unknown",
    "hub_unreachable": "reranker_unreachable",
}


class Reranker(Protocol):
    """Says how well texts answer a question. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """A score a text, 0 to 1; None for those that were not reached within `seconds`. Begins with the first.

        Raises ModelError.
        """
        ...


class LateReranker:
    """A reranker that is loaded when it is first asked; a failure to load is raised each time anew."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._loaded: Reranker | None = None

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        with self._lock:
            if self._loaded is None:
                self._loaded = load_reranker(self.name)
        return self._loaded.scores(question, texts, seconds=seconds)


def load_reranker(name: str) -> Reranker:
    """Load a cross-encoder of the hub by name (BAAI/bge-reranker-v2-m3, -base, -large), or a local folder.

    Raises ModelError when it is unknown, incomplete, no reranker, or the hub out of reach.
    """
    from rag.models.embedding import best_device
    from rag.models.flag import load_flag_reranker

    began = time.perf_counter()
    folder = _find(name)
    _check_kind(name, folder)
    device = best_device()
    reranker = CrossEncoder(load_flag_reranker(name, folder, device), name=name, device=device)
    log.info("Reranker %s on %s, loaded in %.1f s", name, device, time.perf_counter() - began)
    return reranker


def _find(name: str) -> Path:
    from rag.models.hub import BUILTIN, find_model

    if name == BUILTIN:  # an embedding model
        raise ModelError("reranker_no_folder", name=name)
    try:
        return find_model(name).folder
    except ModelError as error:
        if error.code not in _ABOUT_RERANKERS:
            raise
        raise ModelError(_ABOUT_RERANKERS[error.code], **error.notice.params) from error


def _check_kind(name: str, folder: Path) -> None:
    """An embedding model would load as well, with random weights where a reranker has its score."""
    from rag.models.families import read_json

    kinds = read_json(folder / "config.json").get("architectures")
    if not isinstance(kinds, list) or not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise ModelError("reranker_wrong_kind", name=name)


class CrossEncoder:
    """A Reranker over what FlagEmbedding loaded (`flag.model`, `flag.tokenizer`)."""

    def __init__(self, flag: Any, *, name: str, device: str) -> None:
        from rag.models.workers import Workers

        config = flag.model.config
        if getattr(config, "num_labels", 1) != 1:
            raise ModelError("reranker_wrong_kind", name=name)
        self.name = name
        self._model = flag.model
        self._tokenizer = flag.tokenizer
        self._device = device
        # RoBERTa's positions begin behind the padding id, so two of them are never used.
        self._max_tokens = min(_MAX_TOKENS, getattr(config, "max_position_embeddings", _MAX_TOKENS + 2) - 2)
        self._has_types = "token_type_ids" in flag.tokenizer.model_input_names
        self._pad = flag.tokenizer.pad_token_id or 0
        self._lock = threading.Lock()
        self._workers = Workers(serial=device != "cpu")

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """See Reranker. Texts beyond the model's length are cut at their end."""
        ends = None if seconds is None else time.monotonic() + seconds
        scores: list[float | None] = [None] * len(texts)
        for begin in range(0, len(texts), _WAVE):
            if begin and ends is not None and time.monotonic() >= ends:
                break
            pairs = self._tokens(question, texts[begin : begin + _WAVE])
            for batch, logits in self._workers.each(lambda batch: self._forward(batch), list(self._batches(pairs))):
                for (place, _, _), score in zip(batch, _sigmoid(logits, self.name), strict=True):
                    scores[begin + place] = score
        return scores

    def _tokens(self, question: str, texts: Sequence[str]) -> list[tuple[int, list[int], list[int]]]:
        """(place, token ids, token types) of each pair, longest first."""
        from rag.models.unicode import encodable

        asked = encodable(question[:_MAX_QUESTION])
        limits = {"truncation": "longest_first", "max_length": self._max_tokens, "return_token_type_ids": True}
        with self._lock:  # truncation is set on the shared tokenizer at every call
            coded = self._tokenizer([asked] * len(texts), [encodable(text) for text in texts], **limits)
        rows = zip(coded["input_ids"], coded["token_type_ids"], strict=True)
        pairs = [(place, list(ids), list(types)) for place, (ids, types) in enumerate(rows)]
        return sorted(pairs, key=lambda pair: len(pair[1]), reverse=True)

    def _batches(
        self, pairs: Sequence[tuple[int, list[int], list[int]]]
    ) -> Iterator[Sequence[tuple[int, list[int], list[int]]]]:
        bound = _BATCH_TOKENS if self._device == "cpu" else _BATCH_TOKENS_GPU
        begin = 0
        while begin < len(pairs):
            size = max(1, bound // max(1, len(pairs[begin][1])))
            size = min(size, -(-len(pairs) // self._workers.count))
            yield pairs[begin : begin + size]
            begin += size

    def _forward(self, batch: Sequence[tuple[int, list[int], list[int]]]) -> NDArray[np.float64]:
        """The logits of a batch, (n,)."""
        import torch

        longest = max(len(ids) for _, ids, _ in batch)
        padded = [[*ids, *[self._pad] * (longest - len(ids))] for _, ids, _ in batch]
        mask = [[1] * len(ids) + [0] * (longest - len(ids)) for _, ids, _ in batch]
        given = {"input_ids": padded, "attention_mask": mask}
        if self._has_types:
            given["token_type_ids"] = [[*types, *[0] * (longest - len(types))] for _, _, types in batch]
        tensors = {key: torch.tensor(rows, device=self._device) for key, rows in given.items()}
        with torch.inference_mode():
            logits: NDArray[np.float64] = self._model(**tensors).logits.view(-1).double().cpu().numpy()
        return logits


def _sigmoid(logits: NDArray[np.float64], name: str) -> list[float]:
    if not np.isfinite(logits).all():
        raise ModelError("reranker_not_finite", name=name)
    return [float(score) for score in 1.0 / (1.0 + np.exp(-np.clip(logits, -60.0, 60.0)))]
