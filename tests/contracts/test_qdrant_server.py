"""Fault injection of the Qdrant stand-in, beyond the contract of every store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from tests.support.qdrant_server import QdrantServer, count_sequential

POINT = models.PointStruct(id=1, vector={}, payload={"rev": 1})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QdrantServer]:
    with QdrantServer(tmp_path_factory.mktemp("server"), key="k", strict=True) as running:
        yield running


@pytest.fixture
def client(server: QdrantServer) -> Iterator[QdrantClient]:
    with pytest.warns(UserWarning, match="insecure"):
        made = QdrantClient(url=server.url, api_key="k", check_compatibility=False)
    words = {"words": models.SparseVectorParams()}
    made.create_collection("a", {}, words, shard_number=2, metadata={"of": "us"})
    yield made
    made.delete_collection("a")
    made.close()


def test_it_refuses_what_a_server_refuses(server: QdrantServer, client: QdrantClient) -> None:
    with pytest.raises(UnexpectedResponse, match="Collection `a` already exists!") as exists:
        client.create_collection("a", vectors_config={})
    with pytest.raises(UnexpectedResponse, match="Not found: Collection `b` doesn") as missing:
        client.count("b")
    by_key = models.Filter(must=[models.FieldCondition(key="rev", match=models.MatchValue(value=1))])
    with pytest.raises(UnexpectedResponse, match="Index required but not found for") as strict:
        client.delete("a", by_key)
    with pytest.raises(UnexpectedResponse, match="Invalid API key or JWT") as unknown:
        QdrantClient(url=server.url, check_compatibility=False).get_collections()
    assert [error.value.status_code for error in (exists, missing, strict, unknown)] == [409, 404, 400, 401]
    client.create_payload_index("a", "rev", models.PayloadSchemaType.INTEGER)
    client.upsert("a", [POINT], update_filter=by_key)
    client.delete("a", by_key)
    assert client.count("a").count == 0


def test_a_collection_reports_its_options(client: QdrantClient) -> None:
    config = client.get_collection("a").config
    assert (config.params.shard_number, config.params.replication_factor) == (2, 1)
    assert config.metadata == {"of": "us"}


def test_rules_make_calls_fail_and_calls_are_logged(server: QdrantServer, client: QdrantClient) -> None:
    server.reset()
    server.add_rule("PUT .*/points", drop=True)
    server.add_rule("POST .*/count", status=502, body="<html>Bad gateway</html>")
    with pytest.raises(ResponseHandlingException):
        client.upsert("a", [POINT])
    with pytest.raises(UnexpectedResponse, match="Bad gateway"):
        client.count("a")
    assert client.count("a").count == 1
    assert [call for call, _, _ in server.calls()] == [
        "PUT /collections/a/points",
        *["POST /collections/a/points/count"] * 2,
    ]


def test_what_was_answered_outlives_it(server: QdrantServer, client: QdrantClient) -> None:
    client.upsert("a", [POINT])
    server.kill()
    with pytest.raises(ResponseHandlingException):
        client.count("a")
    server.start()
    assert client.retrieve("a", [1])[0].payload == {"rev": 1}


def test_sequential_calls_are_those_that_waited_for_others() -> None:
    calls = [("a", 0.0, 2.0), ("b", 1.0, 4.0), ("c", 1.5, 2.5), ("d", 4.0, 5.0)]
    assert count_sequential(calls) == 2
    assert count_sequential([]) == 0
