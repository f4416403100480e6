"""Token ids for language checks, for cheap sentence vectors, and in padded batches for encoding.

Texts of similar length share a batch, which minimises padding.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.text import make_encodable

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

    def find_unreadable(self) -> NDArray[np.bool_]:
        """Return a flag for each token id: True if the model cannot read its text.

        These are the unknown token and tokens in scripts that are rare in the vocabulary: an English vocabulary has 488
        Chinese characters and all Cyrillic letters, yet the model reads neither language. A vocabulary of bytes has no
        unknown token and reads everything.
        """
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        flags = np.zeros(max(vocabulary.values()) + 1, dtype=np.bool_)
        if self._tokenizer.unk_token_id is None:
            return flags
        scripts = {index: _script(token) for token, index in vocabulary.items()}
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


def _script(token: str) -> str:
    """Return the script of the token's first letter by its Unicode name (LATIN, CJK, …), or an empty string."""
    return next((_script_of(character) for character in token if character.isalpha()), "")


@cache
def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Batch:
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
) -> Batch:
    """Pad the rows with `pad` to a common length of up to `max_tokens`."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    longest = int(lengths.max())
    width = max(longest, min(max_tokens, -(-longest // _STEP) * _STEP))
    return Batch(_fill(rows, pad, width), lengths, None if types is None else _fill(types, 0, width))


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
