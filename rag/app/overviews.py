"""Overviews of newly saved pages, made in the background when somebody looks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rag.app.models import Models
from rag.conversations.followups import COUNT, questions_about
from rag.errors import RagError
from rag.locales import Language, say
from rag.reasoning.extractive import ExtractiveReasoner
from rag.reasoning.reasoner import Reasoner
from rag.reasoning.summarising import opening_sentence
from rag.retrieval.answerable import held_by
from rag.store.qdrant.library import Library
from rag.types import Answer, Notice, Page, Passage

MOST: Final = 40
"""Pages of one overview, the first ones."""
_REMEMBERED: Final = 64
_PASSAGES: Final = 12  # of each page, among which questions are looked for


@dataclass(frozen=True, slots=True)
class Overview:
    """Pages, each with a quoted sentence on its subject (empty without one), and questions that they answer."""

    pages: tuple[tuple[Page, str], ...]
    questions: tuple[str, ...]


class Overviews:
    """Remembers the latest overviews. Safe to share between threads."""

    def __init__(self, open_library: Callable[[str], Library], models: Models) -> None:
        self._open = open_library
        self._models = models
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="overviews")
        self._made: OrderedDict[object, Future[Overview]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, library: str, url_hashes: Sequence[str], reasoner: Reasoner, language: Language) -> Future[Overview]:
        """The overview of these pages, under way or done; questions in `language` come first.

        Its result raises StoreError.
        """
        wanted = (library, tuple(url_hashes[:MOST]), reasoner.name, language)
        with self._lock:
            found = self._made.get(wanted)
            if found is None or (found.done() and found.exception()):
                found = self._made[wanted] = self._thread.submit(self._make, library, wanted[1], reasoner, language)
            self._made.move_to_end(wanted)
            while len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
            return found

    def prepare(self, library: str, url_hashes: Sequence[str], reasoner: Reasoner) -> None:
        """Do in the background what the first questions about these pages would wait for, where answers are quoted."""
        if isinstance(reasoner, ExtractiveReasoner):
            self._thread.submit(self._prepare, library, url_hashes[:MOST], reasoner)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, name: str, url_hashes: Sequence[str], reasoner: Reasoner, language: Language) -> Overview:
        library = self._open(name)
        known, texts = library.known(url_hashes), library.texts(url_hashes)
        pages = [known[one] for one in url_hashes if one in known]
        rows = [(page, opening_sentence(texts.get(page.url_hash, ""))) for page in pages]
        questions: list[str] = []
        order: list[Language] = ["en", "zh"] if language == "en" else ["zh", "en"]
        for own in order:
            among = [(page, said) for page, said in rows if (page.language == "zh") == (own == "zh")]
            if among and len(questions) < COUNT:
                questions += self._questions(library, among, reasoner, own)
        self.prepare(name, url_hashes, reasoner)
        return Overview(tuple(rows), tuple(questions[:COUNT]))

    def _prepare(self, name: str, url_hashes: Sequence[str], reasoner: ExtractiveReasoner) -> None:
        with suppress(RagError):  # the question itself will say so
            library = self._open(name)
            reasoner.prepare([one for page in url_hashes for one in library.chunks(page)[:_PASSAGES]])

    def _questions(
        self, library: Library, rows: Sequence[tuple[Page, str]], reasoner: Reasoner, language: Language
    ) -> list[str]:
        passages = [one for page, _ in rows for one in library.chunks(page.url_hash)[:_PASSAGES]]
        about = say(Notice("overview_question"), language)
        text = "\n".join(f"{page.title}: {said}" for page, said in rows)

        def likely(question: str, found: Sequence[Passage]) -> float:
            return held_by(found, question, self._models.sparse, library.idf)

        return questions_about(Answer(about, "fast", "answered", text, passages=tuple(passages)), reasoner, likely)
