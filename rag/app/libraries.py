"""The configured search models, each loaded on first use, and the open libraries."""

from __future__ import annotations

import gc
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rag.config import Settings
from rag.errors import ConfigError, ModelError, ModelMismatchError, RagError, StoreError, StoreUnavailableError
from rag.evaluation.statistics import Difference
from rag.models import model_files
from rag.models.cross_encoders import AnswerReader, LazyReranker, LazySupportModel, Reranker, SupportModel
from rag.models.embedding import EmbeddingModel, SentenceModel, SparseEncoder, load_embedding_model
from rag.models.model_files import BUILTIN, SHIPPED, builtin_model, find_model, read_json
from rag.models.service import Scale, Service, ServiceEncoder, ServiceReranker, is_same, service_name
from rag.store.qdrant.client import Connection
from rag.store.qdrant.library import Library, open_library
from rag.store.qdrant.moving import Encode, Move, drop_unused_chunks
from rag.store.qdrant.records import (
    LibraryInfo,
    check_library_name,
    check_present,
    check_title,
    create_library,
    free_name,
    is_expired,
    library_info,
    library_infos,
    note_fingerprint,
    purge_library,
    remove_library,
    rename_library,
    restore_library,
)
from rag.store.qdrant.transfer import export_library, import_library
from rag.store.values import now
from rag.types import Notice

log = logging.getLogger(__name__)

# Failures of torch, of transformers, and of a model's files.
_LOAD_FAULTS = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ImportError, MemoryError)


class Reranking:
    """The configured reranker. Thread-safe. The state of a remote one is stored in the data folder."""

    def __init__(self, settings: Settings) -> None:
        self._file = settings.rag_data_dir / "reranker.json"
        self._lock = threading.Lock()
        self._key = f"{settings.reranker_model} {settings.reranker_base_url}"
        self.is_remote = bool(settings.reranker_base_url)
        self.configured: Reranker | None = None
        """The configured reranker, active or not."""
        if self.is_remote:
            key = settings.reranker_api_key.get_secret_value()
            service = Service(settings.reranker_base_url, key, "RERANKER_BASE_URL")
            scale: Scale = self._read_state().get("scale", "")
            model, save = settings.reranker_model, lambda scale: self._write_state(scale=scale)
            self.configured = ServiceReranker(service, model, scale, save)
        elif settings.reranker_model:
            self.configured = LazyReranker(settings.reranker_model)

    @property
    def current(self) -> Reranker | None:
        """Active reranker."""
        return self.configured if not self.is_remote or self._read_state().get("on") else None

    @property
    def comparison(self) -> Mapping[str, Any]:
        """Results of the last comparison; empty before the first."""
        figures: Mapping[str, Any] = self._read_state().get("compared", {})
        return figures

    def switch(self, on: bool) -> None:
        """Turn the reranker on or off. Raises RagError("reranker_not_compared") before the first comparison."""
        if on and not self.comparison:
            raise RagError("reranker_not_compared")
        self._write_state(on=on)

    def save_comparison(self, difference: Difference) -> None:
        delta = difference.delta
        self._write_state(
            compared={
                "questions": difference.n,
                "before": round(difference.before, 4),
                "after": round(difference.after, 4),
                "difference": [round(delta.value, 4), round(delta.low, 4), round(delta.high, 4)],
                "verdict": difference.verdict,
            }
        )

    def _read_state(self) -> dict[str, Any]:
        """Return the stored state of this model at this address, or {}."""
        notes = read_json(self._file)
        return notes if notes.get("of") == self._key else {}

    def _write_state(self, **values: Any) -> None:
        with self._lock:
            draft = self._file.with_suffix(".new")
            try:
                draft.write_text(json.dumps({**self._read_state(), "of": self._key, **values}), "utf-8")
                draft.replace(self._file)
            except OSError as error:
                raise ConfigError("data_dir_unwritable", path=self._file.parent) from error


