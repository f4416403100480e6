"""Rerankers: cross-encoders, which read question and passage together, loaded by FlagEmbedding's FlagReranker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rag.errors import ModelError
from rag.models.embedding import best_device
from rag.models.engines import Scorers, Workers, choose, has_bfloat16, sigmoid
from rag.models.model_files import LazyModel, find_optional, load_flag_reranker, read_json
from rag.models.tokens import Batch, group_by_length, pad_rows, usable_positions
from rag.text import make_encodable

log = logging.getLogger(__name__)

_MAX_TOKENS = 512
_MAX_QUESTION = 1_500  # characters; more would leave no room for the passage
_WAVE = 16  # candidates between two checks of the time limit
_BATCH_TOKENS = 1024  # in one forward pass
_BATCH_TOKENS_GPU = 65536
_SAMPLE = (
    "When was the bridge opened?",
    (
        "The bridge that crosses the river below the old town was opened to traffic in 1910.",
        "The river rises in the mountains and reaches the sea after four hundred kilometres.",
        "这座桥于1910年通车。",
        "a",
    ),
)


class Reranker(Protocol):
    """A model that scores how well texts answer a question. Safe to share between threads."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """Score the texts in order, 0 to 1; None for those not reached within `seconds`. Raises ModelError."""
        ...


class LazyReranker(LazyModel[Reranker]):
    """A Reranker that is loaded on first use. Each use raises the error of a failure to load."""

    def __init__(self, name: str) -> None:
        super().__init__(name, load_reranker)

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        return self.load().scores(question, texts, seconds=seconds)


def load_reranker(name: str, *, exact: bool = False) -> Reranker:
    """Load a cross-encoder from the hub by name (BAAI/bge-reranker-v2-m3, -base, -large), or from a local folder.

    `exact` uses float32 on any processor. Raises ModelError if the model is unknown, incomplete or not a reranker, or
    the hub cannot be reached.
    """
    began = time.perf_counter()
    folder = find_optional(name, "reranker")
    _check_kind(name, folder)
    device = best_device()
    flag = load_flag_reranker(name, folder, device)
    reranker = CrossEncoder(flag, name=name, device=device, exact=exact)
    how = f"{reranker.choice.kind} pass in {reranker.choice.precision}"
    log.info("Reranker %s, %s on %s, loaded in %.1f s", name, how, device, time.perf_counter() - began)
    return reranker


def _check_kind(name: str, folder: Path) -> None:
    """Reject embedding models, which would load as well, but with random weights in the scoring head."""
    kinds = read_json(folder / "config.json").get("architectures")
    if not isinstance(kinds, list) or not any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        raise ModelError("reranker_wrong_kind", name=name)


class CrossEncoder:
    """A Reranker over a model loaded by FlagEmbedding (`flag.model`, `flag.tokenizer`)."""

    def __init__(self, flag: Any, *, name: str, device: str, exact: bool = False) -> None:
        """See `load_reranker` for `exact`."""
        config = flag.model.config
        if getattr(config, "num_labels", 1) != 1:
            raise ModelError("reranker_wrong_kind", name=name)
        self.name = name
        self.device = device
        self._tokenizer = flag.tokenizer
        self._max_tokens = min(_MAX_TOKENS, usable_positions(config, _MAX_TOKENS + 2))
        self._has_types = "token_type_ids" in flag.tokenizer.model_input_names
        self._pad: int = flag.tokenizer.pad_token_id or 0
        self._lock = threading.Lock()
        self._workers = Workers(serial=device != "cpu")
        sample, half = self._batch(*self._tokenize(*_SAMPLE)), not exact and has_bfloat16(device)
        self._forward, self.choice = choose(Scorers(flag.model, device), sample, half=half, run=self._workers.run)

    def scores(self, question: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float | None]:
        """See Reranker. Texts that exceed the model's limit are truncated."""
        ends = None if seconds is None else time.monotonic() + seconds
        scores: list[float | None] = [None] * len(texts)
        for begin in range(0, len(texts), _WAVE):
            if begin and ends is not None and time.monotonic() >= ends:
                break
            ids, types = self._tokenize(question, texts[begin : begin + _WAVE])
            work = self._workers.each(partial(self._score_group, ids, types), self._groups(ids))
            for group, group_scores in work:
                for place, score in zip(group, group_scores, strict=True):
                    scores[begin + place] = score
        return scores

    def _tokenize(self, question: str, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids and token types of each pair."""
        query = make_encodable(question[:_MAX_QUESTION])
        limits = {"truncation": "longest_first", "max_length": self._max_tokens, "return_token_type_ids": True}
        with self._lock:  # truncation is set on the shared tokenizer at every call
            encoding = self._tokenizer([query] * len(texts), [make_encodable(text) for text in texts], **limits)
        return [list(row) for row in encoding["input_ids"]], [list(row) for row in encoding["token_type_ids"]]

    def _groups(self, ids: Sequence[Sequence[int]]) -> list[list[int]]:
        budget = _BATCH_TOKENS if self.device == "cpu" else _BATCH_TOKENS_GPU
        return group_by_length([len(row) for row in ids], budget, self._workers.count)

    def _score_group(self, ids: list[list[int]], types: list[list[int]], group: Sequence[int]) -> list[float]:
        logits = self._forward(self._batch([ids[place] for place in group], [types[place] for place in group]))
        if not np.isfinite(logits).all():
            raise ModelError("reranker_not_finite", name=self.name)
        return [float(score) for score in sigmoid(logits)[:, 0]]

    def _batch(self, ids: list[list[int]], types: list[list[int]]) -> Batch:
        return pad_rows(ids, self._pad, self._max_tokens, types if self._has_types else None)
