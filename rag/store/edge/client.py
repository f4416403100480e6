"""The embedded engine as a `QdrantClient`."""

from __future__ import annotations

from pathlib import Path

from qdrant_client import QdrantClient

from rag.store.edge.backend import EdgeBackend


class EdgeClient(QdrantClient):
    """A QdrantClient over the shards in `folder`; safe to share between threads.

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
