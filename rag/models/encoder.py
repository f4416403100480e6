"""Encoding with a loaded FlagEmbedding model: no padding to speak of, no second pass, safe in threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import ModelError
from rag.models.families import ModelFamily
from rag.models.precision import has_bfloat16, use_bfloat16
from rag.models.static import hashed_characters, mean_of_rows
from rag.models.tokens import Tokens
from rag.models.workers import Workers

# Tokens in one forward pass, padding included. On a CPU small batches stay in the cache.
_BATCH_TOKENS = 1024
_BATCH_TOKENS_GPU = 32768
_BATCH_TEXTS = 256
_QUERIES_KEPT = 512
_UNREAD_SHARE = 0.25
_SAMPLE = (
    "The river rises in the mountains and reaches the sea after four hundred kilometres.",
    "What does the treaty of 1648 say about trade?",
    "检索系统先找到段落，再根据段落回答问题。",
    "a",
)

Progress = Callable[[int, int], None]


class FlagEncoder:
    """An EmbeddingModel over what FlagEmbedding loaded (`flag.model`, `flag.tokenizer`)."""

    def __init__(self, flag: Any, family: ModelFamily, *, name: str, device: str) -> None:
        self.name = name
        self.dimension: int = flag.model.config.hidden_size
        self._model = flag.model
        self._family = family
        self._device = device
        positions = getattr(flag.model.config, "max_position_embeddings", None) or family.max_tokens
        # RoBERTa's positions begin behind the padding id, so two of them are never used.
        self._tokens = Tokens(flag.tokenizer, min(family.max_tokens, max(positions - 2, 8)))
        self._pad = flag.tokenizer.pad_token_id or 0
        self._unread = self._tokens.unread()
        self._table = flag.model.get_input_embeddings().weight.detach().cpu().numpy()
        self._workers = Workers(serial=device != "cpu")
        self._queries: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._queries_lock = threading.Lock()
        self._half = has_bfloat16(device) and use_bfloat16(flag.model, self._sample)

    @property
    def precision(self) -> str:
        """What the forward pass computes in: `bfloat16` or `float32`."""
        return "bfloat16" if self._half else "float32"

    @property
    def device(self) -> str:
        return self._device

    def encode_passages(self, texts: Sequence[str], *, on_progress: Progress | None = None) -> NDArray[np.float32]:
        """One L2-normalised vector a text, (n, d); `on_progress(done, total)` after each batch."""
        ids = self._tokens.encode([self._family.passage + text for text in texts])
        vectors = np.empty((len(ids), self.dimension), dtype=np.float32)
        done = 0
        work = self._workers.each(lambda batch: self._checked([ids[i] for i in batch]), self._batches(ids))
        for batch, encoded in work:
            vectors[batch] = encoded
            done += len(batch)
            if on_progress is not None:
                on_progress(done, len(ids))
        return vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """The query's L2-normalised vector, (d,), read-only: recent queries are remembered."""
        with self._queries_lock:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        ids = self._tokens.encode([self._family.query + text])
        vector: NDArray[np.float32] = self._workers.run(lambda: self._checked(ids))[0]
        vector.setflags(write=False)
        with self._queries_lock:
            self._queries[text] = vector
            while len(self._queries) > _QUERIES_KEPT:
                self._queries.popitem(last=False)
        return vector

    def can_read(self, text: str) -> bool:
        """Whether under a quarter of the tokens are unknown or of a script foreign to the vocabulary."""
        return self._can_read(self._tokens.encode([text], special=False))

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Static vectors for chunking only, (n, m), L2-normalised; m is one number within a call.

        The mean of the tokens' input embeddings; for texts the model cannot read as a whole, hashed
        characters.
        """
        ids = self._tokens.encode(texts, special=False)
        return mean_of_rows(self._table, ids) if self._can_read(ids) else hashed_characters(texts)

    def _can_read(self, ids: Sequence[Sequence[int]]) -> bool:
        flat = [index for row in ids for index in row]
        return bool(flat) and float(self._unread[flat].mean()) < _UNREAD_SHARE

    def _batches(self, ids: Sequence[Sequence[int]]) -> list[list[int]]:
        """Places in `ids`, longest texts first, in batches of about as many tokens, some for each worker."""
        bound = _BATCH_TOKENS if self._device == "cpu" else _BATCH_TOKENS_GPU
        budget = min(bound, sum(map(len, ids)) // self._workers.count)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]), reverse=True)
        batches: list[list[int]] = []
        while order:
            size = min(_BATCH_TEXTS, max(1, budget // max(1, len(ids[order[0]]))))
            batches.append(order[:size])
            order = order[size:]
        return batches

    def _checked(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        vectors = self._forward(ids, self._half)
        if not np.isfinite(vectors).all():
            raise ModelError("embedding_not_finite", name=self.name)
        return vectors

    def _sample(self, half: bool) -> NDArray[np.float32]:
        ids = self._tokens.encode(_SAMPLE)
        return self._workers.run(lambda: self._forward(ids, half))

    def _forward(self, ids: Sequence[Sequence[int]], half: bool) -> NDArray[np.float32]:
        import torch

        lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
        padded = np.full((len(ids), int(lengths.max())), self._pad, dtype=np.int64)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
        inputs = torch.from_numpy(padded).to(self._device)
        mask = torch.from_numpy(np.arange(padded.shape[1]) < lengths[:, None]).to(self._device)
        device = self._device.split(":", 1)[0]
        with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=half):
            # A mask of ones costs time and says nothing.
            given = None if lengths.min() == lengths.max() else mask.long()
            hidden = self._model(input_ids=inputs, attention_mask=given).last_hidden_state
        with torch.inference_mode():
            pooled = self._pooled(hidden.float(), mask)
            unit: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return unit

    def _pooled(self, hidden: Any, mask: Any) -> Any:
        """(batch, tokens, d) and its mask to (batch, d)."""
        if self._family.pooling == "cls":
            return hidden[:, 0]
        counts = mask.sum(dim=1, keepdim=True)
        if self._family.pooling == "last":
            return hidden.take_along_dim((counts - 1).unsqueeze(-1), dim=1)[:, 0]
        return (hidden * mask.unsqueeze(-1)).sum(dim=1) / counts
