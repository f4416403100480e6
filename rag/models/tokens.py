"""Tokens: for judging what a model can read, for cheap sentence vectors, and for encoding, as rectangles of ids.

Texts of like lengths go together, so that little of a rectangle is padding.
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

from rag.text import encodable

# Lengths are rounded up to this: each new shape costs compiling its kernels, about 0.3 ms an operation.
_STEP = 8
_MOST_TEXTS = 256
HASH_DIMENSION = 256
_LEAST_TOKENS = 128  # a smaller rectangle is not worth a thread of its own


class Tokens:
    """A model's tokenizer with settings that never change, so that threads can share it.

    FlagEmbedding and transformers set truncation and padding at every call, which makes the shared
    Rust tokenizer raise "Already borrowed" under threads.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._lock = threading.Lock()
        self.max_tokens = max_tokens
        if self._backend is not None:
            self._backend.no_padding()
            self._backend.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """Token ids of each text, at most `max_tokens`, with the special tokens unless told not to."""
        texts = [encodable(text) for text in texts]
        if self._backend is not None:
            return [item.ids for item in self._backend.encode_batch_fast(texts, add_special_tokens=special)]
        with self._lock:
            coded = self._tokenizer(texts, truncation=True, max_length=self.max_tokens, add_special_tokens=special)
        return [list(ids) for ids in coded["input_ids"]]

    def unread(self) -> NDArray[np.bool_]:
        """For each token id: does it stand for text that the model was not made to read?

        True for the unknown token, and for tokens in a script of which the vocabulary holds only a
        sprinkling: an English vocabulary has 488 of the Chinese characters and all Cyrillic letters,
        and still reads neither language. A vocabulary of bytes has no unknown token and reads all.
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


def _script(token: str) -> str:
    """The script of the token's first letter by its Unicode name (LATIN, CJK, …); empty for none."""
    return next((_script_of(character) for character in token if character.isalpha()), "")


@cache
def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids and, for models that tell a pair's texts apart, token types, both (n, tokens), int64; lengths (n,)."""

    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    types: NDArray[np.int64] | None = None

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n, tokens): True for tokens, False for padding."""
        mask: NDArray[np.bool_] = np.arange(self.ids.shape[1]) < self.lengths[:, None]
        return mask


def padded(rows: Sequence[Sequence[int]], pad: int, most: int, types: Sequence[Sequence[int]] | None = None) -> Batch:
    """The rows as a rectangle, filled up with `pad` to a length that others share, at most `most` tokens."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    longest = int(lengths.max())
    width = max(longest, min(most, -(-longest // _STEP) * _STEP))
    return Batch(_filled(rows, pad, width), lengths, None if types is None else _filled(types, 0, width))


def grouped(lengths: Sequence[int], budget: int, workers: int) -> list[list[int]]:
    """Places in `lengths`, longest first, in groups of at most about `budget` tokens.

    There are as many groups as give each of the workers the same work; a last small one evens out.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    total = sum(lengths)
    rounds = max(1, -(-total // (budget * workers)))
    share = min(budget, max(_LEAST_TOKENS, -(-total // (rounds * workers))))
    groups: list[list[int]] = []
    begin = 0
    while begin < len(order):
        size = min(_MOST_TEXTS, max(1, round(share / max(1, lengths[order[begin]]))))
        groups.append(order[begin : begin + size])
        begin += size
    return groups


def _filled(rows: Sequence[Sequence[int]], fill: int, width: int) -> NDArray[np.int64]:
    filled = np.full((len(rows), width), fill, dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled


def sum_of_rows(
    rows_of: Callable[[NDArray[np.int64]], NDArray[np.float32]], dimension: int, ids: Sequence[Sequence[int]]
) -> NDArray[np.float32]:
    """For each list of ids the sum of a table's rows, (n, dimension); zeros for no ids. `rows_of` looks rows up."""
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    sums = np.zeros((len(ids), dimension), dtype=np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in ids if row])
        starts = np.concatenate(([0], np.cumsum(lengths[filled])[:-1]))
        sums[filled] = np.add.reduceat(rows_of(flat), starts, axis=0)
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
