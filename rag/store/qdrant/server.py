"""Server diagnostics for operators: version, nodes, dead replicas and their effects, contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from qdrant_client import models

from rag.store.qdrant.client import Server, version_of
from rag.store.qdrant.records import DENSE
from rag.types import Notice

_WELL = (1, 19)
_STOOD = 100  # libraries of three collections, each about 10 MB plus files even if empty
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_OURS = "pagelight."
_Copies = list[tuple[int, int, models.ReplicaState]]


def inspect(client: Server) -> Iterator[tuple[bool, Notice]]:
    """Yield pairs of health and message; purely informative ones are healthy. Raises StoreError."""
    version = client.info().version
    names = sorted(one.name for one in client.get_collections().collections if one.name.startswith(_OURS))
    libraries = sum(name.endswith(".pages") for name in names)
    nodes, silent = _nodes(client)
    params = {"version": version, "nodes": nodes, "libraries": libraries, "collections": len(names), "most": _STOOD}
    yield True, Notice("doctor_server", params)
    if (version_of(version) or _WELL) < _WELL:
        yield True, Notice("doctor_server_old", {"version": version})
    if plain := _unprotected(client):
        yield True, Notice("doctor_server_plain", {"url": plain})
    copies = {name: _copies(client, name) for name in names}
    dead = [*silent.values(), *(one for name in names for one in _dead(name, copies[name]))]
    if dead:
        yield False, Notice("doctor_server_dead", {"count": len(dead), "what": "; ".join(dead[:_STOOD])})
    if unread := [name for name in names if not min(_alive(copies[name], silent).values(), default=1)]:
        yield False, Notice("doctor_server_unread", {"what": "; ".join(unread[:_STOOD])})
    readable = [name for name in names if name not in unread]
    if unwritten := [name for name in readable if not _is_writable(client, name, copies[name], silent)]:
        yield False, Notice("doctor_server_unwritten", {"what": "; ".join(unwritten[:_STOOD])})
    if other := [told for name in readable if (told := _difference(client, name))]:
        yield True, Notice("doctor_server_layout", {"count": len(other), "what": "; ".join(other[:_STOOD])})


def is_replicated(client: Server, name: str) -> bool:
    """Return whether each shard of the collection has several copies, all of them active."""
    copies = _copies(client, name)
    alive = _alive(copies, _nodes(client)[1]).values()
    return min(alive, default=0) > 1 and sum(alive) == len(copies)


def _nodes(client: Server) -> tuple[int, dict[int, str]]:
    """Return the number of nodes, and the ids and addresses of those the queried node can't reach."""
    status: Any = client.cluster_status()
    failures = {one.rstrip("/") for one in getattr(status, "message_send_failures", ())}
    peers = {int(node): peer.uri.rstrip("/") for node, peer in getattr(status, "peers", {}).items()}
    return len(peers) or 1, {node: uri for node, uri in peers.items() if uri in failures}


def _unprotected(client: Server) -> str:
    """Return the remote address to which the key is sent unencrypted; empty if there is none."""
    if not client.has_key:
        return ""
    return next((str(one) for one in client.addresses if one.scheme == "http" and one.host not in _LOCAL), "")


def _copies(client: Server, name: str) -> _Copies:
    """Return the shard, node and state of each copy of a collection's shards."""
    told = client.collection_cluster_info(name)
    shards: list[Any] = [*told.local_shards, *told.remote_shards]
    return [(one.shard_id, getattr(one, "peer_id", told.peer_id), one.state) for one in shards]


def _dead(name: str, copies: _Copies) -> Iterator[str]:
    """Yield a description of each inactive copy of a collection."""
    for shard, node, state in copies:
        if state != models.ReplicaState.ACTIVE:
            yield f"{name}, shard {shard} on node {node}: {state}"


def _alive(copies: _Copies, silent: Collection[int]) -> Counter[int]:
    """Count the readable copies of each shard."""
    alive = Counter(dict.fromkeys((shard for shard, _, _ in copies), 0))
    alive.update(s for s, node, state in copies if state == models.ReplicaState.ACTIVE and node not in silent)
    return alive


def _is_writable(client: Server, name: str, copies: _Copies, silent: Collection[int]) -> bool:
    """Return whether enough copies of each shard are there to confirm a write."""
    wanted = client.get_collection(name).config.params.write_consistency_factor or 1
    total = Counter(shard for shard, _, _ in copies)
    return all(count >= min(wanted, total[shard]) for shard, count in _alive(copies, silent).items())


def _difference(client: Server, name: str) -> str:
    """Describe how a collection differs from the settings; empty if it does not."""
    config = client.get_collection(name).config
    dense = config.params.vectors.get(DENSE) if isinstance(config.params.vectors, dict) else None
    wanted = client.layout.chunks if dense else client.layout.records
    pairs = [(key, getattr(config.params, key), value) for key, value in wanted.items() if hasattr(config.params, key)]
    if dense:
        wants_fewer = wanted["quantization_config"] is not None
        pairs += [("on_disk", bool(dense.on_disk), bool(client.layout.on_disk))]
        pairs += [("quantization", config.quantization_config is not None, wants_fewer)]
    told = [f"{key} {there} (wanted {value})" for key, there, value in pairs if there != value]
    return f"{name}: {', '.join(told)}" if told else ""
