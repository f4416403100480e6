"""The embedded engine as a `QdrantClient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models
from qdrant_client.http.models import QueryResponse

from rag.store.edge.backend import EdgeBackend
from rag.store.edge.faults import argument_faults


class EdgeClient(QdrantClient):
    """A QdrantClient over the shards in `folder`; safe to share between threads.

    Batches of queries go straight to the backend: QdrantClient copies every request on its way, in case it
    holds a text to embed, which takes longer than some of the queries.

    Raises StoreBusyError when another client has the folder open, StoreError when it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        backend = EdgeBackend(folder)
        super().__init__(location=":memory:")
        self._client: EdgeBackend = backend
        # Skips the search for texts to embed in every point and query; the backend takes vectors only.
        self.cloud_inference = True

    @property
    def backend(self) -> EdgeBackend:
        return self._client

    def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *_: Any, **options: Any
    ) -> list[QueryResponse]:
        return self._client.query_batch_points(collection_name, requests, **options)


def _said(call: str, ask: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ask)
    def said(*args: Any, **options: Any) -> Any:
        with argument_faults(call):
            return ask(*args, **options)

    return said


for _call in vars(EdgeBackend):
    if not _call.startswith("_") and hasattr(QdrantClient, _call):
        setattr(EdgeClient, _call, _said(_call, getattr(EdgeClient, _call)))
