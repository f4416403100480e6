"""Health checks and repairs of libraries and of their server.

`sweep` repairs pages left incomplete by a killed process. `audit` repairs external damage: it checks that every page
has its chunks, that every chunk has its page and text, and that replicas agree on the pages. Commits never cause such
damage, so it compares the data itself. `inspect` reports version, nodes, dead replicas and contents to operators.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from qdrant_client import QdrantClient, models

from rag.store.qdrant.client import Server, version_of
from rag.store.qdrant.commit import Committer
from rag.store.qdrant.records import DENSE, ORDER, is_damaged, is_removed, match, match_ids, walk
from rag.store.values import Audit, batches
from rag.types import Notice

log = logging.getLogger(__name__)

_TOMBSTONE_AGE = timedelta(days=30)


def sweep(committer: Committer, *, before: float | None) -> int:
    """Settle every page that needs it, and delete old tombstones; return how many pages did.

    Chunks and versions written after `before` (Unix time) are spared: on a server they may belong to a commit that is
    still running in another process.
    """
    unsettled = models.Filter(must=[match("settled", False)])
    records = walk(committer.client, committer.pages, unsettled, payload=["url_hash"])
    hashes = {record.payload["url_hash"] for record in records if record.payload}
    hashes |= committer.versions.unsettled_pages(before)
    hashes |= _pages_with_leftovers(committer.client, committer.chunks, before)
    for url_hash in hashes:
        committer.settle(url_hash)
    oldest = (datetime.now(UTC) - _TOMBSTONE_AGE).isoformat()
    removed = models.Filter(must=[match("removed", True), match("settled", True)])
    for record in walk(committer.client, committer.pages, removed, payload=["removed_at", "rev"]):
        data = record.payload or {}
        if before is None or data["removed_at"] < oldest:
            unchanged = models.Filter(must=[match_ids([record.id]), match("rev", data["rev"])])
            committer.client.delete(committer.pages, models.FilterSelector(filter=unchanged), ordering=ORDER)
    if hashes:
        log.info("Repaired %d pages that a stopped process left half done", len(hashes))
    return len(hashes)


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
_RECHECK_DELAY = 1.0  # seconds before a record that seems to differ is read again
_COMMIT_SECONDS = 600.0  # seconds for which inactive chunks may belong to a running commit


def audit(committer: Committer, *, deep: bool) -> Audit:
    """Compare records with chunks, and repair. Without `deep`, do so only if the total numbers differ.

    With `deep`, first compare replicas, and rewrite records that differ. Also delete chunks with damaged text, so that
    their page counts as incomplete.
    """
    client, pages, chunks = committer.client, committer.pages, committer.chunks
    diverged = committer.reconcile(_find_diverged(client, pages)) if deep and isinstance(client, Server) else 0
    records = {
        str(data["url_hash"]): (str(data["generation"]), int(data["chunks"]))
        for record in walk(client, pages, payload=["url_hash", "generation", "chunks", "removed"])
        if not is_removed(record) and (data := record.payload)
    }
    settled = models.Filter(should=[match("metadata.active", True), match("metadata.left_out", True)])
    if not deep and client.count(chunks, count_filter=settled, exact=True).count == sum(n for _, n in records.values()):
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
        client.delete(chunks, list(damaged))
    incomplete = [url_hash for url_hash, (generation, count) in records.items() if counts[url_hash, generation] < count]
    extra = {url_hash for url_hash, generation in counts if generation != records.get(url_hash, ("", 0))[0]}
    result = Audit(
        sum(map(committer.mark_incomplete, incomplete)), len(extra), tuple(dict.fromkeys(damaged.values())), diverged
    )
    for url_hash in extra:
        committer.settle(url_hash)
    if incomplete or extra:
        log.warning("%d pages lacked chunks, %d had chunks that are not theirs", result.incomplete, result.extra)
    for url in result.damaged:
        log.warning("the text of %s was damaged: it must be taken in again", url)
    return result


def _find_diverged(client: Server, pages: str) -> list[Any]:
    """Return the ids of records that differ between replicas; none without replicas, or while one is down.

    With consistency ALL, a server omits records on which its replicas disagree, and briefly those being written.
    """
    copies = _copies(client, pages)
    readable = _count_readable(copies, _nodes(client)[1]).values()
    if min(readable, default=0) < 2 or sum(readable) < len(copies):
        return []
    diverged = _find_disputed(client, pages, [record.id for record in walk(client, pages, payload=False)])
    if not diverged:
        return []
    time.sleep(_RECHECK_DELAY)
    return _find_disputed(client, pages, diverged)


def _find_disputed(client: Server, pages: str, ids: Sequence[Any]) -> list[Any]:
    agreed: set[Any] = set()
    for batch in batches(ids, _BATCH):
        state = ["rev", "recent", "generation", "left_out", "removed"]
        records = client.retrieve(pages, batch, with_payload=state, consistency=models.ReadConsistencyType.ALL)
        agreed |= {record.id for record in records}
    return [record_id for record_id in ids if record_id not in agreed]


# The server

_RECOMMENDED = (1, 19)
_LIMIT = 100  # libraries; each has three collections of about 10 MB plus files even if empty
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_PREFIX = "pagelight."
_Copies = list[tuple[int, int, models.ReplicaState]]


def inspect(client: Server) -> Iterator[tuple[bool, Notice]]:
    """Yield pairs (is healthy, message); purely informative messages count as healthy. Raises StoreError."""
    version = client.info().version
    names = sorted(item.name for item in client.get_collections().collections if item.name.startswith(_PREFIX))
    libraries = sum(name.endswith(".pages") for name in names)
    nodes, unreachable = _nodes(client)
    params = {"version": version, "nodes": nodes, "libraries": libraries, "collections": len(names), "most": _LIMIT}
    yield True, Notice("doctor_server", params)
    if (version_of(version) or _RECOMMENDED) < _RECOMMENDED:
        yield True, Notice("doctor_server_old", {"version": version})
    plain = [str(url) for url in client.addresses if url.scheme == "http" and url.host not in _LOCAL_HOSTS]
    if client.has_key and plain:
        yield True, Notice("doctor_server_plain", {"url": plain[0]})
    copies = {name: _copies(client, name) for name in names}
    dead = [*unreachable.values()]
    for name in names:
        inactive = [copy for copy in copies[name] if copy[2] != models.ReplicaState.ACTIVE]
        dead += [f"{name}, shard {shard} on node {node}: {state}" for shard, node, state in inactive]
    if dead:
        yield False, Notice("doctor_server_dead", {"count": len(dead), "what": "; ".join(dead[:_LIMIT])})
    if unread := [name for name in names if not min(_count_readable(copies[name], unreachable).values(), default=1)]:
        yield False, Notice("doctor_server_unread", {"what": "; ".join(unread[:_LIMIT])})
    readable = [name for name in names if name not in unread]
    if unwritten := [name for name in readable if not _is_writable(client, name, copies[name], unreachable)]:
        yield False, Notice("doctor_server_unwritten", {"what": "; ".join(unwritten[:_LIMIT])})
    if differences := [text for name in readable if (text := _describe_difference(client, name))]:
        yield True, Notice("doctor_server_layout", {"count": len(differences), "what": "; ".join(differences[:_LIMIT])})


def _nodes(client: Server) -> tuple[int, dict[int, str]]:
    """Return the number of nodes, and the addresses by id of those that the queried node can't reach."""
    status: Any = client.cluster_status()
    failures = {address.rstrip("/") for address in getattr(status, "message_send_failures", ())}
    peers = {int(node): peer.uri.rstrip("/") for node, peer in getattr(status, "peers", {}).items()}
    return len(peers) or 1, {node: uri for node, uri in peers.items() if uri in failures}


