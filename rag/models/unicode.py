"""Text that came out of broken JSON can hold lone surrogates, which no native library takes."""

from __future__ import annotations


def encodable(text: str) -> str:
    """`text` with each lone surrogate replaced by `?`; the same object when there is none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
