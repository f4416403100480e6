"""What discovery hands on: a page that was found, and whom it may ask to parse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page's address, `depth` links away from the start, `modified` as a sitemap or feed says (ISO 8601 or "")."""

    url: str
    depth: int = 0
    modified: str = ""


class Runs(Protocol):
    """The part of `rag.ingest.parser.Parser` that discovery needs."""

    def run(self, task: str, body: bytes, **header: Any) -> dict[str, Any]:
        """What a task of `rag.ingest.parser_tasks` makes of `body`. Raises IngestError."""
        ...
