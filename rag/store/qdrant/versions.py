"""Earlier texts of pages.

A version is written before the commit that replaces its text, under an id derived from page and number, and stays
unsettled until the commit succeeds. So a version whose number is not below the current text's is the leftover of a
failed commit: it is hidden, overwritten by the next commit, and deleted by the sweep.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_client import QdrantClient, models

from rag.store.qdrant.records import match, match_any, version_id, walk
from rag.types import Page, PageVersion

MAX_VERSIONS = 20
"""Maximum number of versions of a page, including the current one."""


class Versions:
    """The versions of one library's pages. Callers must lock the pages."""

    def __init__(self, client: QdrantClient, collection: str) -> None:
        self.collection = collection
        self._client = client

    def save(self, page: Page, moment: str) -> None:
        """Save `page` with its text, which a commit at `moment` (ISO 8601) is about to replace."""
        payload = {
            "url_hash": page.url_hash,
            "number": page.version,
            "title": page.title,
            "text": page.text,
            "text_hash": page.text_hash,
            "since": self._text_since(page),
            "until": moment,
            "written": time.time(),
            "settled": False,
        }
        point = models.PointStruct(id=version_id(page.url_hash, page.version), vector={}, payload=payload)
        self._client.upsert(self.collection, [point], wait=True)

    def settle_new(self, replaced: Sequence[tuple[str, int]]) -> None:
        """Settle versions (page, number) after their commits; delete the oldest above MAX_VERSIONS."""
        if not replaced:
            return
        ids: list[Any] = [version_id(*version) for version in replaced]
        condition = models.Filter(must=[models.HasIdCondition(has_id=ids)])
        self._client.set_payload(self.collection, {"settled": True}, points=condition)
        surplus: list[Any] = [version_id(key, n + 1 - MAX_VERSIONS) for key, n in replaced if n >= MAX_VERSIONS]
        if surplus:
            self._client.delete(self.collection, surplus)

    def settle(self, url_hash: str, current: int | None) -> None:
        """Delete invalid versions of a page whose current text has number `current`; all if it is None."""
        if current is None:
            self.delete([url_hash])
            return
        scope = models.Filter(must=[match("url_hash", url_hash)])
        numbers = [_number(record) for record in walk(self._client, self.collection, scope, payload=["number"])]
        surplus: list[Any] = [version_id(url_hash, n) for n in numbers if not current - MAX_VERSIONS < n < current]
        if surplus:
            self._client.delete(self.collection, surplus)
        self._client.set_payload(self.collection, {"settled": True}, points=models.FilterSelector(filter=scope))

    def delete(self, url_hashes: Sequence[str]) -> None:
        """Delete all versions of these pages."""
        scope = models.Filter(must=[match_any("url_hash", list(url_hashes))])
        self._client.delete(self.collection, models.FilterSelector(filter=scope))

    def unsettled_pages(self, before: float | None) -> set[str]:
        """Return hashes of pages with versions of an interrupted commit. `before` is as in `health.sweep`."""
        scope = models.Filter(must=[match("settled", False)])
        payloads = [
            r.payload or {} for r in walk(self._client, self.collection, scope, payload=["url_hash", "written"])
        ]
        return {data["url_hash"] for data in payloads if before is None or data["written"] <= before}

    def list_versions(self, page: Page) -> list[PageVersion]:
        """Return the versions of `page`, which must include its text, oldest first; the last is the current one."""
        scope = models.Filter(must=[match("url_hash", page.url_hash)])
        rows = [record.payload or {} for record in walk(self._client, self.collection, scope)]
        earlier = sorted((row for row in rows if row["number"] < page.version), key=lambda row: int(row["number"]))
        since = earlier[-1]["until"] if earlier else page.added_at
        current = PageVersion(page.url_hash, page.version, page.title, page.text, page.text_hash, since)
        return [*map(_version, earlier), current]

    def _text_since(self, page: Page) -> str:
        """Return when the page got its current text."""
        if page.version == 1:
            return page.added_at
        ids = [version_id(page.url_hash, page.version - 1)]
        points = self._client.retrieve(self.collection, ids, with_payload=["until"])
        return str((points[0].payload or {})["until"]) if points else page.added_at


def _number(record: models.Record) -> int:
    return int((record.payload or {})["number"])


def _version(payload: Mapping[str, Any]) -> PageVersion:
    names = ("url_hash", "number", "title", "text", "text_hash", "since", "until")
    return PageVersion(**{name: payload[name] for name in names})
