"""The way to the database: a server where QDRANT_URL is set, else the embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from qdrant_client import QdrantClient
from qdrant_client.client_base import QdrantBase
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from qdrant_client.local.qdrant_local import QdrantLocal

from rag.config import Settings
from rag.errors import StoreError
from rag.store.edge.client import EdgeClient

_TIMEOUT = 30  # seconds for one call to a server
_FOLDER = "qdrant"  # under the data folder


def connect(settings: Settings) -> QdrantClient:
    """Open the database that the settings name.

    Raises StoreBusyError when another process has the embedded folder open, StoreError when the
    folder cannot be written, the server does not answer, or it refuses the key.
    """
    if settings.qdrant_url:
        return _Server(settings.qdrant_url, settings.qdrant_api_key.get_secret_value() or None)
    return EdgeClient(settings.rag_data_dir / _FOLDER)


def is_shared(client: QdrantClient) -> bool:
    """Whether other processes may write at the same time: true of a server only."""
    return not isinstance(client, EdgeClient) and not isinstance(client._client, QdrantLocal)


def rest(client: QdrantClient, idle: float) -> None:
    """Give back what the embedded engine holds for collections that nobody asked for so many seconds."""
    if isinstance(client, EdgeClient):
        client.backend.rest(idle)


class _Server(QdrantClient):
    """A QdrantClient over HTTP whose failures are StoreErrors. One call is made at once, to fail early."""

    def __init__(self, url: str, api_key: str | None) -> None:
        super().__init__(url=url, api_key=api_key, timeout=_TIMEOUT, check_compatibility=False)
        self._client = cast(QdrantBase, _Guarded(self._client, url))
        self.cloud_inference = True  # no texts to embed in our points, so they are not searched for any
        self.get_collections()


class _Guarded:
    """Passes calls on and puts what goes wrong into one sentence."""

    def __init__(self, remote: QdrantBase, url: str) -> None:
        self._remote = remote
        self._url = url

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._remote, name)
        return self._guard(name, value) if callable(value) else value

    def _guard(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except UnexpectedResponse as error:
                raise self._refused(name, error) from error
            except (ResponseHandlingException, ApiException) as error:
                raise StoreError("store_unreachable", url=self._url) from error

        return guarded

    def _refused(self, call: str, error: UnexpectedResponse) -> StoreError:
        if error.status_code in (401, 403):
            return StoreError("store_key_refused", url=self._url)
        detail = " ".join(error.content.decode("utf-8", "replace").split())[:300]
        return StoreError("store_failed", call=call, detail=detail or f"HTTP {error.status_code}")
