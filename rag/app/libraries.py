"""The libraries that are open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rag.app.models import Models
from rag.config import Settings
from rag.dates import now
from rag.errors import StoreAwayError, StoreError
from rag.models.hub import BUILTIN
from rag.store.qdrant.client import Connection
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.records import LibraryInfo, check_library_name
from rag.store.qdrant.registry import (
    check_present,
    check_title,
    create_library,
    free_name,
    is_over,
    library_info,
    library_infos,
    purge_library,
    remove_library,
    rename_library,
    restore_library,
)
from rag.store.qdrant.transfer import export_library, import_library

_BUILTIN_DIMENSION = 384


class Libraries:
    """Opens each library once. Safe to share between threads; methods raise StoreError."""

    def __init__(self, client: Connection, settings: Settings, models: Models) -> None:
        self._client = client
        self._settings = settings
        self._models = models
        self._open: dict[str, Library] = {}
        self._seen: list[LibraryInfo] = []
        self._turns: dict[str, threading.RLock] = {}
        self._turns_lock = threading.Lock()

    def infos(self) -> list[LibraryInfo]:
        """The libraries there are, by title, with the one of the settings, which need not exist yet.

        While the database is away they are those that were there before.
        """
        first = self._settings.rag_library
        with suppress(StoreAwayError):
            self._seen = library_infos(self._client)
        found = {first: LibraryInfo(first, "", 0), **{info.name: info for info in self._seen}}
        return sorted(found.values(), key=lambda info: (info.shown.casefold(), info.name))

    def removed(self) -> list[LibraryInfo]:
        """Those that were removed and can be restored, the latest first."""
        found = (info for info in library_infos(self._client, removed=True) if not is_over(info))
        return sorted(found, key=lambda info: info.removed_at, reverse=True)

    def check(self, name: str) -> None:
        """Raises StoreError for a name that no library has, or one that was removed."""
        if name != self._settings.rag_library:
            check_present(self._client, name)

    def has(self, name: str) -> bool:
        return any(info.name == name for info in self.infos())

    def title(self, name: str) -> str:
        """What people call the library; its name where it is not there."""
        return next((info.shown for info in self.infos() if info.name == name), name)

    def create(self, title: str) -> str:
        """Make a library that people know by `title`; returns its name."""
        name, plain = self.new_name(title)
        create_library(self._client, LibraryInfo(name, *self._identity(name), now(), plain))
        return name

    def new_name(self, title: str) -> tuple[str, str]:
        """A name for a library that is to be made, and its title without needless spaces."""
        plain = check_title(self._client, title)
        return free_name(self._client, plain, reserved=[self._settings.rag_library]), plain

    def rename(self, name: str, title: str) -> None:
        rename_library(self._client, self.get(name).name, title)

    def remove(self, name: str) -> None:
        """Hide the library; for a day it can be restored. The one of the settings stays."""
        if name == self._settings.rag_library:
            raise StoreError("library_is_first", library=name)
        with self._turn(name):
            remove_library(self._client, name)
            self._open.pop(name, None)

    def restore(self, name: str) -> None:
        restore_library(self._client, name)

    def over(self) -> list[str]:
        """The names of those that were removed and can no longer be restored."""
        return [info.name for info in library_infos(self._client, removed=True) if is_over(info)]

    def purge(self, name: str) -> None:
        """Delete the pages of a library whose day is over."""
        purge_library(self._client, name)

    def get(self, name: str | None = None) -> Library:
        """The library for reading; its own embedding model counts, whichever is set now.

        Only that of the settings is made where it is missing; of others StoreError tells that they are not there.
        """
        wanted = name or self._settings.rag_library
        with self._turn(wanted):
            if wanted not in self._open:
                self._open[wanted] = self._opened(wanted, *self._identity(wanted))
            return self._open[wanted]

    def _opened(self, name: str, embedding_model: str, dimension: int) -> Library:
        create = name == self._settings.rag_library
        return open_library(self._client, name, embedding_model, dimension, create=create)

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
                held = self._opened(name, model.name, model.dimension)
                self._open[name] = held
            return held

    def export(self, name: str, path: Path, on_progress: Callable[[int, int], object]) -> dict[str, int]:
        """Write the library to a file; returns how many pages, chunks and versions it holds."""
        return export_library(self.get(name), path, on_progress)

    def bring_in(
        self, path: Path, name: str, on_progress: Callable[[int, int], object], called: str = "", title: str = ""
    ) -> dict[str, int]:
        """Make a library from an exported file; returns how many pages, chunks and versions came in.

        `title` is what people know the library by, and `called` the file, where that is not its name. Loads the
        embedding model, which it must have been made with; raises ModelMismatchError.
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
            title=title,
        )
