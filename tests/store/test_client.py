"""The database that the settings select, and how a server's failures are reported."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import models

from rag.config import load_settings
from rag.errors import StoreError, StoreUnavailableError
from rag.store.qdrant import client as connection
from rag.store.qdrant.client import Server, connect, is_shared, layout, unavailable_since
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.values import wait_limit

KEY = "secret-key"
LIST = {"result": {"collections": []}, "status": "ok", "time": 0}
Answer = httpx.Response | Exception


class Script:
    """A server that returns the next of its answers for each call to a collection, and works once they are used up."""

    def __init__(self, *answers: Answer, version: str = "1.19.0") -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self._version = version

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path in ("/", "/collections"):
            return httpx.Response(200, json={"title": "qdrant", "version": self._version, **LIST})
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else done(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


def done(request: httpx.Request) -> httpx.Response:
    update = {"operation_id": 1, "status": "completed"}
    counted = request.url.path.endswith("/count")
    batch = request.url.path.endswith("/batch")
    result: Any = {"count": 7} if counted else [update] if batch else update
    return httpx.Response(200, json={"result": result, "status": "ok", "time": 0})


def says(status: int, text: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"status": {"error": text}, "time": 0}, headers=headers)


def server(handler: Callable[[httpx.Request], httpx.Response], url: str = "http://db:6333") -> Server:
    settings = load_settings(None, qdrant_url=url, qdrant_api_key=KEY)
    return Server(settings, transport=httpx.MockTransport(handler))


def points(count: int) -> list[models.PointStruct]:
    return [models.PointStruct(id=number, vector={}, payload={}) for number in range(count)]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between retries, without sleeping."""
    taken: list[float] = []

    def slept(seconds: float, stopped: Callable[[], bool]) -> bool:
        taken.append(seconds)
        return not stopped()

    monkeypatch.setattr(connection, "_sleep", slept)
    return taken


def test_without_a_url_the_embedded_engine_under_the_data_folder(tmp_path: Path) -> None:
    client = connect(load_settings(None, rag_data_dir=tmp_path, qdrant_url=""))
    assert isinstance(client, EdgeClient)
    assert not is_shared(client)
    assert unavailable_since(client) is None
    assert (tmp_path / "qdrant").is_dir()
    client.close()


def test_with_a_url_a_server_without_a_warning_or_a_line_for_each_call(caplog: pytest.LogCaptureFixture) -> None:
    script = Script()
    with warnings.catch_warnings(), caplog.at_level(logging.INFO):
        warnings.simplefilter("error")
        client = server(script)
        assert is_shared(client)
        assert client.count("a").count == 7
    assert not [line for line in caplog.messages if "HTTP Request" in line]
    sent = script.requests[0].headers
    assert (sent["api-key"], sent["accept-encoding"], sent["connection"]) == (KEY, "identity", "keep-alive")


AGAIN = {
    "just after losing the race to create": says(500, "Service internal error: 0 of 0 read operations failed"),
    "consensus is slow": says(500, "Waiting for consensus operation commit failed. Timeout set at: 10 seconds"),
    "no replica": says(500, "The replica set for shard 0 on peer 1 has no active replica"),
    "the leader is down": says(500, "Failed to apply update with `Medium` ordering via leader peer 3"),
    "a snapshot is restored": says(503, "Shard temporarily unavailable: the shard is being restored"),
    "a read timed out": says(408, "Timeout: Operation timed out"),
    "a rate limit": says(429, "Rate limiting exceeded: Write rate limit exceeded"),
    "a proxy": httpx.Response(502, html="<html><h1>Bad gateway</h1></html>"),
    "a balancer": httpx.Response(504, text="upstream timed out"),
    "never sent": httpx.ConnectError("Connection refused"),
    "no connection in time": httpx.ConnectTimeout("timed out"),
    "the pool is full": httpx.PoolTimeout("timed out"),
    "the answer is late": httpx.ReadTimeout("timed out"),
    "the request is stuck": httpx.WriteTimeout("timed out"),
    "the connection broke": httpx.ReadError("Connection reset by peer"),
    "the server closed it": httpx.RemoteProtocolError("Server disconnected without sending a response."),
}


