"""A stand-in for a Qdrant server: the embedded engine behind a server's REST API, in a separate process.

    with QdrantServer(tmp_path) as server:
        client = connect(load_settings(None, qdrant_url=server.url))
        server.add_rule("PUT .*/points", times=2, status=503) # the next two writes are refused
        server.add_rule("PUT .*/points", times=1, drop=True)  # the next one is applied, its response lost
        server.fail_leader()                                  # of three nodes, the one that orders the writes
        server.kill(), server.start()                         # its data survives

`python -m tests.support.qdrant_server --folder F [--port N] [--key K] [--strict]` is that process. As on a server, one
operation is applied at a time, conditions are evaluated by the shard, and a compressed response is late; `wait` is
always assumed. It has no replicas: it only returns the options that a collection was created with.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit

import qdrant_edge as edge
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json
from qdrant_client import models

from rag.errors import StoreError
from rag.store.qdrant.edge.client import EdgeBackend
from rag.store.qdrant.edge.translation import to_filter

VERSION = "1.19.0"
_ROOT = Path(__file__).resolve().parents[2]
_CONTROL = "/control"
_NAGLE = 0.04  # seconds by which Nagle's algorithm delays a compressed response
_MAX_BODY = 32 << 20  # bytes, `max_request_size_mb` of the server
_OPTIONS = "created with"  # metadata key for the options of a collection that only a server has
_ERRORS = {
    409: "Wrong input: Collection `{name}` already exists!",
    429: "Rate limiting exceeded: Write rate limit exceeded: Operation requires 1 tokens but only 0 were available.",
    500: "Service internal error: 0 of 0 read operations failed",
    503: "Shard temporarily unavailable: the shard is being restored",
}
_LEADER_GONE = (
    "Service internal error: Failed to apply update with {} ordering via leader peer 7: Service internal error: "
    "Tonic status error: code: 'The service is currently unavailable', message: \"tcp connect error\", source: "
    'tonic::transport::Error(Transport, ConnectError(Os {{ code: 111, message: "Connection refused" }})): '
    "transport error"
)
_STORE_ERRORS = {
    "collection_exists": (409, _ERRORS[409]),
    "collection_missing": (404, "Not found: Collection `{name}` doesn't exist!"),
}


class _RefusedError(Exception):
    """An error to respond with instead of a result."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Calls:
    """The operations of a server, by method, path and body of a request."""

    def __init__(self, folder: Path, *, strict: bool = False) -> None:
        self.backend = EdgeBackend(folder)
        self._strict = strict
        self._creating = threading.Lock()

    def answer(self, method: str, path: str, body: Any) -> Any:
        for verb, pattern, call in _ROUTES:
            if verb == method and (found := re.fullmatch(pattern, path)):
                names = [unquote(name) for name in found.groups()]
                if self._strict and names:
                    self._check_indexes(names[0], body)
                return call(self, *names, body)
        raise _RefusedError(404, "")

    def _check_indexes(self, name: str, body: Any) -> None:
        """Require an index for every key of a filter, as strict mode does; conditions of upserts are exempt."""
        wanted = set(_filtered(body))
        missing = wanted and wanted - set(self.backend.get_collection(name).payload_schema)
        for key in sorted(missing or ()):
            kind = "Help: Create an index for this key or use a different filter."
            raise _RefusedError(400, f'Bad request: Index required but not found for "{key}". {kind}')

    def describe(self, name: str, _: Any) -> Any:
        told = self.backend.get_collection(name).model_dump(mode="json", exclude_none=True)
        config = told["config"]
        options = config.get("metadata", {}).pop(_OPTIONS, {})
        config["params"] |= {"shard_number": 1, "replication_factor": 1, "write_consistency_factor": 1}
        for key, value in options.items():
            place = config["params"] if key in models.CollectionParams.model_fields else config
            place[key] = value
        config["optimizer_config"]["max_optimization_threads"] = None
        return told

    def create(self, name: str, body: Any) -> Any:
        given = models.CreateCollection.model_validate(body)
        options = {key: body[key] for key in body.keys() - {"vectors", "sparse_vectors", "metadata"}}
        metadata = {**(given.metadata or {}), **({_OPTIONS: options} if options else {})}
        with self._creating:
            return self.backend.create_collection(name, given.vectors, given.sparse_vectors, metadata)

    def shards(self, name: str, _: Any) -> Any:
        count = self.backend.count(name).count
        local = [{"shard_id": 0, "points_count": count, "state": "Active"}]
        return {"peer_id": 1, "shard_count": 1, "local_shards": local, "remote_shards": [], "shard_transfers": []}

    def index(self, name: str, body: Any) -> Any:
        given = models.CreateFieldIndex.model_validate(body)
        return self.backend.create_payload_index(name, given.field_name, given.field_schema)

    def upsert(self, name: str, body: Any) -> Any:
        condition = body.get("update_filter")
        points = [_point(one) for one in body["points"]] if "points" in body else models.Batch(**body["batch"])
        return self.backend.upsert(
            name,
            points,
            update_filter=models.Filter.model_validate(condition) if condition else None,
            update_mode=models.UpdateMode(body["update_mode"]) if body.get("update_mode") else None,
        )

    def delete(self, name: str, body: Any) -> Any:
        return self.backend.delete(name, _selected(body))

    def set_payload(self, name: str, body: Any) -> Any:
        return self.backend.set_payload(name, body["payload"], _selected(body), body.get("key"))

    def batch(self, name: str, body: Any) -> Any:
        """Apply the operations in order; the first that fails ends the batch, without a rollback."""
        calls = {"upsert": self.upsert, "delete": self.delete, "set_payload": self.set_payload}
        pairs = [next(iter(one.items())) for one in body["operations"]]
        return [calls[kind](name, given) for kind, given in pairs]

    def query(self, name: str, body: Any) -> Any:
        return self.query_batch(name, {"searches": [body]})[0]

    def query_batch(self, name: str, body: Any) -> Any:
        requests = [models.QueryRequest.model_validate(one) for one in body["searches"]]
        for request in requests:  # without `with_payload`, a request gets ids and scores only
            request.with_payload = request.with_payload or False
        return [{"points": _plain(answer.points)} for answer in self.backend.query_batch_points(name, requests)]

    def retrieve(self, name: str, body: Any) -> Any:
        given = models.PointRequest.model_validate(body)
        payload = True if given.with_payload is None else given.with_payload
        return _plain(self.backend.retrieve(name, given.ids, payload, given.with_vector))

    def scroll(self, name: str, body: Any) -> Any:
        given = models.ScrollRequest.model_validate(body)
        payload = True if given.with_payload is None else given.with_payload
        records, after = self.backend.scroll(
            name, given.filter, given.limit or 10, given.order_by, given.offset, payload, given.with_vector
        )
        return {"points": _plain(records), "next_page_offset": after}

    def count(self, name: str, body: Any) -> Any:
        given = models.CountRequest.model_validate(body)
        return self.backend.count(name, given.filter, given.exact is not False)

    def facet(self, name: str, body: Any) -> Any:
        given = models.FacetRequest.model_validate(body)
        asked = edge.FacetRequest(given.key, given.limit or 10, bool(given.exact), to_filter(given.filter))
        hits = self.backend.shard(name).read("facet", lambda engine: engine.facet(asked).hits)
        return {"hits": [{"value": hit.value, "count": hit.count} for hit in hits]}


