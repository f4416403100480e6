"""Connection to the database: a server or cluster if QDRANT_URL is set, else the embedded engine.

Also retries and errors of calls to a server, and locks between threads.
"""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from json import JSONDecodeError
from threading import Lock, RLock
from typing import Any, cast
from weakref import WeakKeyDictionary
from zlib import crc32

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.client_base import QdrantBase
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException
from qdrant_client.local.qdrant_local import QdrantLocal
from qdrant_client.qdrant_remote import QdrantRemote

from rag.config import Settings
from rag.errors import StoreError, StoreUnavailableError
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.values import SCREEN_SECONDS, WaitLimit, current_wait_limit, wait_limit
from rag.text import lazy_regex
from rag.types import Notice

log = logging.getLogger(__name__)

_FOLDER = "qdrant"  # under the data folder
_MIN_VERSION = (1, 17)  # the first version with `update_mode`
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=3.0)
"""Servers close a connection after 5 s without a call."""


def connect(settings: Settings) -> QdrantClient:
    """Open the database of the settings. If a server is unavailable, later calls raise an error, but not this one.

    Raises StoreBusyError if another process has the embedded folder open, StoreError if the folder is not writable or
    the server is too old or rejects the key.
    """
    if settings.qdrant_url:
        return Server(settings)
    return EdgeClient(settings.rag_data_dir / _FOLDER)


def is_shared(client: QdrantClient) -> bool:
    """Return whether other processes may write at the same time; True only for a server."""
    return not isinstance(client, EdgeClient) and not isinstance(client._client, QdrantLocal)


def unload_idle(client: QdrantClient, idle: float) -> None:
    """Unload embedded collections that were not used for `idle` seconds."""
    if isinstance(client, EdgeClient):
        client.backend.unload_idle(idle)


def unavailable_since(client: QdrantClient) -> datetime | None:
    """Return when the server became unavailable; None if it responds, and for the embedded engine."""
    return client.retry_middleware.since if isinstance(client, Server) else None


@dataclass(frozen=True, slots=True)
class CollectionOptions:
    """Options of create_collection for the collections of records and of chunks.

    `on_disk` says whether vectors are read from disk. All are empty for the embedded engine, which has no such options.
    """

    records: Mapping[str, Any] = field(default_factory=dict)
    chunks: Mapping[str, Any] = field(default_factory=dict)
    on_disk: bool | None = None


def layout(client: QdrantClient) -> CollectionOptions:
    """Return the client's collection options."""
    return client.layout if isinstance(client, Server) else CollectionOptions()


_QUANTIZATIONS: Mapping[str, models.QuantizationConfig | None] = {
    "off": None,
    "scalar": models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    ),
    "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
}


Connection = QdrantClient
"""The type of the database, for modules that only pass it on."""


class Server(QdrantClient):
    """A QdrantClient over HTTP that raises StoreErrors. The constructor makes one call, to report wrong settings early.

    Requests uncompressed responses: servers send compressed ones in small packets, each delayed by 40 ms.
    """

    def __init__(self, settings: Settings, **options: Any) -> None:
        """`options` are those of httpx.Client."""
        addresses = settings.qdrant_urls
        self.addresses = [httpx.URL(address) for address in addresses]
        key = settings.qdrant_api_key.get_secret_value()
        self.has_key = bool(key)
        self.retry_middleware = _RetryMiddleware(addresses)
        copies = {
            "replication_factor": settings.qdrant_replicas,
            "write_consistency_factor": settings.qdrant_write_consistency,
        }
        quantization = _QUANTIZATIONS[settings.qdrant_quantization]
        # Records have one shard, chunks one by default, because IDF is computed per shard.
        self.layout = CollectionOptions(
            {"shard_number": 1, **copies},
            {"shard_number": settings.qdrant_shards, **copies, "quantization_config": quantization},
            settings.qdrant_on_disk or None,
        )
        headers = {"Accept-Encoding": "identity", **({"api-key": key} if key else {})}  # as api_key it would warn
        super().__init__(url=addresses[0], headers=headers, check_compatibility=False, limits=_LIMITS, **options)
        remote = cast(QdrantRemote, self._client)
        remote.openapi_client.client.add_middleware(self.retry_middleware)
        self._client = cast(QdrantBase, _Guarded(remote))
        self.cloud_inference = True  # skips looking for texts to embed in every point; there are none
        logger = logging.getLogger("httpx")  # a line per call, unless debug logging is on
        if logger.level == logging.NOTSET and not logging.getLogger().isEnabledFor(logging.DEBUG):
            logger.setLevel(logging.WARNING)
        with suppress(StoreUnavailableError), wait_limit(SCREEN_SECONDS):
            self.get_collections()

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *_: Any, **options: Any
    ) -> list[models.QueryResponse]:
        """Query without copying each request, unlike QdrantClient; see `EdgeClient`."""
        responses: list[models.QueryResponse] = self._client.query_batch_points(collection_name, requests, **options)
        return responses


