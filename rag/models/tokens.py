"""Tokens for encoding, for judging what a model can read, and for cheap sentence vectors."""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.text import encodable


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
    letter = next((character for character in token if character.isalpha()), "")
    return unicodedata.name(letter, "").split(" ", 1)[0] if letter else ""