_NAMED = r"/collections/([^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", "/collections", lambda calls, _: calls.backend.get_collections()),
    ("GET", "/cluster", lambda calls, _: {"status": "disabled"}),
    ("GET", _NAMED, Calls.describe),
    ("PUT", _NAMED, Calls.create),
    ("DELETE", _NAMED, lambda calls, name, _: calls.backend.delete_collection(name)),
    ("GET", _NAMED + "/exists", lambda calls, name, _: {"exists": calls.backend.collection_exists(name)}),
    ("GET", _NAMED + "/cluster", Calls.shards),
    ("PUT", _NAMED + "/index", Calls.index),
    ("PUT", _NAMED + "/points", Calls.upsert),
    ("POST", _NAMED + "/points", Calls.retrieve),
    ("POST", _NAMED + "/points/delete", Calls.delete),
    ("POST", _NAMED + "/points/payload", Calls.set_payload),
    ("POST", _NAMED + "/points/batch", Calls.batch),
    ("POST", _NAMED + "/points/query", Calls.query),
    ("POST", _NAMED + "/points/query/batch", Calls.query_batch),
    ("POST", _NAMED + "/points/scroll", Calls.scroll),
    ("POST", _NAMED + "/points/count", Calls.count),
    ("POST", _NAMED + "/facet", Calls.facet),
]