def _copies(client: Server, name: str) -> _Copies:
    """Return the shard, node and state of each copy of a collection's shards."""
    info = client.collection_cluster_info(name)
    shards: list[Any] = [*info.local_shards, *info.remote_shards]
    return [(shard.shard_id, getattr(shard, "peer_id", info.peer_id), shard.state) for shard in shards]


def _count_readable(copies: _Copies, unreachable: Collection[int]) -> Counter[int]:
    readable = Counter(dict.fromkeys((shard for shard, _, _ in copies), 0))
    readable.update(s for s, node, state in copies if state == models.ReplicaState.ACTIVE and node not in unreachable)
    return readable


def _is_writable(client: Server, name: str, copies: _Copies, unreachable: Collection[int]) -> bool:
    """Return whether enough copies of each shard are available to confirm a write."""
    factor = client.get_collection(name).config.params.write_consistency_factor or 1
    total = Counter(shard for shard, _, _ in copies)
    return all(count >= min(factor, total[shard]) for shard, count in _count_readable(copies, unreachable).items())


def _describe_difference(client: Server, name: str) -> str:
    """Describe how a collection differs from the settings; empty if it does not."""
    config = client.get_collection(name).config
    dense = config.params.vectors.get(DENSE) if isinstance(config.params.vectors, dict) else None
    options = client.layout.chunks if dense else client.layout.records
    pairs = [(key, getattr(config.params, key), value) for key, value in options.items() if hasattr(config.params, key)]
    if dense:
        wants_quantisation = options["quantization_config"] is not None
        pairs += [("on_disk", bool(dense.on_disk), bool(client.layout.on_disk))]
        pairs += [("quantization", config.quantization_config is not None, wants_quantisation)]
    differences = [f"{key} {actual} (wanted {value})" for key, actual, value in pairs if actual != value]
    return f"{name}: {', '.join(differences)}" if differences else ""
