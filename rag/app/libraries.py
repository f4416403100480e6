"""The libraries that are open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rag.app.models import Models
from rag.config import Settings
from rag.dates import now
from rag.errors import ModelError, ModelMismatchError, StoreAwayError, StoreError
from rag.models.embedding import EmbeddingModel
from rag.models.hub import BUILTIN, builtin_model, is_shipped, stored_name
from rag.models.service_embedding import ServiceEncoder, is_same, served
from rag.store.qdrant.client import Connection
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.moving import Encode, Move, drop_unused_chunks
from rag.store.qdrant.records import LibraryInfo, check_library_name
from rag.store.qdrant.registry import (
    check_present,
    check_title,
    create_library,
    free_name,
    is_over,
    library_info,
    library_infos,
    note_fingerprint,
    purge_library,
    remove_library,
    rename_library,
    restore_library,
)
from rag.store.qdrant.transfer import export_library, import_library

_SHIPPED_DIMENSION = 384
_SEEN_SECONDS = 1.0
"""Every drawing of a screen asks for the list several times, and reading it was 7% of the work for 50 people."""


class Libraries:
    """Opens each library once. Safe to share between threads; methods raise StoreError."""

    def __init__(self, client: Connection, settings: Settings, models: Models) -> None:
        self._client = client
        self._settings = settings
        self._models = models
        self._open: dict[str, Library] = {}
        self._seen: list[LibraryInfo] = []
        self._seen_until = 0.0
        self._changes = 0
        self._turns: dict[str, threading.RLock] = {}
        self._turns_lock = threading.Lock()

    def infos(self) -> list[LibraryInfo]:
        """The libraries there are, by title, with the one of the settings, which need not exist yet.

        What other processes change is seen a second later, and nothing new while the database is away.
        """
        first = self._settings.rag_library
        changes = self._changes
        if time.monotonic() >= self._seen_until:
            with suppress(StoreAwayError):
                self._seen = library_infos(self._client)
                if changes == self._changes:  # else the list may be that of before
                    self._seen_until = time.monotonic() + _SEEN_SECONDS
        found = {first: LibraryInfo(first, "", 0), **{info.name: info for info in self._seen}}
        return sorted(found.values(), key=lambda info: (info.shown.casefold(), info.name))

    def _changed(self) -> None:
        """Have the list read again by whoever asks next."""
        self._changes += 1
        self._seen_until = 0.0

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
        """Return the library's title, or its name if it doesn't exist."""
        return next((info.shown for info in self.infos() if info.name == name), name)

    def create(self, title: str) -> str:
        """Make a library that people know by `title`; returns its name."""
        name, plain = self.new_name(title)
        create_library(self._client, LibraryInfo(name, *self._identity(name), now(), plain))
        self._changed()
        return name

    def new_name(self, title: str) -> tuple[str, str]:
        """A name for a library that is to be made, and its title without needless spaces."""
        plain = check_title(self._client, title)
        return free_name(self._client, plain, reserved=[self._settings.rag_library]), plain

    def rename(self, name: str, title: str) -> None:
        rename_library(self._client, self.get(name).name, title)
        self._changed()

    def remove(self, name: str) -> None:
        """Hide the library; for a day it can be restored. The one of the settings stays."""
        if name == self._settings.rag_library:
            raise StoreError("library_is_first", library=name)
        with self._turn(name):
            remove_library(self._client, name)
            self._open.pop(name, None)
            self._changed()

    def restore(self, name: str) -> None:
        restore_library(self._client, name)
        self._changed()

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
            opened = self._open.get(wanted)
            if opened is None or self._has_moved(opened):
                opened = self._opened(wanted, *self._identity(wanted))
                self._open[wanted] = opened
            return opened

    def _has_moved(self, opened: Library) -> bool:
        """Return whether another process moved the library to another model; the database is asked if it seems so."""
        seen = {info.name: info.embedding_model for info in self._seen}
        if seen.get(opened.name, opened.embedding_model) == opened.embedding_model:
            return False
        return self._identity(opened.name)[0] != opened.embedding_model

    def _opened(self, name: str, embedding_model: str, dimension: int) -> Library:
        create = name == self._settings.rag_library
        opened = open_library(self._client, name, embedding_model, dimension, create=create)
        self._changed()
        return opened

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
            return stored_name(builtin_model()), _SHIPPED_DIMENSION  # known without loading it
        return self._models.embedding.name, self._models.embedding.dimension

    def working(self, name: str) -> Library:
        """The library for searching and adding, with a shipped model that it was made with, else that of the
        settings. Loads it; raises ModelError, ModelMismatchError."""
        identity = self._identity(name)
        made_with = identity[0]
        model = self._models.of_library(made_with) if is_shipped(made_with) else self._models.embedding
        asked = (model.name, _dimension(model, identity))
        with self._turn(name):
            if self._identity(name) != identity:
                return self.working(name)  # it was moved to another model meanwhile
            held = self._open.get(name)
            if held is None or (held.embedding_model, held.dimension) != asked:
                held = self._opened(name, *asked)
                self._open[name] = held
        self._check_service(name, model)
        return held

    def _check_service(self, name: str, model: EmbeddingModel) -> None:
        """Compare a model by address with what it was when the library first knew it; not while it is away.

        Raises ModelMismatchError.
        """
        if not isinstance(model, ServiceEncoder):
            return
        info = check_present(self._client, name)
        with suppress(ModelError):
            given = model.fingerprint()
            known = info.fingerprints.get(model.name, "")
            if not known:
                note_fingerprint(self._client, info, model.name, given)
            elif not is_same(known, given):
                params = {"library": info.shown, "host": model.host, "model": model.name}
                raise ModelMismatchError("service_model_exchanged", **params)

    # Another embedding model

    def info(self, name: str) -> LibraryInfo:
        """The library's record. Raises StoreError where there is no such library."""
        return check_present(self._client, name)

    def current_model(self) -> str:
        """The name by which libraries know the model of the settings; empty while only loading it would tell."""
        stored = self._stored(self._settings.embedding_model)
        if is_shipped(stored) or self._settings.embedding_base_url:
            return stored
        return self._models.embedding.name if self._models.ready() else ""

    def target_model(self, setting: str) -> str:
        """The name by which libraries know a model, by what EMBEDDING_MODEL calls it, that they can be moved to.

        Raises StoreError for one that the app could not search with: only a shipped one, or that of the settings, can.
        """
        stored = self._stored(setting or self._settings.embedding_model)
        if is_shipped(stored):
            return stored
        if setting not in ("", self._settings.embedding_model, self._models.embedding.name):
            raise StoreError("move_other_model", model=setting)
        return self._models.embedding.name

    def move(self, name: str, stored: str, encoder: Callable[[EmbeddingModel], Encode]) -> tuple[Move, EmbeddingModel]:
        """Begin to move the library to the model that libraries call `stored`, or resume that. Loads the model."""
        if not is_shipped(stored) and stored != self._models.embedding.name:  # searches would not load it
            raise StoreError("move_other_model", model=stored)
        model = self._models.of_library(stored)
        self._check_service(name, model)
        return Move(self.get(name), model.name, model.dimension, encoder(model)), model

    def switch(self, move: Move) -> None:
        """Let the library be searched by the model that it was moved to."""
        name = move.target.name
        with self._turn(name):
            move.switch()
            self._open.pop(name, None)
            self._changed()
        self.infos()

    def drop_unused(self) -> None:
        """Delete what moves have left: unfinished sets of chunks that nobody works on, and those kept long enough."""
        for info in library_infos(self._client):
            until = info.back_until
            drop_unused_chunks(self._client, info, over=until is not None and datetime.now(UTC) >= until)

    def export(self, name: str, path: Path, on_progress: Callable[[int, int], object]) -> dict[str, int]:
        """Write the library to a file; returns how many pages, chunks and versions it holds."""
        return export_library(self.get(name), path, on_progress)

    def bring_in(
        self, path: Path, name: str, on_progress: Callable[[int, int], object], called: str = "", title: str = ""
    ) -> dict[str, int]:
        """Make a library from an exported file; returns the numbers of imported pages, chunks and versions.

        `title` is what people know the library by, and `called` the file, where that is not its name. Loads the
        embedding model, which it must have been made with; raises ModelMismatchError.
        """
        model = self._models.embedding
        counts = import_library(
            self._client,
            path,
            name,
            embedding_model=model.name,
            dimension=model.dimension,
            on_progress=on_progress,
            called=called,
            title=title,
        )
        self._changed()
        return counts

    def _stored(self, setting: str) -> str:
        """What libraries call the model that EMBEDDING_MODEL calls `setting`."""
        if self._settings.embedding_base_url and setting == self._settings.embedding_model:
            return served(setting)
        return stored_name(builtin_model() if setting == BUILTIN else setting)


def _dimension(model: EmbeddingModel, made_with: tuple[str, int]) -> int:
    """The model's; that of a service is the library's own, which is searched by keywords while it is away.

    Raises ModelError.
    """
    return made_with[1] if isinstance(model, ServiceEncoder) and model.name == made_with[0] else model.dimension