def check_server(client: QdrantClient) -> Notice | None:
    """Check the server again. Return a notice if it doesn't respond, else None."""
    if unavailable_since(client) is None:
        return None
    try:
        with wait_limit(0):
            client.get_collections()
    except StoreUnavailableError as error:
        return error.notice
    return None


def wait_for_database(settings: Settings, seconds: float, waiting: Callable[[Notice], None]) -> None:
    """Return once the server responds; `waiting` gets a notice if it does not respond immediately.

    Never waits for the embedded engine. Raises StoreUnavailableError after `seconds`, StoreError if the server refuses.
    """
    if not settings.qdrant_url:
        return
    with closing(Server(settings)) as client:
        if (since := client.retry_middleware.since) is None:
            return
        waiting(Notice("job_away", {"since": since.strftime("%H:%M")}))
        with wait_limit(seconds):
            client.get_collections()


class _Guarded:
    """A proxy that adds the name of the call to errors and splits requests that are too large for the server."""

    def __init__(self, remote: QdrantBase) -> None:
        self._remote = remote
        self._is_checked = False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._remote, name)
        return self._guard(name, value) if callable(value) and name != "close" else value

    def upsert(self, collection_name: str, points: Any, **options: Any) -> Any:
        def write(batch: Sequence[Any]) -> Any:
            return self._guard("upsert", self._remote.upsert)(collection_name, points=batch, **options)

        return _write_in_parts(write, points)[-1] if isinstance(points, Sequence) else write(points)

    def batch_update_points(self, collection_name: str, update_operations: Sequence[Any], **options: Any) -> Any:
        def write(batch: Sequence[Any]) -> Any:
            call = self._guard("batch_update_points", self._remote.batch_update_points)
            return call(collection_name, update_operations=batch, **options)

        return [result for part in _write_in_parts(write, update_operations) for result in part]

    def _guard(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                self._check_version()
                return call(*args, **kwargs)
            except StoreError as error:
                if error.code != "store_failed":
                    raise
                raise StoreError("store_failed", call=name, detail=error.notice.params["detail"]) from error
            except (ApiException, JSONDecodeError) as error:  # the call succeeded; its response is unreadable
                raise StoreError("store_unread", url="") from error

        return wrapper

    def _check_version(self) -> None:
        """Check the version once: without conditional writes, two writing processes would lose pages."""
        if self._is_checked:
            return
        version = self._remote.info().version
        self._is_checked = True
        if (numbers := version_of(version)) and numbers < _MIN_VERSION:
            raise StoreError("store_too_old", version=version, oldest=".".join(map(str, _MIN_VERSION)))


def version_of(version: str) -> tuple[int, int] | None:
    """Return the first two numbers of a version; None if it has none."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None


def _write_in_parts(write: Callable[[Sequence[Any]], Any], rows: Sequence[Any]) -> list[Any]:
    """Write all rows in order, in as few calls as the server accepts."""
    try:
        return [write(rows)]
    except StoreError as error:
        if error.code != "store_too_large" or len(rows) < 2:
            raise
    half = len(rows) // 2
    return _write_in_parts(write, rows[:half]) + _write_in_parts(write, rows[half:])


# Failed calls to a server are retried, split, or raised as a StoreError.

_SLOW_TIMEOUT = 30.0  # seconds for writes, and for calls of patient callers
_UNAVAILABLE_TIMEOUT = 1.0  # seconds for a response of a server known to be unavailable
_CHECK_INTERVAL = 2.0  # seconds between checks of such a server, across all impatient callers
_MIN_PAUSE, _MAX_PAUSE = 0.1, 5.0  # seconds; the first and the longest pause, doubling in between
_MAX_500_SECONDS = 300.0  # seconds of status 500 until the request itself is considered faulty
_FULL_DISK_PAUSE = 30.0  # seconds until the next try on a full disk
_TRANSPORT = lazy_regex(r"transport error|tcp connect|Connection refused|code: '|status: (?:'|Unavailable)")
"""Error messages about connections between the nodes of a cluster."""
_WRITES = lazy_regex(r"/points/(delete|payload|batch|vectors)")

_Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class _Fault:
    """A failed call: the error code, the server's message, and the HTTP status, 0 without a response.

    A `temporary` one is retried after at least `min_pause` seconds; `try_next_node` says that another node may succeed.
    """

    code: str = "store_away"
    detail: str = ""
    temporary: bool = False
    min_pause: float = 0.0
    try_next_node: bool = False
    status: int = 0


def _response_fault(response: httpx.Response) -> _Fault | None:
    """Classify a response by the messages of Qdrant 1.18 and 1.19; None if it is a success."""
    if response.is_success:
        return None
    status, text = response.status_code, _server_message(response)
    if status == 413 or (status == 400 and "larger than allowed" in text) or "split your request" in text:
        return _Fault("store_too_large")
    if status in (408, 429) or status >= 500:
        full, after = "No space left" in text, response.headers.get("Retry-After", "")
        pause = _FULL_DISK_PAUSE if full else float(after) if after.isdecimal() else 0.0
        code = "store_server_full" if full else "store_away"
        return _Fault(code, text, True, pause, status in (502, 503, 504), status)
    if status == 401 or (status == 403 and not text):
        return _Fault("store_key_refused")
    if status == 403:
        return _Fault("store_forbidden", text)
    if status == 409 and "already exists" in text:
        return _Fault("collection_exists", text)
    if status == 404 and "Collection" in text:
        return _Fault("collection_missing", text)
    return _Fault("store_failed", text or f"status {status}")


def _error_fault(error: Exception | None) -> _Fault:
    if isinstance(error, httpx.ConnectError) and "certificate" in str(error).lower():
        return _Fault("store_certificate")
    if isinstance(error, (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)):
        return _Fault(temporary=True, try_next_node=True)
    return _Fault("store_unread")  # also if another program responded


def _server_message(response: httpx.Response) -> str:
    """Return the server's error message, without details of other nodes; empty if it has none, as from a proxy."""
    try:
        message = response.json()["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    if _TRANSPORT.search(str(message)):
        return "a node of the cluster is down"
    return " ".join(str(message).split())[:300].rstrip(".:")


class _RetryMiddleware:
    """HTTP middleware that tries several addresses, retries calls, and records since when none responds.

    Safe to share between threads. A write whose response was lost may have succeeded; it is retried unchanged, because
    upserts by id, conditional writes and deletions are idempotent.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.since: datetime | None = None
        self._addresses = [httpx.URL(address) for address in addresses]
        self._current = 0
        self._outage_start = self._last_try = 0.0
        self._has_responded = False

    def __call__(self, request: httpx.Request, send: _Send) -> httpx.Response:
        """Return the response. Raises StoreUnavailableError if none arrives in time, StoreError if it is an error."""
        limits, start, tries = current_wait_limit.get(), time.monotonic(), 0
        is_overdue = self.since is not None and start - self._outage_start >= limits.seconds
        if is_overdue and start - self._last_try < _CHECK_INTERVAL and limits.seconds < math.inf:
            raise self.unavailable_error()  # it was checked just now
        while True:
            outcome = self._send_once(request, send, limits, limits.seconds - (time.monotonic() - start))
            if isinstance(outcome, httpx.Response):
                return outcome
            pause = self._pause_after(outcome, tries)
            elapsed, tries = time.monotonic() - start, tries + 1
            if outcome.status == 500 and elapsed > _MAX_500_SECONDS:
                raise StoreError("store_failed", call="", detail=outcome.detail)
            if elapsed + pause > limits.seconds or not _sleep(pause, limits.stopped):
                raise self.unavailable_error(outcome)

    def unavailable_error(self, fault: _Fault | None = None) -> StoreUnavailableError:
        """Return the error for a server that is unavailable or whose disk is full."""
        since = (self.since or datetime.now().astimezone()).strftime("%H:%M")
        code = fault.code if fault is not None else "store_away"
        if code == "store_away" and not self._has_responded:
            code = "store_unreachable"
        return StoreUnavailableError(code, url=self._urls(), since=since)

    def _send_once(
        self, request: httpx.Request, send: _Send, limits: WaitLimit, remaining: float
    ) -> httpx.Response | _Fault:
        """Return the response, or why to try again."""
        self._last_try = time.monotonic()
        if len(self._addresses) > 1:  # the request was built for the first one
            address = self._addresses[self._current % len(self._addresses)]
            request.url = request.url.copy_with(scheme=address.scheme, host=address.host, port=address.port)
            request.headers["Host"] = request.url.netloc.decode()
        request.extensions = {**request.extensions, "timeout": self._timeouts(request, limits, remaining)}
        try:
            response = send(request)
            fault = _response_fault(response)
        except ResponseHandlingException as error:
            fault = _error_fault(error.source)
        if fault is not None and fault.temporary:
            self._note_failure(fault)
            return fault
        self._has_responded = True
        if self.since is not None:
            log.warning("The database answers again, after %.0f s", time.monotonic() - self._outage_start)
            self.since = None
        if fault is not None:
            match = re.match(r".*/collections/([^/]+)", request.url.path)
            name = match[1] if match else ""
            raise StoreError(fault.code, call="", url=self._urls(), name=name, detail=fault.detail)
        return response

    def _timeouts(self, request: httpx.Request, limits: WaitLimit, remaining: float) -> dict[str, float]:
        """Return the timeouts of one try in seconds: the caller's limit applies to reads, but not writes."""
        is_known_unavailable = self.since is not None and time.monotonic() - self._outage_start > limits.seconds
        timeout = (
            _UNAVAILABLE_TIMEOUT if is_known_unavailable else max(_UNAVAILABLE_TIMEOUT, min(remaining, _SLOW_TIMEOUT))
        )
        is_write = request.method in ("PUT", "DELETE", "PATCH") or bool(_WRITES.search(request.url.path))
        longest = _SLOW_TIMEOUT if is_write and not is_known_unavailable else timeout
        return {"connect": min(timeout, _MAX_PAUSE), "read": longest, "write": longest, "pool": longest}

    def _pause_after(self, fault: _Fault, tries: int) -> float:
        """Return the pause in seconds: exponential with jitter, none while there is an untried address."""
        if fault.try_next_node and (tries + 1) % len(self._addresses):
            return 0.0
        pause: float = min(_MAX_PAUSE, _MIN_PAUSE * 2 ** (tries // len(self._addresses)))
        return max(fault.min_pause, pause * random.uniform(0.5, 1.5))

    def _note_failure(self, fault: _Fault) -> None:
        self._last_try = time.monotonic()
        if fault.try_next_node:
            self._current += 1
        if self.since is None:
            self.since, self._outage_start = datetime.now().astimezone(), time.monotonic()
            detail = f" ({fault.detail})" if fault.detail else ""
            log.warning("The database at %s does not answer%s; what needs it waits", self._urls(), detail)

    def _urls(self) -> str:
        return ", ".join(map(str, self._addresses))


def _sleep(seconds: float, stopped: Callable[[], bool]) -> bool:
    """Wait `seconds`; return False if stopped meanwhile."""
    end = time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0 and not stopped():
        time.sleep(min(remaining, 0.2))
    return not stopped()


# Locks between the threads of one process; `commit` handles other processes

_STRIPES = 64


class CountingLock:
    """A reentrant lock that counts its acquisitions and releases in `changes`."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0
        self._failed = False
        self.changes = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        self.changes += 1

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._failed = self._failed or error is not None
        self.changes += 1
        self._depth -= 1
        self._lock.release()

    def snapshot(self) -> int | None:
        """Return a number that identifies the current state; None during a change or after a failed one."""
        return None if self._depth or self._failed else self.changes


class LibraryLocks:
    """Locks of one library: `lock_pages` serialises writers of a page, `commit_lock` guards the replacement of pages.

    `record_lock` guards updates of records that do not affect chunks.
    """

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.commit_lock = CountingLock()
        self.record_lock = CountingLock()

    @contextmanager
    def lock_pages(self, url_hashes: Iterable[str]) -> Iterator[None]:
        """Lock these pages for the block, in a fixed order, to avoid deadlocks."""
        stripes = sorted({crc32(url_hash.encode()) % _STRIPES for url_hash in url_hashes})
        with ExitStack() as stack:
            for stripe in stripes:
                stack.enter_context(self._stripes[stripe])
            yield

    @contextmanager
    def lock_all(self) -> Iterator[None]:
        with ExitStack() as stack:
            for stripe in self._stripes:
                stack.enter_context(stripe)
            stack.enter_context(self.commit_lock)
            yield


_registry: WeakKeyDictionary[QdrantClient, dict[str, LibraryLocks]] = WeakKeyDictionary()
_registry_lock = Lock()


def library_locks(client: QdrantClient, library: str) -> LibraryLocks:
    with _registry_lock:
        return _registry.setdefault(client, {}).setdefault(library, LibraryLocks())
