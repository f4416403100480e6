"""The models that the settings name, each loaded by whoever needs it first."""

from __future__ import annotations

import gc
import logging
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag.config import Settings
from rag.errors import ModelError
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.models.reranker import LateReranker, Reranker
from rag.models.sparse import SparseEncoder
from rag.types import Notice

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

log = logging.getLogger(__name__)

# What torch, transformers and the files of a model fail with.
_LOAD_FAULTS = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, ImportError, MemoryError)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """A chat model for one session, instead of the one in the settings; never stored."""

    model: str
    base_url: str = ""
    api_key: str = ""
    fast_model: str = ""
    temperature: float | None = None

    @property
    def service(self) -> tuple[str, str]:
        """Where the key belongs, as `service_of` tells it."""
        return service_of(self.model, self.base_url)


class Models:
    """Safe to share between threads. Methods raise ModelError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._embedding: EmbeddingModel | None = None
        self._problem: Notice | None = None

    @property
    def embedding(self) -> EmbeddingModel:
        """The embedding model, loaded by whoever asks first. Raises ModelError, each time anew."""
        with self._lock:
            if self._embedding is None:
                self._problem = None
                try:
                    self._embedding = self._load()
                except ModelError as error:
                    self._problem = error.notice
                    raise
            return self._embedding

    def _load(self) -> EmbeddingModel:
        """Raises ModelError, whatever it is that fails: a broken install, a full disk, a card without memory."""
        try:
            return load_embedding_model(self._settings.embedding_model, memory=self._passes)
        except _LOAD_FAULTS as error:
            log.exception("The embedding model could not be loaded")
            raise ModelError("model_failed") from error

    @cached_property
    def sparse(self) -> SparseEncoder:
        return SparseEncoder()

    @cached_property
    def reranker(self) -> Reranker | None:
        name = self._settings.reranker_model
        return LateReranker(name, memory=self._passes) if name else None

    @property
    def _passes(self) -> Path:
        """The file that keeps which forward pass is the fastest here."""
        return self._settings.rag_data_dir / "forward-passes.json"

    def ready(self) -> bool:
        """Whether the embedding model is loaded."""
        return self._embedding is not None

    def problem(self) -> Notice | None:
        """Why the embedding model could not be loaded the last time, None if it was or is being loaded."""
        return self._problem

    def warm(self, delay: float = 0.0) -> None:
        """Load the embedding model, in a thread of its own; a failure is logged and kept as `problem`.

        After `delay` seconds, unless somebody needs it sooner.
        """
        thread = threading.Timer(delay, self._warm)
        thread.name, thread.daemon = "models", True
        thread.start()

    def chat(self, options: ChatOptions | None = None) -> BaseChatModel:
        """The chat model of `options`, or of the settings. Raises ModelError when it is set up wrong."""
        from rag.models.chat import build_chat_model

        if options is None:
            return build_chat_model(self._settings)
        key = options.api_key or None
        return build_chat_model(self._chosen(options), api_key=key, temperature=options.temperature)

    def fast_chat(self, options: ChatOptions | None = None) -> BaseChatModel | None:
        """The model for all but the answer, where it is another one."""
        from rag.models.chat import build_fast_model

        if options is None:
            return build_fast_model(self._settings)
        same = service_of(options.fast_model, options.base_url) == options.service
        return build_fast_model(self._chosen(options), api_key=options.api_key or None if same else None)

    def _chosen(self, options: ChatOptions) -> Settings:
        """The settings with the session's choices. The key of the settings goes to no other service than theirs."""
        ours = self._settings
        chosen: dict[str, Any] = {"llm_model": options.model, "llm_base_url": options.base_url}
        chosen["fast_llm_model"] = options.fast_model
        if options.service != service_of(ours.llm_model, ours.llm_base_url):
            chosen["llm_api_key"] = SecretStr("")
        return ours.model_copy(update=chosen)

    def test_chat(self, options: ChatOptions | None = None) -> Notice:
        """Ask the chat model for one word. Raises ModelError with the reason when none comes."""
        from rag.models.chat import check_chat_model

        check_chat_model(self.chat(options))
        return Notice("chat_works", {"model": options.model if options else self._settings.llm_model})

    def _warm(self) -> None:
        try:
            self.embedding.encode_query("ready")
        except ModelError as error:
            log.error("%s", error)
        except Exception:  # the thread's edge: whoever asks for the model next gets the error
            log.exception("The embedding model could not be tried out")
        else:
            gc.freeze()  # a million objects that stay: to walk them again and again would stop every thread each time


def service_of(model: str, address: str) -> tuple[str, str]:
    """The address of a chat model's service; without one, whose it is: `anthropic` of `anthropic:a-model`."""
    return address.rstrip("/"), "" if address else model.strip().partition(":")[0]
