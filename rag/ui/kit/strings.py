"""Every word on the screens, in English and Chinese, by key.

What happened (errors, outcomes of a source) is said by `rag.messages`; here are the labels of widgets,
titles and empty states. One file a page under `rag/ui/labels/`.
"""

from __future__ import annotations

from typing import Any, Literal

from rag.messages import fill
from rag.ui.labels import (
    access,
    add_pages,
    chat,
    citations,
    common,
    conversations,
    evaluation,
    jobs,
    library,
    page,
    research,
    search,
    settings,
    tree,
    upkeep,
)

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
LANGUAGE_NAMES: dict[Language, str] = {"en": "English", "zh": "中文"}

LABELS: dict[str, tuple[str, str]] = {
    **common.LABELS,
    **access.LABELS,
    **conversations.LABELS,
    **evaluation.LABELS,
    **chat.LABELS,
    **citations.LABELS,
    **add_pages.LABELS,
    **jobs.LABELS,
    **library.LABELS,
    **page.LABELS,
    **research.LABELS,
    **upkeep.LABELS,
    **search.LABELS,
    **settings.LABELS,
    **tree.LABELS,
}


def label(key: str, language: Language, **values: Any) -> str:
    """The words for `key` with `values` in their places. Raises KeyError for an unknown key."""
    return fill(LABELS[key][LANGUAGES.index(language)], values)


def counted(key_one: str, key_many: str, count: int, language: Language, **values: Any) -> str:
    """`key_one` for exactly one, else `key_many` with `{count}`."""
    return label(key_one if count == 1 else key_many, language, count=f"{count:,}", **values)
