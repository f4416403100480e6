"""Repair of a library: pages left incomplete by a killed process (`sweep`), and outside damage (`audit`).

An audit checks that every page has its chunks, every chunk its page and text, and that replicas agree on the pages.
Commits never leave such damage, so it is found from the data and not from a log.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from qdrant_client import QdrantClient, models

from rag.store.qdrant.client import Server
from rag.store.qdrant.commit import Committer
from rag.store.qdrant.records import ORDER, is_damaged, is_removed, match, walk
from rag.store.qdrant.server import is_replicated
from rag.store.values import Audit

log = logging.getLogger(__name__)

_TOMBSTONE_AGE = timedelta(days=30)


def sweep(client: QdrantClient, pages: str, chunks: str, committer: Committer, *, before: float | None) -> int:
    """Settle every page that needs it; return how many did.

    `before` (Unix time) spares later chunks and versions: on a server they may belong to another process's running
    commit.
    """
    unsettled_pages = walk(client, pages, models.Filter(must=[match("settled", False)]), payload=["url_hash"])
    hashes = {record.payload["url_hash"] for record in unsettled_pages if record.payload}
    hashes |= committer.versions.unsettled_pages(before)
    hashes |= _pages_with_leftovers(client, chunks, before)
    for url_hash in hashes:
        committer.settle(url_hash)
    _delete_tombstones(client, pages, everything=before is None)
    if hashes:
        log.info("Repaired %d pages that a stopped process left half done", len(hashes))
    return len(hashes)


def _delete_tombstones(client: QdrantClient, pages: str, *, everything: bool) -> None:
    """Delete tombstones of removed pages: immediately if nobody else writes, else after a month."""
    oldest = (datetime.now(UTC) - _TOMBSTONE_AGE).isoformat()
    removed = models.Filter(must=[match("removed", True), match("settled", True)])
    for record in walk(client, pages, removed, payload=["removed_at", "rev"]):
        data = record.payload or {}
        if everything or data["removed_at"] < oldest:
            rev = models.FieldCondition(key="rev", match=models.MatchValue(value=data["rev"]))
            unchanged = models.Filter(must=[models.HasIdCondition(has_id=[record.id]), rev])
            client.delete(pages, models.FilterSelector(filter=unchanged), ordering=ORDER)


def _pages_with_leftovers(client: QdrantClient, chunks: str, before: float | None) -> set[str]:
    """Return hashes of pages with inactive chunks, none of which was written after `before`."""
    stale: set[str] = set()
    recent: set[str] = set()
    leftover = models.Filter(must=[match("metadata.active", False)], must_not=[match("metadata.left_out", True)])
    for record in walk(client, chunks, leftover, payload=["metadata"]):
        data = (record.payload or {})["metadata"]
        is_recent = before is not None and data["written"] > before
        (recent if is_recent else stale).add(data["url_hash"])
    return stale - recent


_CHUNK_FIELDS = tuple(f"metadata.{name}" for name in ("url", "url_hash", "generation", "active", "left_out", "written"))
_TEXT_FIELDS = ("page_content", "metadata.text_hash")
_BATCH = 1000  # records per call
_RECHECK_DELAY = 1.0  # seconds until a record that seems to differ is read again
_COMMIT_SECONDS = 600.0  # seconds for which inactive chunks may belong to a running commit


def audit(client: QdrantClient, pages: str, chunks: str, committer: Committer, *, deep: bool) -> Audit:
    """Compare records with chunks, and repair. Without `deep`, do so only if the total numbers differ.

    With `deep`, first compare replicas: a record that differs is rewritten to all of them. Chunks with damaged text are
    deleted, so their page counts as incomplete from then on.
    """
    forked = committer.reconcile(_find_forked(client, pages)) if deep and isinstance(client, Server) else 0
    records = {
        str(data["url_hash"]): (str(data["generation"]), int(data["chunks"]))
        for record in walk(client, pages, payload=["url_hash", "generation", "chunks", "removed"])
        if not is_removed(record) and (data := record.payload)
    }
    if not deep and _count(client, chunks) == sum(count for _, count in records.values()):
        return Audit()
    counts: Counter[tuple[str, str]] = Counter()
    damaged: dict[Any, str] = {}
    for point in walk(client, chunks, payload=[*_CHUNK_FIELDS, *(_TEXT_FIELDS if deep else ())]):
        data = (point.payload or {})["metadata"]
        if deep and is_damaged(point.payload or {}):
            damaged[point.id] = data["url"]
        elif data["active"] or data.get("left_out") or data["written"] < time.time() - _COMMIT_SECONDS:
            counts[data["url_hash"], data["generation"]] += 1
    if damaged:
        client.delete(chunks, models.PointIdsList(points=list(damaged)))
    lacking = [url_hash for url_hash, (generation, count) in records.items() if counts[url_hash, generation] < count]
    surplus = {url_hash for url_hash, generation in counts if generation != records.get(url_hash, ("", 0))[0]}
    result = Audit(sum(map(committer.mark_lost, lacking)), len(surplus), tuple(dict.fromkeys(damaged.values())), forked)
    for url_hash in surplus:
        committer.settle(url_hash)
    if lacking or surplus:
        log.warning("%d pages lacked chunks, %d had chunks that are not theirs", result.lacking, result.surplus)
    for url in result.damaged:
        log.warning("the text of %s was damaged: it must be taken in again", url)
    return result


def _find_forked(client: Server, pages: str) -> list[Any]:
    """Return the ids of records that differ between replicas; none while a replica is down.

    A server omits records that its replicas disagree on, and briefly those being written.
    """
    if not is_replicated(client, pages):
        return []
    forked = _find_disputed(client, pages, [record.id for record in walk(client, pages, payload=False)])
    if not forked:
        return []
    time.sleep(_RECHECK_DELAY)
    return _find_disputed(client, pages, forked)


def _find_disputed(client: Server, pages: str, ids: Sequence[Any]) -> list[Any]:
    agreed: set[Any] = set()
    for at in range(0, len(ids), _BATCH):
        batch = ids[at : at + _BATCH]
        state = ["rev", "recent", "generation", "left_out", "removed"]
        records = client.retrieve(pages, batch, with_payload=state, consistency=models.ReadConsistencyType.ALL)
        agreed |= {record.id for record in records}
    return [record_id for record_id in ids if record_id not in agreed]


def _count(client: QdrantClient, chunks: str) -> int:
    """Count the chunks of pages, without those of a running commit."""
    either = models.Filter(should=[match("metadata.active", True), match("metadata.left_out", True)])
    return client.count(chunks, count_filter=either, exact=True).count