@pytest.mark.parametrize("why", AGAIN)
def test_what_may_pass_is_asked_again_as_it_was(why: str, pauses: list[float]) -> None:
    script = Script(AGAIN[why], AGAIN[why])
    client = server(script)
    client.upsert("a", points(1), update_mode=models.UpdateMode.INSERT_ONLY)
    assert len({request.content for request in script.requests}) == 1
    assert len(script.requests) == 3
    assert 0.05 <= pauses[0] <= 0.15
    assert 0.1 <= pauses[1] <= 0.3


@pytest.mark.parametrize("why", AGAIN)
def test_what_does_not_pass_in_time_is_one_sentence(why: str) -> None:
    client = server(Script(*[AGAIN[why]] * 9))
    with (
        wait_limit(0),
        pytest.raises(StoreUnavailableError, match=r"^The database has not responded since \d\d:\d\d\.$"),
    ):
        client.count("a")
    assert unavailable_since(client) is not None
    with wait_limit(0), pytest.raises(StoreUnavailableError):  # the server was just checked
        client.count("a")


def test_a_server_that_says_when_is_asked_then(pauses: list[float]) -> None:
    client = server(Script(says(429, "Rate limiting exceeded", **{"Retry-After": "7"})))
    assert client.count("a").count == 7
    assert pauses == [7.0]
    assert unavailable_since(client) is None
    client = server(Script(says(429, "Rate limiting exceeded", **{"Retry-After": "70"})))
    with pytest.raises(StoreUnavailableError):  # longer than anyone waits for an answer
        client.count("a")


def test_a_full_disk_says_so_and_is_tried_again_late(pauses: list[float]) -> None:
    full = says(500, "No space left on device: WAL buffer size exceeds available disk space")
    client = server(Script(full, full))
    with wait_limit(float("inf")):
        client.upsert("a", points(1))
    assert pauses == [30.0, 30.0]
    client = server(Script(full))
    with pytest.raises(StoreUnavailableError, match=r"The disk of the database server http://db:6333 is full"):
        client.upsert("a", points(1))


def test_who_waits_for_ever_can_be_stopped(pauses: list[float]) -> None:
    client = server(Script(*[AGAIN["never sent"]] * 99))
    with wait_limit(float("inf"), lambda: len(pauses) == 20), pytest.raises(StoreUnavailableError):
        client.count("a")
    assert max(pauses) <= 7.5


SPLIT = {
    "a large body": says(400, "JSON payload (52428800 bytes) is larger than allowed (limit: 33554432 bytes)"),
    "a proxy's limit": httpx.Response(413, html="<html>Request Entity Too Large</html>"),
    "above the budget": says(429, "Rate limiting exceeded: 500 tokens, please try to split your request"),
}


@pytest.mark.parametrize("why", SPLIT)
def test_what_is_too_large_is_split(why: str) -> None:
    script = Script(SPLIT[why], SPLIT[why])
    server(script).upsert("a", points(4))
    sent = [
        [point["id"] for point in httpx.Response(200, content=one.content).json()["points"]] for one in script.requests
    ]
    assert sent == [[0, 1, 2, 3], [0, 1], [0], [1], [2, 3]]
    operations = [models.DeleteOperation(delete=models.PointIdsList(points=[number])) for number in range(2)]
    assert len(server(Script(SPLIT[why])).batch_update_points("a", operations)) == 2
    with pytest.raises(StoreError, match="larger than the database server"):
        server(Script(SPLIT[why])).upsert("a", points(1))