class Models:
    """The configured models. Thread-safe; methods raise ModelError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._embedding: EmbeddingModel | None = None
        self._others: dict[str, EmbeddingModel] = {}
        self._problem: Notice | None = None
        self._needed = threading.Event()

    @property
    def embedding(self) -> EmbeddingModel:
        """Embedding model, loaded on first use; a failed load is retried on each access. Raises ModelError."""
        with self._lock:
            if self._embedding is None:
                self._problem = None
                try:
                    self._embedding = self._service_model() or self._load(self._settings.embedding_model)
                except ModelError as error:
                    self._problem = error.notice
                    raise
            return self._embedding

    def of_library(self, name: str) -> EmbeddingModel:
        """Return the embedding model with this `name` in libraries: the configured one, or another, which stays loaded.
        Raises ModelError for a model in a folder, since its name does not include the path."""
        if name == self.embedding.name:
            return self.embedding
        with self._lock:
            if name not in self._others:
                self._others[name] = self._load(name)
            return self._others[name]

    def _service_model(self) -> EmbeddingModel | None:
        """Return the remote embedding model, if configured, without contacting it. The built-in one splits passages."""
        settings = self._settings
        if not settings.embedding_base_url:
            return None
        key = settings.embedding_api_key.get_secret_value()
        return ServiceEncoder(
            Service(settings.embedding_base_url, key, "EMBEDDING_BASE_URL"),
            settings.embedding_model,
            seconds=settings.embedding_timeout,
            static=lambda texts: self.of_library(builtin_model()).sentence_vectors(texts),
        )

    def _load(self, name: str) -> EmbeddingModel:
        """Load a model. Raises ModelError for any failure: a broken install, a full disk, too little GPU memory."""
        try:
            return load_embedding_model(name)
        except _LOAD_FAULTS as error:
            log.exception("The embedding model could not be loaded")
            raise ModelError("model_failed") from error

    @cached_property
    def sentences(self) -> SentenceModel:
        """Built-in model for comparing sentences with questions, whose scores don't depend on the search model."""
        return SentenceModel(lambda: self.of_library(builtin_model()))

    @cached_property
    def reader(self) -> AnswerReader | None:
        """Model that reads sentences together with a question; None if the built-in model is the fallback."""
        return AnswerReader(lambda: find_model(BUILTIN).folder) if builtin_model() == model_files.E5 else None

    @cached_property
    def sparse(self) -> SparseEncoder:
        return SparseEncoder()

    @cached_property
    def reranking(self) -> Reranking:
        return Reranking(self._settings)

    @property
    def reranker(self) -> Reranker | None:
        return self.reranking.current

    @cached_property
    def verifier(self) -> SupportModel | None:
        name = self._settings.verifier_model
        return LazySupportModel(name) if name else None

    def ready(self) -> bool:
        """Return whether the embedding model is loaded."""
        return self._embedding is not None

    def problem(self) -> Notice | None:
        """Return why loading the embedding model failed; None if it is loaded or loading."""
        return self._problem

    def warm(self, delay: float = 0.0, then: Callable[[], object] | None = None) -> None:
        """Load the models in a background thread, then call `then`; `problem` returns a failure.

        It begins after `delay` seconds, or when `end_delay` is called; an earlier use loads a model at once.
        """
        threading.Thread(target=self._warm, args=(delay, then), name="models", daemon=True).start()

    def end_delay(self) -> None:
        """Begin to load the models that `warm` waits for."""
        self._needed.set()

    def _warm(self, delay: float, then: Callable[[], object] | None) -> None:
        self._needed.wait(delay)
        try:
            self.embedding.encode_query("ready")
            if then:
                then()
            if self.reader:
                self.reader.load()
        except ModelError as error:
            log.error("%s", error)
        except Exception:  # would end the thread; the next caller that needs the model gets the error
            log.exception("The embedding model could not be tried out")
        else:
            gc.freeze()  # each collection would walk a million permanent objects and pause all threads


_SHIPPED_DIMENSION = 384
_TIDY_SECONDS = 300.0
_CACHE_SECONDS = 1.0
"""Each rerun of a screen requests the list several times; reading it caused 7% of the load with 50 users."""


