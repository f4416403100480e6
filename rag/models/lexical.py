"""BGE-M3's second head: a weight for each token of a text, which makes learned sparse vectors.

Chen et al. 2024, "M3-Embedding", arXiv 2402.03216. The tests compare it with BGEM3FlagModel of FlagEmbedding; here
threads share the tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rag.errors import ModelError
from rag.models.engines import Workers
from rag.models.hub import HEAD
from rag.models.tokens import Tokens, group_by_length, pad_rows
from rag.types import SparseVector

if TYPE_CHECKING:
    from rag.models.embedding import EmbeddingModel

FIRST: Final = 1 << 31
"""The number of the first learned term; those of BM25 are below it."""
_BATCH_TOKENS = 2048


class LexicalHead:
    """Turns texts into learned terms. Safe to share between threads."""

    def __init__(self, folder: Path, flag: Any, tokens: Tokens, device: str, *, half: bool) -> None:
        """`flag` is the loaded model; `half` is true if its layers are in bfloat16.

        Raises ModelError for a folder without a head that fits the model.
        """
        import torch

        self._model, self._tokens, self._device, self._half = flag.model, tokens, device, half
        self._pad: int = flag.tokenizer.pad_token_id or 0
        self._special = frozenset(flag.tokenizer.all_special_ids)
        self._linear = torch.nn.Linear(flag.model.config.hidden_size, 1)
        try:
            self._linear.load_state_dict(torch.load(folder / HEAD, map_location="cpu", weights_only=True))
        except (OSError, RuntimeError, ValueError, TypeError, EOFError, UnpicklingError) as error:
            raise ModelError("sparse_head_missing", folder=str(folder), file=HEAD) from error
        self._linear.to(device).eval()
        self._workers = Workers(serial=device != "cpu")

    def encode(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the terms of each text with their weights, each the largest among its tokens of that kind."""
        rows = self._tokens.encode(texts)
        vectors: list[SparseVector] = [SparseVector([], [])] * len(rows)
        groups = group_by_length([len(row) for row in rows], _BATCH_TOKENS, self._workers.count)
        for places, weights in self._workers.each(lambda group: self._weights([rows[at] for at in group]), groups):
            for place, token_weights in zip(places, weights, strict=True):
                vectors[place] = self._terms(rows[place], token_weights)
        return vectors

    def _weights(self, rows: Sequence[Sequence[int]]) -> Iterator[Sequence[float]]:
        import torch

        batch = pad_rows(rows, self._pad, self._tokens.max_tokens)
        kind = self._device.split(":", 1)[0]
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16, enabled=self._half):
            ids, mask = (torch.from_numpy(array).to(self._device) for array in (batch.ids, batch.mask))
            hidden = self._model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
            weights = torch.relu(self._linear(hidden.float())).squeeze(-1).cpu().numpy()
        if not np.isfinite(weights).all():
            raise ModelError("embedding_not_finite", name=HEAD)
        return (row[: len(tokens)].tolist() for row, tokens in zip(weights, rows, strict=True))

    def _terms(self, tokens: Sequence[int], weights: Sequence[float]) -> SparseVector:
        terms: dict[int, float] = {}
        for token, weight in zip(tokens, weights, strict=True):
            if weight > 0.0 and token not in self._special:
                terms[FIRST + token] = max(weight, terms.get(FIRST + token, 0.0))
        return SparseVector(list(terms), list(terms.values()))


def lexical_of(model: EmbeddingModel) -> LexicalHead | None:
    """Return the head of a model whose libraries have learned terms."""
    head: LexicalHead | None = getattr(model, "lexical", None)
    return head


def join_vectors(first: SparseVector, second: SparseVector) -> SparseVector:
    """Return the terms of both vectors, which share none."""
    return SparseVector([*first.indices, *second.indices], [*first.values, *second.values])


def drop_learned(vector: SparseVector) -> SparseVector:
    """Return the terms of BM25 alone."""
    terms = [(index, value) for index, value in zip(vector.indices, vector.values, strict=True) if index < FIRST]
    return SparseVector([index for index, _ in terms], [value for _, value in terms])