REFUSED = {
    "exists": (says(409, "Wrong input: Collection `a` already exists!"), "collection_exists", "named a"),
    "is missing": (says(404, "Not found: Collection `a` doesn't exist!"), "collection_missing", "named a"),
    "an alias": (
        says(400, "Can't create collection with name a. Alias with the same name"),
        "store_failed",
        "Can't create",
    ),
    "a wrong field": (says(422, "Validation error in JSON body: limit"), "store_failed", "“count”: Validation error"),
    "strict mode": (
        says(400, 'Bad request: Index required but not found for "x". Help: …'),
        "store_failed",
        "Index required",
    ),
    "no key": (httpx.Response(401, text="Invalid API key or JWT"), "store_key_refused", "refused the key"),
    "an old token": (httpx.Response(403, text="Invalid JWT"), "store_key_refused", "refused the key"),
    "no right": (says(403, "Forbidden: Write access to a is required"), "store_forbidden", "Write access to"),
    "a certificate": (
        httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
        "store_certificate",
        "isn't trusted",
    ),
    "somebody else": (httpx.Response(200, html="<html>Welcome</html>"), "store_unread", "response can't be read"),
    "a page of somebody else": (httpx.Response(404, html="<html>no</html>"), "store_failed", "status 404"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_does_not_pass_is_refused_at_once_in_a_sentence(why: str) -> None:
    answer, code, sentence = REFUSED[why]
    script = Script(answer)
    client = server(script)
    with pytest.raises(StoreError, match=sentence) as caught:
        client.count("a")
    assert caught.value.code == code
    assert not isinstance(caught.value, StoreUnavailableError)
    assert len(script.requests) == 1
    assert not any(mark in str(caught.value) for mark in ("{", "<html", "[SSL", KEY))


def test_the_next_address_is_asked_where_one_is_dead(pauses: list[float]) -> None:
    asked: list[str] = []
    well = Script()

    def cluster(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.url.host}:{request.url.port}")
        assert request.headers["host"] == asked[-1]
        if request.url.host != "c":
            raise httpx.ConnectError("Connection refused")
        return well(request)

    client = server(cluster, "http://a:1,http://b:2, http://c:3/")
    assert asked == ["a:1", "b:2", "c:3", "c:3"]  # the second call queries its version
    client.count("x")
    assert asked[4:] == ["c:3"]
    assert set(pauses) == {0.0}


def test_collections_are_laid_out_by_the_settings(tmp_path: Path) -> None:
    chosen = {"qdrant_shards": 2, "qdrant_replicas": 3, "qdrant_on_disk": True, "qdrant_quantization": "scalar"}
    settings = load_settings(None, qdrant_url="http://db", qdrant_write_consistency=2, **chosen)
    client = Server(settings, transport=httpx.MockTransport(Script()))
    wanted = layout(client)
    copies = {"replication_factor": 3, "write_consistency_factor": 2}
    assert wanted.records == {"shard_number": 1, **copies}
    assert {key: wanted.chunks[key] for key in wanted.records} == {"shard_number": 2, **copies}
    assert isinstance(wanted.chunks["quantization_config"], models.ScalarQuantization)
    assert wanted.on_disk
    embedded = connect(load_settings(None, rag_data_dir=tmp_path, qdrant_url=""))
    assert layout(embedded).chunks == {}
    embedded.close()


def test_one_call_that_always_fails_is_refused_in_the_end(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_500_SECONDS", -1.0)
    client = server(Script(says(500, "Service internal error: task panicked")))
    with pytest.raises(StoreError, match="“count”: Service internal error: task panicked"), wait_limit(float("inf")):
        client.count("a")


def test_a_server_that_knows_no_conditional_writes_is_refused() -> None:
    with pytest.raises(StoreError, match=r"Qdrant 1\.16\.3\. Use 1\.17 or newer"):
        server(Script(version="1.16.3"))


def test_a_server_that_is_not_there_fails_the_first_call() -> None:
    client = connect(load_settings(None, qdrant_url="http://127.0.0.1:9"))
    with pytest.raises(StoreUnavailableError, match=r"doesn't respond\. Check QDRANT_URL"), wait_limit(0):
        client.get_collections()
