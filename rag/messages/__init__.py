"""Every sentence about what happened, in English and Chinese, by code.

One file a room; each holds `MESSAGES`, code -> (English, Chinese), with `{name}` places.
`say` puts a notice into words. The labels of the screens are in `rag/ui/strings.py`.
"""

from __future__ import annotations

from rag.messages import agent, config, ingest, models, search, store, strategies
from rag.types import Notice

MESSAGES: dict[str, tuple[str, str]] = {
    **config.MESSAGES,
    **store.MESSAGES,
    **models.MESSAGES,
    **ingest.MESSAGES,
    **search.MESSAGES,
    **strategies.MESSAGES,
    **agent.MESSAGES,
}


def say(notice: Notice, language: str) -> str:
    """Put `notice` into one sentence, in Chinese for `zh` and in English for every other language."""
    english, chinese = MESSAGES[notice.code]
    return (chinese if language == "zh" else english).format_map(notice.params)