def _point(given: dict[str, Any]) -> Any:
    """Build a point without validation: the engine checks vectors, and pydantic takes longer than storing them."""
    vector = given.get("vector", {})
    named = {name: _vector(one) for name, one in vector.items()} if isinstance(vector, dict) else vector
    return models.PointStruct.model_construct(id=given["id"], vector=named, payload=given.get("payload"))


def _vector(given: Any) -> Any:
    if isinstance(given, dict):
        return models.SparseVector.model_construct(indices=given["indices"], values=given["values"])
    return given


def _selected(body: Any) -> Any:
    """Return the ids if there are any, since a server then ignores the filter, else the filter."""
    return body["points"] if body.get("points") is not None else models.Filter.model_validate(body["filter"])


def _plain(points: Any) -> list[Any]:
    return [{key: value for key, value in vars(point).items() if value is not None} for point in points]


def _filtered(node: Any, *, inside: bool = False) -> Iterator[str]:
    """Yield the payload keys in the filters of a request."""
    if isinstance(node, list):
        for one in node:
            yield from _filtered(one, inside=inside)
    elif isinstance(node, dict):
        if inside and isinstance(node.get("key"), str):
            yield node["key"]
        for key, value in node.items():
            if key not in ("update_filter", "payload", "points" if "payload" in node else ""):
                yield from _filtered(value, inside=inside or key in ("filter", "facet_filter"))


