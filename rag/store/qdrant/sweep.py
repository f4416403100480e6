"""Repairs after a kill: records and versions that are not settled, and chunks that are not active.

A commit or removal that was cut off always leaves one of these marks, so three indexed filters find
all of it, however large the library is. The chunks of a page that a person leaves out of answers are
inactive too; they say so. What is left of pages that were removed goes once no writer can remember them.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from qdrant_client import QdrantClient, models

from rag.store.qdrant.commit import Committer
from rag.store.qdrant.records import ORDER, match, walk

log = logging.getLogger(__name__)
_KEPT = timedelta(days=30)


def sweep(client: QdrantClient, pages: str, chunks: str, committer: Committer, *, before: float | None) -> int:
    """Settle every page that needs it; returns how many did.

    `before` (Unix time) leaves chunks and versions alone that were written later: on a server they may belong to a
    commit that another process is in the midst of.
    """
    unsettled = walk(client, pages, models.Filter(must=[match("settled", False)]), payload=["url_hash"])
    found = {record.payload["url_hash"] for record in unsettled if record.payload}
    found |= committer.versions.unsettled(before)
    found |= _inactive(client, chunks, before)
    for url_hash in found:
        committer.settle(url_hash)
    _bury(client, pages, everything=before is None)
    if found:
        log.info("Repaired %d pages that a stopped process left half done", len(found))
    return len(found)


def _bury(client: QdrantClient, pages: str, *, everything: bool) -> None:
    """Delete what is left of pages that were removed: at once where nobody else writes, else when it is a month old."""
    oldest = (datetime.now(UTC) - _KEPT).isoformat()
    removed = models.Filter(must=[match("removed", True), match("settled", True)])
    for record in walk(client, pages, removed, payload=["removed_at", "rev"]):
        data = record.payload or {}
        if everything or data["removed_at"] < oldest:
            rev = models.FieldCondition(key="rev", match=models.MatchValue(value=data["rev"]))
            same = models.Filter(must=[models.HasIdCondition(has_id=[record.id]), rev])
            client.delete(pages, models.FilterSelector(filter=same), ordering=ORDER)


def _inactive(client: QdrantClient, chunks: str, before: float | None) -> set[str]:
    """Hashes of the pages with inactive chunks, none of which was written after `before`."""
    found: set[str] = set()
    recent: set[str] = set()
    leftover = models.Filter(must=[match("metadata.active", False)], must_not=[match("metadata.left_out", True)])
    for record in walk(client, chunks, leftover, payload=["metadata"]):
        data = (record.payload or {})["metadata"]
        late = before is not None and data["written"] > before
        (recent if late else found).add(data["url_hash"])
    return found - recent
