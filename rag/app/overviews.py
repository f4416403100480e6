"""Overviews of newly saved pages and maps of libraries, generated in the background on demand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rag.app.libraries import Models
from rag.conversations.conversations import MAX_SUGGESTIONS, questions_about
from rag.errors import RagError
from rag.graphs.summary.gathering import opening_sentence
from rag.locales import Language, say
from rag.models.embedding import SparseEncoder
from rag.reasoning import Reasoner
from rag.reasoning.extractive import ExtractiveReasoner
from rag.retrieval.context import estimate_answerable
from rag.retrieval.page_map import PageMap, map_pages
from rag.store.qdrant.library import Library
from rag.types import Answer, Notice, Page, Passage

MAX_PAGES: Final = 40
"""Max. pages in an overview; the first ones are used."""
MAX_MAP_PAGES: Final = 2_000
"""Max. pages on a map; the newest are used. A map of more shows nothing new and takes a minute."""
_CACHE_SIZE: Final = 64
_PASSAGES: Final = 12  # per page, to find questions for


@dataclass(frozen=True, slots=True)
class Overview:
    """Pages, each with a quoted sentence about its topic (or ""), and questions that the pages answer."""

    pages: tuple[tuple[Page, str], ...]
    questions: tuple[str, ...]


class Overviews:
    """A cache of the latest overviews. Thread-safe."""

    def __init__(self, open_library: Callable[[str], Library], models: Models) -> None:
        self._open = open_library
        self._models = models
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="overviews")
        self._futures: OrderedDict[object, Future[Overview]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, library: str, url_hashes: Sequence[str], reasoner: Reasoner, language: Language) -> Future[Overview]:
        """Return a future of the overview of these pages; questions in `language` come first.

        Its result raises StoreError.
        """
        key = (library, tuple(url_hashes[:MAX_PAGES]), reasoner.name, language)
        with self._lock:
            future = self._futures.get(key)
            if future is None or (future.done() and future.exception()):
                future = self._futures[key] = self._thread.submit(self._make, library, key[1], reasoner, language)
            self._futures.move_to_end(key)
            while len(self._futures) > _CACHE_SIZE:
                self._futures.popitem(last=False)
            return future

    def prepare(self, library: str, url_hashes: Sequence[str], reasoner: Reasoner) -> None:
        """Warm up an extractive reasoner for these pages in the background; do nothing for a chat model."""
        if isinstance(reasoner, ExtractiveReasoner):
            self._thread.submit(self._prepare, library, url_hashes[:MAX_PAGES], reasoner)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, name: str, url_hashes: Sequence[str], reasoner: Reasoner, language: Language) -> Overview:
        library = self._open(name)
        by_hash, texts = library.stored_pages(url_hashes), library.texts(url_hashes)
        pages = [by_hash[url_hash] for url_hash in url_hashes if url_hash in by_hash]
        rows = [(page, opening_sentence(texts.get(page.url_hash, ""))) for page in pages]
        excluded = library.excluded_pages()
        asked = [row for row in rows if row[0].source != "note" and row[0].url_hash not in excluded]
        questions: list[str] = []
        order: list[Language] = ["en", "zh"] if language == "en" else ["zh", "en"]
        for current in order:
            candidates = [(page, sentence) for page, sentence in asked if (page.language == "zh") == (current == "zh")]
            if candidates and len(questions) < MAX_SUGGESTIONS:
                questions += self._questions(library, candidates, reasoner, current)
        self.prepare(name, url_hashes, reasoner)
        return Overview(tuple(rows), tuple(questions[:MAX_SUGGESTIONS]))

    def _prepare(self, name: str, url_hashes: Sequence[str], reasoner: ExtractiveReasoner) -> None:
        with suppress(RagError):  # the question will report it
            library = self._open(name)
            reasoner.prepare([chunk for page in url_hashes for chunk in library.chunks(page)[:_PASSAGES]])

    def _questions(
        self, library: Library, rows: Sequence[tuple[Page, str]], reasoner: Reasoner, language: Language
    ) -> list[str]:
        passages = [chunk for page, _ in rows for chunk in library.chunks(page.url_hash)[:_PASSAGES]]
        about = say(Notice("overview_question"), language)
        text = "\n".join(f"{page.title}: {sentence}" for page, sentence in rows)

        def likelihood(question: str, evidence: Sequence[Passage]) -> float:
            return estimate_answerable(evidence, question, self._models.sparse, library.idf)

        return questions_about(Answer(about, "fast", "answered", text, passages=tuple(passages)), reasoner, likelihood)


class PageMaps:
    """A cache of the newest map of each viewed library. Thread-safe."""

    def __init__(self, open_library: Callable[[str], Library], encoder: Callable[[], SparseEncoder]) -> None:
        self._open = open_library
        self._encoder = encoder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page-maps")
        self._futures: dict[str, tuple[int, Future[PageMap | None]]] = {}
        self._lock = threading.Lock()
        self._maps: dict[str, PageMap] = {}

    def get(self, library: str, pages: Sequence[Page]) -> Future[PageMap | None]:
        """Return a future of the map of the library's pages, given newest first; None if there are too few.

        The map is cached until pages or texts change. The future's result raises StoreError.
        """
        newest = pages[:MAX_MAP_PAGES]
        state = hash(tuple((page.url_hash, page.text_hash, page.title) for page in newest))
        with self._lock:
            entry = self._futures.get(library)
            if entry is None or entry[0] != state or (entry[1].done() and entry[1].exception()):
                entry = self._futures[library] = (state, self._thread.submit(self._make, library, newest))
            return entry[1]

    def latest(self, library: str) -> PageMap | None:
        """Return the newest finished map without waiting for a newer one."""
        return self._maps.get(library)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, library: str, pages: Sequence[Page]) -> PageMap | None:
        texts = self._open(library).texts([page.url_hash for page in pages])
        page_map = map_pages(pages, texts, self._encoder())
        if page_map:
            self._maps[library] = page_map
        return page_map