class _Rules:
    """The rules for the next calls, by regular expressions over method and path, and a log of past calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[dict[str, Any]] = []
        self._called: list[tuple[str, float, float]] = []

    def control(self, method: str, body: Any) -> Any:
        with self._lock:
            if method == "POST":
                self._rules.append(body)
            elif method == "DELETE":
                self._rules, self._called = [], []
            return {"calls": list(self._called), "rules": list(self._rules)}

    def of(self, call: str, query: str) -> dict[str, Any]:
        """Return the first rule for the call, and count its use; empty if there is none."""
        with self._lock:
            for rule in self._rules:
                fits = re.search(rule["match"], call) and rule.get("query", "") in query
                if rule.get("times", 1) != 0 and fits:
                    rule["times"] = rule.get("times", 1) - 1
                    return rule
        return {}

    def called(self, call: str, began: float) -> None:
        with self._lock:
            self._called.append((call, began, time.monotonic()))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # send a response in one piece
    disable_nagle_algorithm = True
    timeout = 60
    calls: Calls
    rules: _Rules
    key: str

    def _serve(self) -> None:
        began, path = time.monotonic(), urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == _CONTROL:
            return self._say(200, to_json(self.rules.control(self.command, from_json(body or b"null"))))
        call = f"{self.command} {path}"
        rule = self.rules.of(call, urlsplit(self.path).query)
        time.sleep(rule.get("delay", 0))
        status, said = self._answer(path, body) if rule.get("apply", "status" not in rule) else (0, b"")
        self.rules.called(call, began)
        if rule.get("drop"):
            self.close_connection = True
            return None
        if "status" in rule:
            error = _ERRORS.get(rule["status"], "Service internal error").format(name=path.split("/")[-1])
            status, said = rule["status"], rule.get("body", json.dumps(_error(error))).encode()
        return self._say(status, said, rule.get("headers", {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        if path in ("/readyz", "/healthz", "/livez"):
            return 200, b"all shards are ready"
        if self.key and self.headers.get("api-key") != self.key:
            return 401, b"Invalid API key or JWT"
        if len(body) > _MAX_BODY:
            return 400, to_json(_error(f"JSON payload ({len(body)} bytes) is larger than allowed (limit: {_MAX_BODY})"))
        if path == "/":
            return 200, to_json({"title": "qdrant - vector search engine", "version": VERSION})
        began = time.monotonic()
        try:
            result = self.calls.answer(self.command, path, from_json(body) if body else {})
        except _RefusedError as error:
            return error.status, to_json(_error(str(error))) if str(error) else b""
        except ValidationError as error:
            return 422, to_json(_error(f"Validation error in JSON body: {error.errors()[0]['msg']}"))
        except (ValueError, TypeError, KeyError) as error:
            return 400, to_json(_error(f"Format error in JSON body: {error}"))
        except StoreError as error:
            return _status(error)
        plain = result.model_dump(mode="json") if isinstance(result, BaseModel) else result
        return 200, to_json({"result": plain, "status": "ok", "time": time.monotonic() - began}, by_alias=True)

    def _say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        if re.search("gzip|deflate|br", self.headers.get("Accept-Encoding", "")) and len(body) > 200:
            time.sleep(_NAGLE)
        self.send_response_only(status)
        kind = "text/html" if body.startswith(b"<") else "application/json"
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


def _error(text: str) -> dict[str, Any]:
    return {"status": {"error": text}, "time": 0.0}


def _status(error: StoreError) -> tuple[int, bytes]:
    detail = str(error.notice.params.get("detail", error))
    if "No point with id" in detail:
        return 404, to_json(_error(f"Not found: {detail}"))
    status, text = _STORE_ERRORS.get(error.code, (400, "Wrong input: {detail}"))
    return status, to_json(_error(text.format(**{"detail": detail, **error.notice.params})))


class QdrantServer:
    """The server process, from `start` to `kill`, with one port and one folder."""

    def __init__(self, folder: Path, *, key: str = "", strict: bool = False) -> None:
        self._folder = folder
        self._more = [*(["--key", key] if key else []), *(["--strict"] if strict else [])]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.qdrant_server", "--folder", str(self._folder)]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port), *self._more], cwd=_ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready", "the stand-in did not start"

    def kill(self) -> None:
        """Kill it (SIGKILL); acknowledged writes survive."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def suspend(self) -> None:
        """Suspend it (SIGSTOP): it accepts connections but answers nothing until `resume`."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def add_rule(self, match: str, *, times: int = 1, **does: Any) -> None:
        """Set a rule for the next `times` calls that match (-1: all).

        It has a `delay` in seconds, `status`, `body` and `headers` to respond with, or `drop` for no response; `apply`
        says whether the call is executed all the same. With `query` only calls match that have it in their query.
        """
        self._control("POST", {"match": match, "times": times, **does})

    def fail_leader(self) -> None:
        """Fail the next write with medium ordering (then another node leads), and with strong ordering all of them."""
        for order, times in (("Medium", 1), ("Strong", -1)):
            body = json.dumps(_error(_LEADER_GONE.format(order)))
            self.add_rule("", times=times, query=f"ordering={order.lower()}", status=500, body=body)

    def reset(self) -> None:
        """Remove all rules, and clear the log of calls."""
        self._control("DELETE")

    def calls(self) -> list[tuple[str, float, float]]:
        """Return method and path, start and end (seconds, time.monotonic) of each call so far."""
        return [(call, began, ended) for call, began, ended in self._control("GET")["calls"]]

    def _control(self, method: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.url + _CONTROL, json.dumps(body).encode(), method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def count_sequential(calls: list[tuple[str, float, float]]) -> int:
    """Return the number of calls that waited for another one to end, plus the first."""
    rounds, until = 0, float("-inf")
    for _, began, ended in sorted(calls, key=lambda call: call[1]):
        if began >= until:
            rounds, until = rounds + 1, ended
        else:
            until = min(until, ended)
    return rounds


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=6333)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--strict", action="store_true")
    given = parser.parse_args()
    calls = Calls(given.folder, strict=given.strict)
    state = {"calls": calls, "rules": _Rules(), "key": given.key}
    handler = cast("type[_Handler]", type("Handler", (_Handler,), state))
    with _Listening(("127.0.0.1", given.port), handler) as server:
        print("ready", flush=True)  # noqa: T201
        server.serve_forever()


if __name__ == "__main__":
    main()
