"""Maps of libraries, made in the background when viewed, and again after pages were added, removed or changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.retrieval.page_map import PageMap, map_pages
from rag.store.qdrant.library import Library
from rag.types import Page

MAX_PAGES: Final = 2_000
"""The newest pages are laid out; a map of more shows nothing new, and takes a minute."""


class PageMaps:
    """The newest map of each library that was viewed. Safe to share between threads."""

    def __init__(self, open_library: Callable[[str], Library], encoder: Callable[[], SparseEncoder]) -> None:
        self._open = open_library
        self._encoder = encoder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page-maps")
        self._futures: dict[str, tuple[int, Future[PageMap | None]]] = {}
        self._lock = threading.Lock()
        self._maps: dict[str, PageMap] = {}

    def of(self, library: str, pages: Sequence[Page]) -> Future[PageMap | None]:
        """Return the map of all the library's pages, given newest first; in progress or done. It raises StoreError.

        It is made once for the same pages and texts. None if they are too few.
        """
        newest = pages[:MAX_PAGES]
        state = hash(tuple((page.url_hash, page.text_hash, page.title) for page in newest))
        with self._lock:
            entry = self._futures.get(library)
            if entry is None or entry[0] != state or (entry[1].done() and entry[1].exception()):
                entry = self._futures[library] = (state, self._thread.submit(self._make, library, newest))
            return entry[1]

    def at_hand(self, library: str) -> PageMap | None:
        """Return the newest finished map, without waiting for another."""
        return self._maps.get(library)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, library: str, pages: Sequence[Page]) -> PageMap | None:
        texts = self._open(library).texts([page.url_hash for page in pages])
        page_map = map_pages(pages, texts, self._encoder())
        if page_map:
            self._maps[library] = page_map
        return page_map
