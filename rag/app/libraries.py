"""The libraries that are open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from qdrant_client import QdrantClient

from rag.app.models import Models
from rag.config import Settings
from rag.errors import StoreError
from rag.models.hub import BUILTIN
from rag.store.collections import check_library_name
from rag.store.exchange import export_library, import_library
from rag.store.library import Library, library_info, list_libraries, open_library

_BUILTIN_DIMENSION = 384


class Libraries:
    """Opens each library once. Safe to share between threads; methods raise StoreError."""

    def __init__(self, client: QdrantClient, settings: Settings, models: Models) -> None:
        self._client = client
        self._settings = settings
        self._models = models
        self._open: dict[str, Library] = {}
        self._turns: dict[str, threading.RLock] = {}
        self._turns_lock = threading.Lock()

    def names(self) -> list[str]:
        """The libraries there are, with the one of the settings, which need not exist yet."""
        return sorted({*list_libraries(self._client), self._settings.rag_library})

    def get(self, name: str | None = None) -> Library:
        """The library for reading, created if need be; its own embedding model counts, whichever is set now."""
        wanted = name or self._settings.rag_library
        with self._turn(wanted):
            if wanted not in self._open:
                self._open[wanted] = open_library(self._client, wanted, *self._identity(wanted))
            return self._open[wanted]

    def _turn(self, name: str) -> threading.RLock:
        """The lock under which this library is opened. It may take as long as an import, and keeps no other waiting."""
        with self._turns_lock:
            return self._turns.setdefault(check_library_name(name), threading.RLock())

    def _identity(self, name: str) -> tuple[str, int]:
        """The embedding model that the library was or would be made with, and its dimension."""
        info = library_info(self._client, name)
        if info is not None:
            return info.embedding_model, info.dimension
        if self._settings.embedding_model == BUILTIN:
            return BUILTIN, _BUILTIN_DIMENSION  # known without loading it
        return self._models.embedding.name, self._models.embedding.dimension

    def working(self, name: str) -> Library:
        """The library for searching and adding: it must have been made with the model that is set.

        Loads the embedding model; raises ModelMismatchError.
        """
        model = self._models.embedding
        with self._turn(name):
            held = self._open.get(name)
            if held is None or (held.embedding_model, held.dimension) != (model.name, model.dimension):
                held = open_library(self._client, name, model.name, model.dimension)
                self._open[name] = held
            return held

    def export(self, name: str, path: Path, on_progress: Callable[[int, int], object]) -> dict[str, int]:
        """Write the library to a file; returns how many pages, chunks and versions it holds."""
        return export_library(self.get(name), path, on_progress)

    def check_new(self, name: str) -> None:
        """Raises StoreError for a name that is taken or cannot be a library's."""
        if library_info(self._client, check_library_name(name)) is not None:
            raise StoreError("library_exists", library=name)

    def bring_in(
        self, path: Path, name: str, on_progress: Callable[[int, int], object], called: str = ""
    ) -> dict[str, int]:
        """Make a library from an exported file; returns how many pages, chunks and versions came in.

        `called` is what a person knows the file by, where that is not its name. Loads the embedding model,
        which it must have been made with; raises ModelMismatchError.
        """
        model = self._models.embedding
        return import_library(
            self._client,
            path,
            name,
            embedding_model=model.name,
            dimension=model.dimension,
            on_progress=on_progress,
            called=called,
        )