class Libraries:
    """A registry that opens each library once. Thread-safe; methods raise StoreError."""

    def __init__(self, client: Connection, settings: Settings, models: Models) -> None:
        self._client = client
        self._settings = settings
        self._models = models
        self._open: dict[str, Library] = {}
        self._infos: list[LibraryInfo] = []
        self._infos_until = 0.0
        self._changes = 0
        self._locks: dict[str, threading.RLock] = {}
        self._locks_lock = threading.Lock()

    def infos(self) -> list[LibraryInfo]:
        """Return all libraries, sorted by title, and the configured one even if it does not exist yet.

        Changes by other processes appear after a second, or once the database is available again.
        """
        first = self._settings.rag_library
        changes = self._changes
        if time.monotonic() >= self._infos_until:
            with suppress(StoreUnavailableError):
                self._infos = library_infos(self._client)
                if changes == self._changes:  # else the list may be outdated
                    self._infos_until = time.monotonic() + _CACHE_SECONDS
        infos = {first: LibraryInfo(first, "", 0), **{info.name: info for info in self._infos}}
        return sorted(infos.values(), key=lambda info: (info.display_name.casefold(), info.name))

    def _invalidate(self) -> None:
        self._changes += 1
        self._infos_until = 0.0

    def removed_libraries(self) -> list[LibraryInfo]:
        """Return the deleted libraries that can be restored, the latest first."""
        infos = (info for info in library_infos(self._client, removed=True) if not is_expired(info))
        return sorted(infos, key=lambda info: info.removed_at, reverse=True)

    def check(self, name: str) -> None:
        """Raise StoreError if the library does not exist or was deleted."""
        if name != self._settings.rag_library:
            check_present(self._client, name)

    def has(self, name: str) -> bool:
        return any(info.name == name for info in self.infos())

    def title(self, name: str) -> str:
        """Return the library's title, or its name if it doesn't exist."""
        return next((info.display_name for info in self.infos() if info.name == name), name)

    def create(self, title: str) -> str:
        """Create a library with this title; return its name."""
        name, plain = self.new_name(title)
        create_library(self._client, LibraryInfo(name, *self._identity(name), now(), plain))
        self._invalidate()
        return name

    def new_name(self, title: str) -> tuple[str, str]:
        """Return an unused name for a library with this title, and the title without extra spaces."""
        plain = check_title(self._client, title)
        return free_name(self._client, plain, reserved=[self._settings.rag_library]), plain

    def rename(self, name: str, title: str) -> None:
        rename_library(self._client, self.get(name).name, title)
        self._invalidate()

    def remove(self, name: str) -> None:
        """Hide the library, which can be restored for a day. The configured one cannot be removed."""
        if name == self._settings.rag_library:
            raise StoreError("library_is_first", library=name)
        with self._lock_of(name):
            remove_library(self._client, name)
            self._open.pop(name, None)
            self._invalidate()

    def restore(self, name: str) -> None:
        restore_library(self._client, name)
        self._invalidate()

    def list_expired(self) -> list[str]:
        """Return the names of the deleted libraries that can no longer be restored."""
        return [info.name for info in library_infos(self._client, removed=True) if is_expired(info)]

    def purge(self, name: str) -> None:
        """Delete the pages of a library that can no longer be restored."""
        purge_library(self._client, name)

    def get(self, name: str | None = None) -> Library:
        """Return the library for reading, with its embedding model, regardless of the settings.

        Raises StoreError if it does not exist, except for the configured one, which is created.
        """
        key = name or self._settings.rag_library
        with self._lock_of(key):
            library = self._open.get(key)
            if library is None or self._has_moved(library):
                library = self._open_library(key, *self._identity(key))
            return library

    def _has_moved(self, library: Library) -> bool:
        """Return whether another process moved the library to another model; queries the database only if needed."""
        models = {info.name: info.embedding_model for info in self._infos}
        if models.get(library.name, library.embedding_model) == library.embedding_model:
            return False
        return self._identity(library.name)[0] != library.embedding_model

    def _open_library(self, name: str, embedding_model: str, dimension: int) -> Library:
        create = name == self._settings.rag_library
        library = open_library(self._client, name, embedding_model, dimension, create=create)
        self._open[name] = library
        self._invalidate()
        return library

    def _lock_of(self, name: str) -> threading.RLock:
        """Return the lock for opening this library, which may take as long as an import and must not block others."""
        with self._locks_lock:
            return self._locks.setdefault(check_library_name(name), threading.RLock())

    def _identity(self, name: str) -> tuple[str, int]:
        """Return the name and dimension of the embedding model that the library has or would be created with."""
        info = library_info(self._client, name)
        if info is not None:
            return info.embedding_model, info.dimension
        if self._settings.embedding_model == BUILTIN:
            return builtin_model(), _SHIPPED_DIMENSION  # known without loading it
        return self._models.embedding.name, self._models.embedding.dimension

    def load(self, name: str) -> Library:
        """Return the library for searching and importing, and load its embedding model: a shipped one, or else the
        configured one. Raises ModelError, ModelMismatchError."""
        identity = self._identity(name)
        made_with = identity[0]
        model = self._models.of_library(made_with) if made_with in SHIPPED else self._models.embedding
        is_known = isinstance(model, ServiceEncoder) and model.name == made_with
        # A remote model is not asked for its dimension, so that keyword search works without it.
        expected = (model.name, identity[1] if is_known else model.dimension)
        with self._lock_of(name):
            if self._identity(name) != identity:
                return self.load(name)  # it was moved to another model meanwhile
            library = self._open.get(name)
            if library is None or (library.embedding_model, library.dimension) != expected:
                library = self._open_library(name, *expected)
        self._check_service(name, model)
        return library

    def _check_service(self, name: str, model: EmbeddingModel) -> None:
        """Compare a remote model's fingerprint with the one from the library's first use, unless it is unavailable.

        Raises ModelMismatchError.
        """
        if not isinstance(model, ServiceEncoder):
            return
        info = check_present(self._client, name)
        with suppress(ModelError):
            current = model.fingerprint()
            stored = info.fingerprints.get(model.name, "")
            if not stored:
                note_fingerprint(self._client, info, model.name, current)
            elif not is_same(stored, current):
                params = {"library": info.display_name, "host": model.host, "model": model.name}
                raise ModelMismatchError("service_model_exchanged", **params)

    # Moves to another embedding model

    def info(self, name: str) -> LibraryInfo:
        """Return the library's record. Raises StoreError if there is no such library."""
        return check_present(self._client, name)

    def current_model(self) -> str:
        """Return the configured model's name in libraries; empty if the model must be loaded first."""
        stored = self._name_of(self._settings.embedding_model)
        if stored in SHIPPED or self._settings.embedding_base_url:
            return stored
        return self._models.embedding.name if self._models.ready() else ""

    def target_model(self, setting: str) -> str:
        """Return the name in libraries of a model to move to, given its name in EMBEDDING_MODEL.

        Raises StoreError unless the model is shipped or configured, since searches could not load it.
        """
        stored = self._name_of(setting or self._settings.embedding_model)
        if stored in SHIPPED:
            return stored
        if setting not in ("", self._settings.embedding_model, self._models.embedding.name):
            raise StoreError("move_other_model", model=setting)
        return self._models.embedding.name

    def move(self, name: str, stored: str, encoder: Callable[[EmbeddingModel], Encode]) -> tuple[Move, EmbeddingModel]:
        """Start or resume moving the library to the model with the name `stored` in libraries. Loads the model."""
        if stored not in SHIPPED and stored != self._models.embedding.name:  # searches would not load it
            raise StoreError("move_other_model", model=stored)
        model = self._models.of_library(stored)
        self._check_service(name, model)
        return Move(self.get(name), model.name, model.dimension, encoder(model)), model

    def switch(self, move: Move) -> None:
        """Make searches use the model that the library was moved to."""
        name = move.target.name
        with self._lock_of(name):
            move.switch()
            self._open.pop(name, None)
            self._invalidate()
        self.infos()

    def drop_unused(self) -> None:
        """Delete chunk sets that moves left: abandoned ones, and previous ones that can no longer be restored."""
        for info in library_infos(self._client):
            until = info.revertible_until
            drop_unused_chunks(self._client, info, include_previous=until is not None and datetime.now(UTC) >= until)

    def export(self, name: str, path: Path, on_progress: Callable[[int, int], object]) -> dict[str, int]:
        """Write the library to a file; return the counts of its pages, chunks and versions."""
        return export_library(self.get(name), path, on_progress)

    def import_file(
        self, path: Path, name: str, on_progress: Callable[[int, int], object], called: str = "", title: str = ""
    ) -> dict[str, int]:
        """Create a library from an exported file; return the counts of imported pages, chunks and versions.

        `title` is the library's title, `called` the file name for messages if it differs from that of `path`. Loads the
        configured embedding model; raises ModelMismatchError if the file has another.
        """
        model = self._models.embedding
        counts = import_library(
            self._client,
            path,
            name,
            embedding_model=model.name,
            dimension=model.dimension,
            on_progress=on_progress,
            display_name=called,
            title=title,
        )
        self._invalidate()
        return counts

    def _name_of(self, setting: str) -> str:
        """Return the name in libraries of the model that EMBEDDING_MODEL calls `setting`."""
        if self._settings.embedding_base_url and setting == self._settings.embedding_model:
            return service_name(setting)
        return builtin_model() if setting == BUILTIN else setting


class Maintenance:
    """A thread that calls `tidy` at start and every five minutes. Failures are logged and retried the next time."""

    def __init__(self, tidy: Callable[[], None]) -> None:
        self._tidy = tidy
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for work in progress."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._tidy()
            except StoreUnavailableError as error:
                log.info("upkeep waits: %s", error)
            except Exception:  # would end the thread, and with it all maintenance
                log.exception("upkeep failed")
            self._closed.wait(_TIDY_SECONDS)
