"""A library on a server in strict mode, and what the server tells of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rag.config import load_settings
from rag.locales import say
from rag.store.qdrant.client import Server
from rag.store.qdrant.library import open_library
from rag.store.qdrant.server import inspect
from tests.store.support import DIMENSION, MODEL, draft
from tests.support.qdrant_server import QdrantServer

KEY = "secret-key"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    with QdrantServer(tmp_path_factory.mktemp("server"), key=KEY, strict=True) as running:
        yield running


def connected(server: QdrantServer, **settings: object) -> Server:
    return Server(load_settings(None, qdrant_url=server.url, qdrant_api_key=KEY, **settings))


def told(client: Server) -> list[tuple[bool, str]]:
    return [(well, say(notice, "en")) for well, notice in inspect(client)]


def test_strict_mode_lets_everything_through(server: QdrantServer) -> None:
    client = connected(server)
    library = open_library(client, "strict", MODEL, DIMENSION)
    pages = [draft(key).commit(library) for key in ("a", "b", "c")]
    draft("a", version=1).commit(library)
    library.set_left_out([pages[1].url_hash], True)
    library.remove([pages[2].url_hash])
    library.update_record(pages[0])
    library.sweep()
    one = draft("a", version=1)
    found = library.search(dense=one.dense[0], sparse=one.sparse[0], limit=5, prefetch=10)
    assert {hit.passage.url_hash for hit in found} == {pages[0].url_hash}
    assert library.left_out() == {pages[1].url_hash}
    assert (library.page_count(), library.chunk_count()) == (2, 4)
    assert len(library.versions(pages[0].url_hash)) == 2
    assert library.same_text(draft("b").page.text_hash)
    assert library.clear() == 2
    client.close()


def test_a_server_tells_what_there_is(server: QdrantServer) -> None:
    client = connected(server)
    open_library(client, "told", MODEL, DIMENSION)
    ((well, sentence),) = told(client)
    assert well
    assert sentence.startswith("Qdrant 1.19.0, 1 node, ")
    assert "Recommended maximum: 100 libraries per server" in sentence
    client.close()


def test_what_is_dead_or_made_otherwise_is_named(server: QdrantServer) -> None:
    client = connected(server, qdrant_replicas=2, qdrant_on_disk=True)
    shard = {"shard_id": 0, "points_count": 3, "state": "Active"}
    dead = {"shard_id": 0, "peer_id": 2, "state": "Dead"}
    cluster = {"peer_id": 1, "shard_count": 1, "local_shards": [shard], "remote_shards": [dead], "shard_transfers": []}
    server.rule("GET /collections/pagelight.told.pages/cluster", status=200, body=json.dumps({"result": cluster}))
    status = {
        "status": "enabled",
        "peer_id": 1,
        "peers": {"1": {"uri": "http://n1:6335"}, "2": {"uri": "http://n2:6335"}},
        "raft_info": {"term": 1, "commit": 1, "pending_operations": 0, "is_voter": True},
        "consensus_thread_status": {"consensus_thread_status": "working", "last_update": "2026-01-01T00:00:00Z"},
        "message_send_failures": {"http://n2:6335": {"count": 3}},
    }
    server.rule("GET /cluster$", status=200, body=json.dumps({"result": status}))
    server.rule("GET /$", status=200, body=json.dumps({"title": "qdrant", "version": "1.18.3"}), times=2)
    findings = told(client)
    assert [well for well, _ in findings] == [True, True, False, True]
    assert "Qdrant 1.18.3, 2 nodes" in findings[0][1]
    assert "Use 1.19 or newer" in findings[1][1]
    assert "http://n2:6335; pagelight.told.pages, shard 0 on node 2: Dead" in findings[2][1]
    assert "pagelight.told.pages: replication_factor 1 (wanted 2)" in findings[3][1]
    assert "on_disk False (wanted True)" in findings[3][1]
    client.close()
