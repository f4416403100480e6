"""Passages from outside the library: web pages read for a single question, and the sources of earlier reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from rag.app.libraries import Models
from rag.errors import RagError
from rag.ingest.chunking import Chunker
from rag.ingest.sources import Reader, web_source
from rag.retrieval.context import select_best
from rag.retrieval.retriever import LibraryView
from rag.runs.run import from_json
from rag.store.values import now
from rag.types import Page, Passage
from rag.web.search import WebSearch
from rag.web.urls import url_hash

log = logging.getLogger(__name__)

PAGES: Final = 3
PASSAGES: Final = 10


class WebPassages:
    """A web search, to be called in a worker thread. URLs are checked as for imports, pages parsed in a child process.

    Passages have ids that no library uses (`web:`, page hash, offset), and are selected by the query's terms.
    """

    def __init__(self, service: WebSearch, reader: Reader, models: Models, chunker: Chunker) -> None:
        self._service = service
        self._reader = reader
        self._sparse = models.sparse
        self._vectors = models.embedding.sentence_vectors
        self._chunker = chunker

    def __call__(self, query: str) -> list[Passage]:
        """Return the best passages of the top pages, skipping unreadable ones. Raises WebSearchError."""
        hits = self._service.find(query, PAGES)
        with ThreadPoolExecutor(PAGES) as readers:
            pages = [page for page in readers.map(self._read, (hit.url for hit in hits)) if page]
        fetched_at = now()
        passages = [passage for page in pages for passage in self._passages(page, fetched_at)]
        return select_best(query, passages, self._sparse, PASSAGES)

    def _read(self, url: str) -> Page | None:
        try:
            return self._reader.read(web_source(url), url_hash(url), lambda _: None, None, False).page
        except RagError as error:
            log.info("a page that a web search found could not be read (%s)", error.code)
            return None

    def _passages(self, page: Page, fetched_at: str) -> Iterator[Passage]:
        for chunk in self._chunker.split(page.text, self._vectors):
            yield Passage(
                id=f"web:{page.url_hash}:{chunk.start}",
                url=page.url,
                url_hash=page.url_hash,
                title=page.title,
                site=page.site,
                language=page.language,
                section=chunk.section,
                text=chunk.text,
                start=chunk.start,
                end=chunk.end,
                date=page.modified or page.published,
                fetched_at=fetched_at,
                header=chunk.context,
            )


def ledger_passages(rows: Sequence[Mapping[str, Any]], library: LibraryView) -> list[Passage]:
    """Return the passages of a report's ledger: web passages as stored, the others from the library.

    Library passages that were deleted or changed are skipped.
    """
    from_web = [
        replace(from_json(Passage, one["passage"]), fetched_at=str(one["fetched_at"]), ranks={}, scores={})
        for one in rows
        if one.get("passage")
    ]
    by_id = {str(one["id"]): one for one in rows if not one.get("passage")}
    passages = library.passages(list(by_id))
    texts = library.texts(list({one.url_hash for one in passages}))
    own = []
    for passage in passages:
        entry, text = by_id[passage.id], texts.get(passage.url_hash, "")
        start, end = min(passage.start, int(entry["start"])), max(passage.end, int(entry["end"]))
        # Extend it to the whole span that the report read, unless another library's version was loaded.
        if text[passage.start : passage.end] == passage.text and len(text) >= end:
            passage = replace(passage, text=text[start:end], start=start, end=end)
        own.append(passage)
    return [*from_web, *own]
