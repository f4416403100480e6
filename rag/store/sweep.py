"""Repairs after a kill: records and versions that are not settled, and chunks that are not active.

A commit or removal that was cut off always leaves one of these marks, so three indexed filters find
all of it, however large the library is. The chunks of a page that a person leaves out of answers are
inactive too; they say so.
"""

from __future__ import annotations

import logging

from qdrant_client import QdrantClient, models

from rag.store.commit import Committer
from rag.store.records import match, walk

log = logging.getLogger(__name__)


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
    if found:
        log.info("Repaired %d pages that a stopped process left half done", len(found))
    return len(found)


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
