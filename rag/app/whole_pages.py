"""A library's pages whole, for summaries of them, which are kept here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag.retrieval.filters import Filters
from rag.store.library import Library
from rag.store.summary_table import SummaryTable
from rag.types import Page, PageVersion, Passage


class WholePages:
    """Implements PageReader."""

    def __init__(self, library: Library, scope: Filters, summaries: SummaryTable) -> None:
        self._library = library
        self._scope = scope
        self._summaries = summaries

    def listed(self, *, dated: bool = True) -> Sequence[Page]:
        aside = self._library.left_out()
        pages = (page for page in self._library.pages() if page.url_hash not in aside)
        return [page for page in pages if self._scope.holds(page, dated=dated)]

    def read(self, url_hash: str) -> Page | None:
        return self._library.page(url_hash)

    def passages(self, url_hash: str) -> Sequence[Passage]:
        return self._library.chunks(url_hash)

    def versions(self, url_hash: str) -> Sequence[PageVersion]:
        return self._library.versions(url_hash)

    def kept(self, page: Page, language: str, by: str = "") -> Mapping[str, Any] | None:
        """By this writer, or by any."""
        found = self._summaries.find(self._library.name, page.url_hash, page.text_hash, language, by)
        return {**found["data"], "made": found["created_at"], "by": found["author"]} if found else None

    def keep(self, page: Page, language: str, by: str, summary: Mapping[str, Any]) -> object:
        return self._summaries.save(self._library.name, page.url_hash, page.text_hash, language, by, summary)
