"""The labels of the screens, in the reader's language."""

from __future__ import annotations

from typing import Any

from rag.locales import LANGUAGES, Language, fill, sentences

__all__ = ["LANGUAGES", "Language", "label", "label_count"]


def label(key: str, language: Language, **values: Any) -> str:
    """Return the words for `key` with `values` in their places. Raises KeyError for an unknown key."""
    return fill(sentences(language)[key], values, language)


def label_count(key_one: str, key_many: str, count: int, language: Language, **values: Any) -> str:
    """Return `key_one` for exactly one, else `key_many` with `{count}`."""
    return label(key_one if count == 1 else key_many, language, count=f"{count:,}", **values)
