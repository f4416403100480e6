"""Server diagnostics for operators: version, nodes, dead replicas, contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qdrant_client import models

from rag.store.qdrant.client import Server, version_of
from rag.store.qdrant.records import DENSE, LIBRARIES
from rag.store.qdrant.registry import list_libraries
from rag.types import Notice

_WELL = (1, 19)
_STOOD = 100  # libraries of three collections, each of which takes some 10 MB and files even when it is empty
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_OURS = "pagelight."


def inspect(client: Server) -> Iterator[tuple[bool, Notice]]:
    """Return pairs of health and message; purely informative ones are healthy. Raises StoreError."""
    version = client.info().version
    names = sorted(one.name for one in client.get_collections().collections if one.name.startswith(_OURS))
    there = list_libraries(client) if LIBRARIES in names else []
    nodes, silent = _nodes(client)
    params = {"version": version, "nodes": nodes, "libraries": len(there), "collections": len(names), "most": _STOOD}
    yield True, Notice("doctor_server", params)
    if (version_of(version) or _WELL) < _WELL:
        yield True, Notice("doctor_server_old", {"version": version})
    if plain := _unprotected(client):
        yield True, Notice("doctor_server_plain", {"url": plain})
    dead = [*silent, *(one for name in names for one in _dead(client, name))]
    if dead:
        yield False, Notice("doctor_server_dead", {"count": len(dead), "what": "; ".join(dead[:_STOOD])})
    if other := [told for name in names if (told := _difference(client, name))]:
        yield True, Notice("doctor_server_layout", {"count": len(other), "what": "; ".join(other[:_STOOD])})


def _nodes(client: Server) -> tuple[int, list[str]]:
    """Return the number of nodes, and the addresses of those the queried node can't reach."""
    status: Any = client.cluster_status()
    return len(getattr(status, "peers", ())) or 1, sorted(getattr(status, "message_send_failures", ()))


def _unprotected(client: Server) -> str:
    """The address of another machine to which the key goes unencrypted; empty for none."""
    if not client.has_key:
        return ""
    return next((str(one) for one in client.addresses if one.scheme == "http" and one.host not in _LOCAL), "")


def _dead(client: Server, name: str) -> Iterator[str]:
    """The copies of a collection that do not take part."""
    told = client.collection_cluster_info(name)
    shards: list[Any] = [*told.local_shards, *told.remote_shards]
    for shard in shards:
        if shard.state != models.ReplicaState.ACTIVE:
            yield f"{name}, shard {shard.shard_id} on node {getattr(shard, 'peer_id', told.peer_id)}: {shard.state}"


def _difference(client: Server, name: str) -> str:
    """In what a collection is not as the settings would make it; empty for nothing."""
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
