"""Connection to the database: a server or cluster if QDRANT_URL is set, else the embedded engine."""

from __future__ import annotations

import logging
import re
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
from qdrant_client.http.exceptions import ApiException
from qdrant_client.local.qdrant_local import QdrantLocal
from qdrant_client.qdrant_remote import QdrantRemote

from rag.config import Settings
from rag.errors import StoreAwayError, StoreError
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.retry import Outages
from rag.store.values import SCREEN_SECONDS, patience
from rag.types import Notice

_FOLDER = "qdrant"  # under the data folder
_MIN_VERSION = (1, 17)  # the first version with `update_mode`
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=3.0)
"""Servers close a connection after 5 s without a call."""


def connect(settings: Settings) -> QdrantClient:
    """Open the database of the settings. An unavailable server raises an error only at the first call.

    Raises StoreBusyError if another process has the embedded folder open, StoreError if the folder is not writable, or
    a server is too old or rejects the key.
    """
    if settings.qdrant_url:
        return Server(settings)
    return EdgeClient(settings.rag_data_dir / _FOLDER)


def is_shared(client: QdrantClient) -> bool:
    """Return whether other processes may write at the same time; True only for a server."""
    return not isinstance(client, EdgeClient) and not isinstance(client._client, QdrantLocal)


def unload_idle(client: QdrantClient, idle: float) -> None:
    """Release the embedded engine's resources for collections without a call for `idle` seconds."""
    if isinstance(client, EdgeClient):
        client.backend.unload_idle(idle)


def away_since(client: QdrantClient) -> datetime | None:
    """Return since when the server is unavailable; None if it responds, and for the embedded engine."""
    return client.outages.since if isinstance(client, Server) else None


@dataclass(frozen=True, slots=True)
class Layout:
    """Options of create_collection for the collections of records and of chunks.

    `on_disk` says whether vectors are read from disk. All are empty for the embedded engine, which has no such options.
    """

    records: Mapping[str, Any] = field(default_factory=dict)
    chunks: Mapping[str, Any] = field(default_factory=dict)
    on_disk: bool | None = None


def layout(client: QdrantClient) -> Layout:
    """Return the collection options of the settings for `client`."""
    return client.layout if isinstance(client, Server) else Layout()


_QUANTIZATIONS: Mapping[str, models.QuantizationConfig | None] = {
    "off": None,
    "scalar": models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    ),
    "binary": models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True)),
}


def _layout(settings: Settings) -> Layout:
    """Build the layout. Records have one shard, and so do chunks unless configured, as IDF is computed per shard."""
    copies = {
        "replication_factor": settings.qdrant_replicas,
        "write_consistency_factor": settings.qdrant_write_consistency,
    }
    quantization = _QUANTIZATIONS[settings.qdrant_quantization]
    return Layout(
        {"shard_number": 1, **copies},
        {"shard_number": settings.qdrant_shards, **copies, "quantization_config": quantization},
        settings.qdrant_on_disk or None,
    )


Connection = QdrantClient
"""The type of the database, for modules that only pass it on."""


class Server(QdrantClient):
    """A QdrantClient over HTTP that raises StoreErrors. The constructor makes one call, to report mistakes early.

    Responses are requested uncompressed: servers send compressed ones in small packets, each delayed by 40 ms.
    """

    def __init__(self, settings: Settings, **options: Any) -> None:
        """`options` are those of httpx.Client."""
        addresses = settings.qdrant_urls
        self.addresses = [httpx.URL(address) for address in addresses]
        key = settings.qdrant_api_key.get_secret_value()
        self.has_key = bool(key)
        self.outages = Outages(addresses)
        self.layout = _layout(settings)
        headers = {"Accept-Encoding": "identity", **({"api-key": key} if key else {})}  # as api_key it would warn
        super().__init__(url=addresses[0], headers=headers, check_compatibility=False, limits=_LIMITS, **options)
        remote = cast(QdrantRemote, self._client)
        remote.openapi_client.client.add_middleware(self.outages)
        self._client = cast(QdrantBase, _Guarded(remote))
        self.cloud_inference = True  # skips the search of points for texts to embed; ours have none
        _silence_httpx()
        with suppress(StoreAwayError), patience(SCREEN_SECONDS):
            self.get_collections()

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *_: Any, **options: Any
    ) -> list[models.QueryResponse]:
        """Query without copying every request as QdrantClient does; see `EdgeClient`."""
        responses: list[models.QueryResponse] = self._client.query_batch_points(collection_name, requests, **options)
        return responses


def _silence_httpx() -> None:
    """Hide the log line of each call, unless debug logging is on."""
    logger = logging.getLogger("httpx")
    if logger.level == logging.NOTSET and not logging.getLogger().isEnabledFor(logging.DEBUG):
        logger.setLevel(logging.WARNING)


def check_server(client: QdrantClient) -> Notice | None:
    """Check the server again. Return a notice if it doesn't respond, else None."""
    if away_since(client) is None:
        return None
    try:
        with patience(0):
            client.get_collections()
    except StoreAwayError as error:
        return error.notice
    return None


def wait_for_database(settings: Settings, seconds: float, waiting: Callable[[Notice], None]) -> None:
    """Return once the server responds; `waiting` gets a notice if it does not respond immediately.

    Never waits for the embedded engine. Raises StoreAwayError after `seconds`, StoreError if the server refuses.
    """
    if not settings.qdrant_url:
        return
    with closing(Server(settings)) as client:
        if (since := client.outages.since) is None:
            return
        waiting(Notice("job_away", {"since": since.strftime("%H:%M")}))
        with patience(seconds):
            client.get_collections()


class _Guarded:
    """Forwards calls, names the call in errors, and splits requests that are too large for the server."""

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
        """Check the version once: a server without conditional writes would lose pages when two processes write."""
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


# Locks between the threads of one process; `commit` handles other processes

_STRIPES = 64


class Switch:
    """A reentrant lock; `changes` counts how often it was acquired and released."""

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
        """Return a number that stays the same until a change; None during a change, or after a failed one."""
        return None if self._depth or self._failed else self.changes


class LibraryLocks:
    """Locks of one library: `lock_pages` prevents two writers of one page, `switch` covers the replacement of pages.

    `notes` covers updates of a record that no chunk shows.
    """

    def __init__(self) -> None:
        self._stripes = [RLock() for _ in range(_STRIPES)]
        self.switch = Switch()
        self.notes = Switch()

    @contextmanager
    def lock_pages(self, url_hashes: Iterable[str]) -> Iterator[None]:
        """Lock these pages for the block, always in the same order, so that threads cannot deadlock."""
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
            stack.enter_context(self.switch)
            yield


_registry: WeakKeyDictionary[QdrantClient, dict[str, LibraryLocks]] = WeakKeyDictionary()
_registry_lock = Lock()


def library_locks(client: QdrantClient, library: str) -> LibraryLocks:
    with _registry_lock:
        return _registry.setdefault(client, {}).setdefault(library, LibraryLocks())
