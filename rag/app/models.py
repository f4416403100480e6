"""The configured search models, each loaded on first use, and the switch for the reranker."""

from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from rag.config import Settings
from rag.errors import ConfigError, ModelError, RagError
from rag.evaluation.statistics import Difference
from rag.models import e5
from rag.models.answer_reader import AnswerReader
from rag.models.embedding import EmbeddingModel, SentenceModel, load_embedding_model
from rag.models.model_files import BUILTIN, builtin_model, find_model, model_of_library, name_in_library, read_json
from rag.models.reranker import LazyReranker, Reranker
from rag.models.service import Scale, Service, ServiceEncoder, ServiceReranker
from rag.models.sparse import SparseEncoder
from rag.models.verifier import LazySupportModel, SupportModel
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
            self.configured = ServiceReranker(service, settings.reranker_model, scale, self._save_scale)
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

    def _save_scale(self, scale: Scale) -> None:
        self._write_state(scale=scale)

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
                self._others[name] = self._load(model_of_library(name))
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
            static=lambda texts: self.of_library(name_in_library(builtin_model())).sentence_vectors(texts),
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
        return SentenceModel(lambda: self.of_library(name_in_library(builtin_model())))

    @cached_property
    def reader(self) -> AnswerReader | None:
        """Model that reads sentences together with a question; None if the built-in model is the fallback."""
        return AnswerReader(lambda: find_model(BUILTIN).folder) if builtin_model() == e5.NAME else None

    @cached_property
    def sparse(self) -> SparseEncoder:
        return SparseEncoder()

    @cached_property
    def reranking(self) -> Reranking:
        return Reranking(self._settings)

    @property
    def reranker(self) -> Reranker | None:
        """Active reranker."""
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
