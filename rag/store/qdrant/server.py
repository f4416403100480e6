"""Server diagnostics for operators: version, nodes, dead replicas and their effects, contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from qdrant_client import models

from rag.store.qdrant.client import Server, version_of
from rag.store.qdrant.records import DENSE
from rag.types import Notice

_RECOMMENDED = (1, 19)
_LIMIT = 100  # libraries of three collections, each about 10 MB plus files even if empty
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_PREFIX = "pagelight."
_Copies = list[tuple[int, int, models.ReplicaState]]


def inspect(client: Server) -> Iterator[tuple[bool, Notice]]:
    """Yield pairs of health and message; purely informative ones are healthy. Raises StoreError."""
    version = client.info().version
    names = sorted(item.name for item in client.get_collections().collections if item.name.startswith(_PREFIX))
    libraries = sum(name.endswith(".pages") for name in names)
    nodes, silent = _nodes(client)
    params = {"version": version, "nodes": nodes, "libraries": libraries, "collections": len(names), "most": _LIMIT}
    yield True, Notice("doctor_server", params)
    if (version_of(version) or _RECOMMENDED) < _RECOMMENDED:
        yield True, Notice("doctor_server_old", {"version": version})
    if address := _plain_address(client):
        yield True, Notice("doctor_server_plain", {"url": address})
    copies = {name: _copies(client, name) for name in names}
    dead = [*silent.values(), *(item for name in names for item in _describe_dead(name, copies[name]))]
    if dead:
        yield False, Notice("doctor_server_dead", {"count": len(dead), "what": "; ".join(dead[:_LIMIT])})
    if unread := [name for name in names if not min(_count_readable(copies[name], silent).values(), default=1)]:
        yield False, Notice("doctor_server_unread", {"what": "; ".join(unread[:_LIMIT])})
    readable = [name for name in names if name not in unread]
    if unwritten := [name for name in readable if not _is_writable(client, name, copies[name], silent)]:
        yield False, Notice("doctor_server_unwritten", {"what": "; ".join(unwritten[:_LIMIT])})
    if differences := [text for name in readable if (text := _describe_difference(client, name))]:
        yield True, Notice("doctor_server_layout", {"count": len(differences), "what": "; ".join(differences[:_LIMIT])})


def is_replicated(client: Server, name: str) -> bool:
    """Return whether each shard of the collection has several copies, all of them active."""
    copies = _copies(client, name)
    readable = _count_readable(copies, _nodes(client)[1]).values()
    return min(readable, default=0) > 1 and sum(readable) == len(copies)


def _nodes(client: Server) -> tuple[int, dict[int, str]]:
    """Return the number of nodes, and the ids and addresses of those the queried node can't reach."""
    status: Any = client.cluster_status()
    failures = {address.rstrip("/") for address in getattr(status, "message_send_failures", ())}
    peers = {int(node): peer.uri.rstrip("/") for node, peer in getattr(status, "peers", {}).items()}
    return len(peers) or 1, {node: uri for node, uri in peers.items() if uri in failures}


def _plain_address(client: Server) -> str:
    """Return the remote address to which the key is sent unencrypted; empty if there is none."""
    if not client.has_key:
        return ""
    return next((str(url) for url in client.addresses if url.scheme == "http" and url.host not in _LOCAL_HOSTS), "")


def _copies(client: Server, name: str) -> _Copies:
    """Return the shard, node and state of each copy of a collection's shards."""
    info = client.collection_cluster_info(name)
    shards: list[Any] = [*info.local_shards, *info.remote_shards]
    return [(shard.shard_id, getattr(shard, "peer_id", info.peer_id), shard.state) for shard in shards]


def _describe_dead(name: str, copies: _Copies) -> Iterator[str]:
    """Yield a description of each inactive copy of a collection."""
    for shard, node, state in copies:
        if state != models.ReplicaState.ACTIVE:
            yield f"{name}, shard {shard} on node {node}: {state}"


def _count_readable(copies: _Copies, silent: Collection[int]) -> Counter[int]:
    """Count the readable copies of each shard."""
    readable = Counter(dict.fromkeys((shard for shard, _, _ in copies), 0))
    readable.update(s for s, node, state in copies if state == models.ReplicaState.ACTIVE and node not in silent)
    return readable


def _is_writable(client: Server, name: str, copies: _Copies, silent: Collection[int]) -> bool:
    """Return whether enough copies of each shard are there to confirm a write."""
    factor = client.get_collection(name).config.params.write_consistency_factor or 1
    total = Counter(shard for shard, _, _ in copies)
    return all(count >= min(factor, total[shard]) for shard, count in _count_readable(copies, silent).items())


def _describe_difference(client: Server, name: str) -> str:
    """Describe how a collection differs from the settings; empty if it does not."""
    config = client.get_collection(name).config
    dense = config.params.vectors.get(DENSE) if isinstance(config.params.vectors, dict) else None
    options = client.layout.chunks if dense else client.layout.records
    pairs = [(key, getattr(config.params, key), value) for key, value in options.items() if hasattr(config.params, key)]
    if dense:
        wants_fewer = options["quantization_config"] is not None
        pairs += [("on_disk", bool(dense.on_disk), bool(client.layout.on_disk))]
        pairs += [("quantization", config.quantization_config is not None, wants_fewer)]
    differences = [f"{key} {actual} (wanted {value})" for key, actual, value in pairs if actual != value]
    return f"{name}: {', '.join(differences)}" if differences else ""
