"""Tokens of the built-in model, the measure of encoding work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

MAX_TOKENS = 510  # tokens per text that the model reads; two more are special
_BATCH_SIZE = 1000


def count(texts: Sequence[str], limit: int | None = None) -> int:
    """Return the number of tokens of all texts, each truncated to `limit`."""
    tokenizer = _load_tokenizer()
    total = 0
    for at in range(0, len(texts), _BATCH_SIZE):
        rows = tokenizer.encode_batch(list(texts[at : at + _BATCH_SIZE]), add_special_tokens=False)
        total += sum(min(len(row), limit or len(row)) for row in rows)
    return total


@cache
def _load_tokenizer() -> Any:
    from tokenizers import Tokenizer

    from rag.models.model_files import BUILTIN, find_model

    tokenizer = Tokenizer.from_file(str(find_model(BUILTIN).folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
