"""The models that search, as the settings name them, each loaded by whoever needs it first."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from functools import cached_property

from rag.config import Settings
from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.models.reranker import LateReranker, Reranker
from rag.models.sparse import SparseEncoder
from rag.models.verifier import LateSupportModel, SupportModel
from rag.types import Notice

log = logging.getLogger(__name__)

# What torch, transformers and the files of a model fail with.
_LOAD_FAULTS = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ImportError, MemoryError)


class Models:
    """Safe to share between threads. Methods raise ModelError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._embedding: EmbeddingModel | None = None
        self._others: dict[str, EmbeddingModel] = {}
        self._problem: Notice | None = None

    @property
    def embedding(self) -> EmbeddingModel:
        """The embedding model, loaded by whoever asks first. Raises ModelError, each time anew."""
        with self._lock:
            if self._embedding is None:
                self._problem = None
                try:
                    self._embedding = self._load(self._settings.embedding_model)
                except ModelError as error:
                    self._problem = error.notice
                    raise
            return self._embedding

    def of_library(self, name: str) -> EmbeddingModel:
        """The embedding model that a library was made with, by its `name` there: that of the settings, or another one
        beside it, which stays loaded. Raises ModelError for one that lies in a folder, whose name tells not where."""
        if name == self.embedding.name:
            return self.embedding
        with self._lock:
            if name not in self._others:
                self._others[name] = self._load(name)
            return self._others[name]

    def _load(self, name: str) -> EmbeddingModel:
        """Raises ModelError, whatever it is that fails: a broken install, a full disk, a card without memory."""
        try:
            return load_embedding_model(name)
        except _LOAD_FAULTS as error:
            log.exception("The embedding model could not be loaded")
            raise ModelError("model_failed") from error

    @cached_property
    def sparse(self) -> SparseEncoder:
        return SparseEncoder()

    @cached_property
    def reranker(self) -> Reranker | None:
        name = self._settings.reranker_model
        return LateReranker(name) if name else None

    @cached_property
    def verifier(self) -> SupportModel | None:
        name = self._settings.verifier_model
        return LateSupportModel(name) if name else None

    def ready(self) -> bool:
        """Whether the embedding model is loaded."""
        return self._embedding is not None

    def problem(self) -> Notice | None:
        """Why the embedding model could not be loaded the last time, None if it was or is being loaded."""
        return self._problem

    def warm(self, delay: float = 0.0, besides: Callable[[], object] | None = None) -> None:
        """Load the embedding model, in a thread of its own; a failure is logged and kept as `problem`.

        After `delay` seconds, unless somebody needs it sooner. `besides` is done then, too.
        """
        thread = threading.Timer(delay, self._warm, (besides,))
        thread.name, thread.daemon = "models", True
        thread.start()

    def _warm(self, besides: Callable[[], object] | None) -> None:
        try:
            self.embedding.encode_query("ready")
            if besides:
                besides()
        except ModelError as error:
            log.error("%s", error)
        except Exception:  # the thread's edge: whoever asks for the model next gets the error
            log.exception("The embedding model could not be tried out")
        else:
            gc.freeze()  # a million objects that stay: to walk them again and again would stop every thread each time
