"""Every sentence about what happened, in English and Chinese, by code.

One file a room; each holds `MESSAGES`, code -> (English, Chinese), with `{name}` places.
`say` puts a notice into words. The labels of the screens are in `rag/ui/kit/strings.py`.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from rag.messages import (
    answers,
    config,
    conversations,
    documents,
    duplicates,
    engines,
    evaluation,
    ingest,
    jobs,
    judge,
    models,
    research,
    search,
    store,
    summary,
    tools,
)
from rag.types import Notice

MESSAGES: dict[str, tuple[str, str]] = {
    **config.MESSAGES,
    **store.MESSAGES,
    **models.MESSAGES,
    **engines.MESSAGES,
    **ingest.MESSAGES,
    **jobs.MESSAGES,
    **documents.MESSAGES,
    **duplicates.MESSAGES,
    **search.MESSAGES,
    **answers.MESSAGES,
    **judge.MESSAGES,
    **research.MESSAGES,
    **summary.MESSAGES,
    **conversations.MESSAGES,
    **evaluation.MESSAGES,
    **tools.MESSAGES,
}


def say(notice: Notice, language: str) -> str:
    """Put `notice` into one sentence, in Chinese for `zh` and in English for every other language."""
    english, chinese = MESSAGES[notice.code]
    return fill(chinese if language == "zh" else english, notice.params)


class _Counting(string.Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        one, is_count, many = spec.partition("|")
        if not is_count:
            return str(super().format_field(value, spec))
        return f"{value} {one if str(value) == '1' else many}"


def fill(sentence: str, values: Mapping[str, Any]) -> str:
    """`sentence` with `values` in its places; `{count:page|pages}` becomes `1 page` or `2 pages`."""
    return _Counting().vformat(sentence, (), values)
