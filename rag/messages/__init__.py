"""Every sentence about what happened, in English and Chinese, by code.

One file a room; each holds `MESSAGES`, code -> (English, Chinese), with `{name}` places.
`say` puts a notice into words. The labels of the screens are in `rag/ui/strings.py`.
"""

from __future__ import annotations

from rag.messages import (
    agent,
    config,
    conversations,
    discovery,
    documents,
    duplicates,
    engines,
    exchange,
    gate,
    ingest,
    jobs,
    models,
    search,
    store,
    strategies,
    versions,
)
from rag.types import Notice

MESSAGES: dict[str, tuple[str, str]] = {
    **config.MESSAGES,
    **store.MESSAGES,
    **exchange.MESSAGES,
    **models.MESSAGES,
    **engines.MESSAGES,
    **ingest.MESSAGES,
    **jobs.MESSAGES,
    **documents.MESSAGES,
    **gate.MESSAGES,
    **discovery.MESSAGES,
    **versions.MESSAGES,
    **duplicates.MESSAGES,
    **search.MESSAGES,
    **strategies.MESSAGES,
    **agent.MESSAGES,
    **conversations.MESSAGES,
}


def say(notice: Notice, language: str) -> str:
    """Put `notice` into one sentence, in Chinese for `zh` and in English for every other language."""
    english, chinese = MESSAGES[notice.code]
    return (chinese if language == "zh" else english).format_map(notice.params)
