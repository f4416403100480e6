"""The one place that builds everything from the settings, and the one object that pages and commands know."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.agent.expander import expander_for
from rag.agent.extractive import ExtractiveReasoner
from rag.agent.reasoner import Reasoner
from rag.agent.runs import Event, Runs
from rag.config import Settings
from rag.errors import ConfigError, ModelError, RagError
from rag.ingest.chunking import get_chunker
from rag.ingest.fetch import Fetcher
from rag.ingest.jobs import Jobs
from rag.ingest.parser import Parser
from rag.ingest.paste import find_urls
from rag.ingest.pipeline import Ingestor
from rag.ingest.samples import example_sources
from rag.ingest.sources import Source, file_sources, web_source
from rag.models.embedding import EmbeddingModel, load_embedding_model
from rag.models.hub import BUILTIN
from rag.models.reranker import LateReranker, Reranker
from rag.models.sparse import SparseEncoder
from rag.retrieval.filters import Filters
from rag.retrieval.retriever import Retriever
from rag.retrieval.scoped import ScopedSearch
from rag.retrieval.strategies import WRITTEN
from rag.store.client import connect
from rag.store.database import Database, Job, JobItem
from rag.store.library import Library, library_info, list_libraries, open_library
from rag.types import Answer, Notice, Page, Passage, Retrieval, RunMode

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

log = logging.getLogger(__name__)

JobView = Job
_BUILTIN_DIMENSION = 384

__all__ = ["App", "ChatOptions", "Event", "JobItem", "JobView"]


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """A chat model for one session, instead of the one in the settings; never stored."""

    model: str
    base_url: str = ""
    api_key: str = ""


class App:
    """Everything the program can do. Safe to share between threads; methods raise RagError.

    Nothing heavy happens before it is needed: torch is imported by the first search or import, or by
    `start` in the background.
    """

    def __init__(self, settings: Settings) -> None:
        """Open the database. Raises ConfigError for a data folder that cannot be written, StoreError."""
        self.settings = settings
        _check_writable(settings.rag_data_dir)
        self._client = connect(settings)
        self._database = Database(settings.rag_data_dir / "app.sqlite3")
        self._runs = Runs()
        self._jobs = Jobs(self._database, self.ingestor)
        self._lock = threading.RLock()
        self._model_lock = threading.Lock()
        self._model: EmbeddingModel | None = None
        self._model_problem: Notice | None = None
        self._libraries: dict[str, Library] = {}

    def start(self) -> None:
        """Serve: load the models in the background and take up imports that were cut off."""
        threading.Thread(target=self._warm, name="models", daemon=True).start()
        self._jobs.resume()

    def close(self) -> None:
        """Stop what runs, and close the database."""
        self._runs.close()
        self._jobs.close()
        self._parser.close()
        self._database.close()
        self._client.close()

    # Libraries

    def library_names(self) -> list[str]:
        """The libraries there are, with the one of the settings, which need not exist yet."""
        return sorted({*list_libraries(self._client), self.settings.rag_library})

    def library(self, name: str | None = None) -> Library:
        """The library for reading; its own embedding model counts, whichever is set now."""
        wanted = name or self.settings.rag_library
        with self._lock:
            if wanted not in self._libraries:
                info = library_info(self._client, wanted)
                if info is not None:
                    identity = (info.embedding_model, info.dimension)
                elif self.settings.embedding_model == BUILTIN:
                    identity = (BUILTIN, _BUILTIN_DIMENSION)
                else:
                    identity = (self.model.name, self.model.dimension)
                self._libraries[wanted] = open_library(self._client, wanted, *identity)
            return self._libraries[wanted]

    def pages(self, library: str) -> list[Page]:
        """The library's pages without their text, newest first."""
        return self.library(library).pages()

    def page(self, library: str, url_hash: str) -> Page | None:
        return self.library(library).page(url_hash)

    def chunks(self, library: str, url_hash: str) -> list[Passage]:
        return self.library(library).chunks(url_hash)

    def remove_pages(self, library: str, url_hashes: Sequence[str]) -> int:
        return self.library(library).remove(url_hashes)

    def clear(self, library: str) -> int:
        return self.library(library).clear()

    # Imports

    def add_sources(self, sources: Sequence[str], *, library: str, force: bool = False, chunker: str = "") -> str:
        """Queue an import of addresses; returns the job's id."""
        return self.submit([web_source(url) for url in sources], library=library, force=force, chunker=chunker)

    def add_files(self, files: Sequence[tuple[str, bytes]], *, library: str, chunker: str = "") -> str:
        """Queue an import of uploaded files (name, content); returns the job's id."""
        sources = [source for name, data in files for source in file_sources(name, data)]
        return self.submit(sources, library=library, chunker=chunker)

    def add_examples(self, *, library: str, chunker: str = "") -> str:
        """Queue an import of the sample pages; returns the job's id."""
        return self.submit(example_sources(), library=library, chunker=chunker)

    def submit(self, sources: Sequence[Source], *, library: str, force: bool = False, chunker: str = "") -> str:
        """Queue an import; without `chunker` the one of the settings cuts its pages."""
        return self._jobs.submit(sources, library=library, force=force, chunker=chunker or self.settings.chunker)

    def find_urls(self, pasted: str) -> tuple[list[str], int]:
        """The addresses in pasted text, and how many more than the limit were dropped."""
        return find_urls(pasted)

    def job(self, job_id: str) -> JobView:
        return self._jobs.job(job_id)

    def jobs(self, library: str) -> list[JobView]:
        return self._jobs.jobs(library)

    def cancel_job(self, job_id: str) -> None:
        self._jobs.cancel(job_id)

    def ingestor(self, library: str) -> Ingestor:
        """What takes pages into the library. Loads the embedding model; raises ModelMismatchError."""
        chunker = get_chunker(self.settings.chunker)
        return Ingestor(self._working(library), self.model, self.sparse, self._fetcher, self._parser, chunker)

    # Questions

    def ask(
        self,
        question: str,
        *,
        mode: RunMode,
        library: str,
        history: Sequence[tuple[str, str]] = (),
        chat: ChatOptions | None = None,
        strategy: str | None = None,
        filters: Filters | None = None,
    ) -> str:
        """Begin to answer, in the background; returns the run's id. `strategy` and `filters` are its searches'.

        Raises ModelError for a chat model that is set up wrong.
        """
        reasoner = self.reasoner(library, chat)
        search = self._scoped(question, library, reasoner, strategy=strategy, filters=filters)
        return self._runs.start(question, mode=mode, reasoner=reasoner, retriever=search, history=history)

    def events(self, run_id: str, since: int = 0) -> list[Event]:
        return self._runs.events(run_id, since)

    def cancel(self, run_id: str) -> None:
        self._runs.cancel(run_id)

    def answer(self, run_id: str) -> Answer | None:
        return self._runs.answer(run_id)

    def wait(self, run_id: str, timeout: float | None = None) -> Answer:
        return self._runs.wait(run_id, timeout)

    def search(self, question: str, *, library: str, chat: ChatOptions | None = None, **options: Any) -> Retrieval:
        """Search without asking; `options` are those of `Retriever.search`.

        No chat model is called, unless the strategy is one that searches with written texts.
        """
        writes = (options.get("strategy") or self.settings.strategy) in WRITTEN
        reasoner = self.reasoner(library, chat) if writes else self._quoter(library)
        return self._scoped(question, library, reasoner, **options).search(question)

    def retriever(self, library: str, reasoner: Reasoner | None = None) -> Retriever:
        """What searches the library; a chat reasoner writes the texts that some strategies search with.

        Loads the embedding model; raises ModelMismatchError.
        """
        expander = expander_for(reasoner or self._quoter(library))
        return Retriever(self._working(library), self.model, self.sparse, expander=expander, reranker=self._reranker)

    def reasoner(self, library: str, chat: ChatOptions | None = None) -> Reasoner:
        """The chat model of the session or of the settings, else the extractive reasoner."""
        if chat is None and not self.settings.has_chat_model:
            return self._quoter(library)
        from rag.agent.chat import ChatReasoner

        return ChatReasoner(self._chat_model(chat))

    # What is in use

    def models_ready(self) -> bool:
        return self._model is not None

    def model_problem(self) -> Notice | None:
        """Why the embedding model could not be loaded the last time, None if it was or is being loaded."""
        return self._model_problem

    @property
    def model(self) -> EmbeddingModel:
        """The embedding model, loaded by whoever asks first. Raises ModelError, each time anew."""
        with self._model_lock:
            if self._model is None:
                self._model_problem = None
                try:
                    self._model = load_embedding_model(self.settings.embedding_model)
                finally:
                    if self._model is None:
                        self._model_problem = _load_problem(sys.exception())
            return self._model

    @cached_property
    def sparse(self) -> SparseEncoder:
        return SparseEncoder()

    def test_chat(self, chat: ChatOptions | None = None) -> Notice:
        """Ask the chat model for one word. Raises ModelError with the reason when none comes."""
        from rag.models.chat import check_chat_model

        check_chat_model(self._chat_model(chat))
        return Notice("chat_works", {"model": chat.model if chat else self.settings.llm_model})

    def test_database(self) -> Notice:
        """Ask the database for its libraries. Raises StoreError."""
        return Notice("database_works", {"libraries": len(list_libraries(self._client))})

    # Parts

    @cached_property
    def _fetcher(self) -> Fetcher:
        return Fetcher(self.settings.fetch_allow_private_hosts)

    @cached_property
    def _parser(self) -> Parser:
        return Parser()

    @cached_property
    def _reranker(self) -> Reranker | None:
        return LateReranker(self.settings.reranker_model) if self.settings.reranker_model else None

    def _quoter(self, library: str) -> ExtractiveReasoner:
        return ExtractiveReasoner(self.sparse, lambda terms: self.library(library).idf(terms))

    def _scoped(self, question: str, library: str, reasoner: Reasoner, **options: Any) -> ScopedSearch:
        """Searches for one question; without a strategy by that of the settings."""
        chosen = {**options, "strategy": options.get("strategy") or self.settings.strategy}
        return ScopedSearch(lambda: self.retriever(library, reasoner), lambda: self.pages(library), question, **chosen)

    def _working(self, name: str) -> Library:
        """The library for searching and adding: it must have been made with the model that is set."""
        model = self.model
        with self._lock:
            held = self._libraries.get(name)
            if held is None or (held.embedding_model, held.dimension) != (model.name, model.dimension):
                held = open_library(self._client, name, model.name, model.dimension)
                self._libraries[name] = held
            return held

    def _chat_model(self, chat: ChatOptions | None) -> BaseChatModel:
        from rag.models.chat import build_chat_model

        if chat is None:
            return build_chat_model(self.settings)
        chosen = {"llm_model": chat.model, "llm_base_url": chat.base_url}
        return build_chat_model(self.settings.model_copy(update=chosen), api_key=chat.api_key or None)

    def _warm(self) -> None:
        try:
            self.model.encode_query("ready")
        except ModelError as error:
            log.error("%s", error)


def _load_problem(error: BaseException | None) -> Notice:
    return error.notice if isinstance(error, RagError) else Notice("model_failed")


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError("data_dir_unwritable", path=folder) from error
