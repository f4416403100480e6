"""The maps of libraries, made in the background when somebody looks, and again once pages came, went or changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from rag.models.sparse import SparseEncoder
from rag.retrieval.page_map import PageMap, map_pages
from rag.store.qdrant.library import Library
from rag.types import Page

MOST: Final = 2_000
"""The newest pages are laid out; a plane of more tells no more, and takes a minute."""


class PageMaps:
    """Keeps the newest map of each library that was looked at. Safe to share between threads."""

    def __init__(self, open_library: Callable[[str], Library], encoder: Callable[[], SparseEncoder]) -> None:
        self._open = open_library
        self._encoder = encoder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page-maps")
        self._going: dict[str, tuple[int, Future[PageMap | None]]] = {}
        self._lock = threading.Lock()
        self._made: dict[str, PageMap] = {}

    def of(self, library: str, pages: Sequence[Page]) -> Future[PageMap | None]:
        """The map of these pages, newest first, all of the library's; under way or done. Its result raises StoreError.

        It is made once for the same pages and texts. None where they are too few.
        """
        laid = pages[:MOST]
        stand = hash(tuple((page.url_hash, page.text_hash, page.title) for page in laid))
        with self._lock:
            known = self._going.get(library)
            if known is None or known[0] != stand or (known[1].done() and known[1].exception()):
                known = self._going[library] = (stand, self._thread.submit(self._make, library, laid))
            return known[1]

    def at_hand(self, library: str) -> PageMap | None:
        """The newest that was made, without waiting for another."""
        return self._made.get(library)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, library: str, pages: Sequence[Page]) -> PageMap | None:
        texts = self._open(library).texts([page.url_hash for page in pages])
        found = map_pages(pages, texts, self._encoder())
        if found:
            self._made[library] = found
        return found
