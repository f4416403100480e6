"""A library on a server in strict mode, and what the server reports about itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rag.config import load_settings
from rag.locales import say
from rag.store.qdrant.client import Server
from rag.store.qdrant.health import inspect
from rag.store.qdrant.library import open_library
from rag.store.qdrant.records import page_id, remove_library
from rag.store.values import Audit, wait_limit
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
    library.set_excluded([pages[1].url_hash], True)
    library.remove([pages[2].url_hash])
    library.update_record(pages[0])
    library.sweep()
    one = draft("a", version=1)
    found = library.search(dense=one.dense[0], sparse=one.sparse[0], limit=5, prefetch=10)
    assert {hit.passage.url_hash for hit in found} == {pages[0].url_hash}
    assert library.excluded_pages() == {pages[1].url_hash}
    assert (library.page_count(), library.chunk_count()) == (2, 4)
    assert len(library.versions(pages[0].url_hash)) == 2
    assert library.pages_with_text(draft("b").page.text_hash)
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


def copies(*states: str) -> dict[str, object]:
    """Return what the first of as many nodes as states reports of a collection with one shard."""
    local = [{"shard_id": 0, "points_count": 3, "state": states[0]}] if states[0] else []
    remote = [{"shard_id": 0, "peer_id": node, "state": state} for node, state in enumerate(states[1:], 2)]
    told = {"peer_id": 1, "shard_count": 1, "local_shards": local, "remote_shards": remote, "shard_transfers": []}
    return {"status": 200, "body": json.dumps({"result": told})}


def second_node_dies(server: QdrantServer) -> None:
    status = {
        "status": "enabled",
        "peer_id": 1,
        "peers": {"1": {"uri": "http://n1:6335"}, "2": {"uri": "http://n2:6335"}},
        "raft_info": {"term": 1, "commit": 1, "pending_operations": 0, "is_voter": True},
        "consensus_thread_status": {"consensus_thread_status": "working", "last_update": "2026-01-01T00:00:00Z"},
        "message_send_failures": {"http://n2:6335": {"count": 3}},
    }
    server.add_rule("GET /cluster$", status=200, body=json.dumps({"result": status}))


def test_what_is_dead_or_made_otherwise_is_named(server: QdrantServer) -> None:
    client = connected(server, qdrant_replicas=2, qdrant_on_disk=True)
    server.add_rule("GET /collections/pagelight.told.pages/cluster", **copies("Active", "Dead"))
    second_node_dies(server)
    server.add_rule("GET /$", status=200, body=json.dumps({"title": "qdrant", "version": "1.18.3"}), times=2)
    findings = told(client)
    assert [well for well, _ in findings] == [True, True, False, True]
    assert "Qdrant 1.18.3, 2 nodes" in findings[0][1]
    assert "Use 1.19 or newer" in findings[1][1]
    assert "http://n2:6335; pagelight.told.pages, shard 0 on node 2: Dead" in findings[2][1]
    assert "pagelight.told.pages: replication_factor 1 (wanted 2)" in findings[3][1]
    assert "on_disk False (wanted True)" in findings[3][1]
    client.close()


def test_what_a_node_that_is_down_holds_up_is_named(server: QdrantServer) -> None:
    client = connected(server)
    open_library(client, "held", MODEL, DIMENSION)
    held = "pagelight.held."
    server.add_rule(f"GET /collections/{held}pages/cluster", **copies("", "Active"))
    server.add_rule(f"GET /collections/{held}versions/cluster", **copies("Active", "Active"))
    server.add_rule(f"GET /collections/{held}pages$", times=-1, status=500)
    config = client.get_collection(f"{held}versions").model_dump(mode="json")
    config["config"]["params"]["write_consistency_factor"] = 2
    server.add_rule(f"GET /collections/{held}versions$", times=-1, status=200, body=json.dumps({"result": config}))
    second_node_dies(server)
    sentences = [sentence for well, sentence in told(client) if not well]
    assert sentences[1:] == [
        f"Can't be read or written until those nodes are back: {held}pages.",
        f"Can't be written until those nodes are back (QDRANT_WRITE_CONSISTENCY): {held}versions.",
    ]
    server.reset()
    client.close()


def test_writes_go_on_when_the_node_that_orders_them_is_gone(
    server: QdrantServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = connected(server)
    library = open_library(client, "leader", MODEL, DIMENSION)
    first = draft("a").commit(library)
    server.fail_leader()
    with wait_limit(5):
        draft("a", version=1).commit(library)
        library.update_record(first)
        library.set_excluded([first.url_hash], True)
        library.remove([first.url_hash])
        library.sweep()
        remove_library(client, "leader")
    assert "(a node of the cluster is down)" in caplog.text
    assert "transport" not in caplog.text and "code:" not in caplog.text
    server.reset()
    client.close()


def test_a_record_that_differs_between_replicas_is_written_again(server: QdrantServer) -> None:
    """Points on which replicas disagree are missing from a read with consistency "all"."""
    client = connected(server)
    library = open_library(client, "forked", MODEL, DIMENSION)
    pages = [draft(key).commit(library) for key in ("a", "b")]
    before = client.retrieve(library.pages_collection, [page_id(pages[0].url_hash)])[0].payload
    server.add_rule(f"GET /collections/{library.pages_collection}/cluster", times=2, **copies("Active", "Active"))
    incomplete = {"result": [{"id": page_id(pages[1].url_hash), "payload": {}}]}
    asked = f"POST /collections/{library.pages_collection}/points$"
    server.add_rule(asked, times=2, query="consistency=all", status=200, body=json.dumps(incomplete))
    assert library.audit(deep=True) == Audit(diverged=1)
    (record,) = client.retrieve(library.pages_collection, [page_id(pages[0].url_hash)])
    assert before and record.payload and record.payload["rev"] > before["rev"]
    assert {**record.payload, "rev": 0} == {**before, "rev": 0}
    assert library.audit(deep=True) == Audit()
    assert len(library.chunks(pages[0].url_hash)) == pages[0].chunks
    client.close()
