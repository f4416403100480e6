"""Access to whole pages of libraries and their stored summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag.errors import StoreError
from rag.store.sql.small_tables import SummaryTable
from rag.store.values import Filters, text_hash
from rag.types import Page, PageVersion, Passage

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library


class PageReader:
    """A reader of pages; the first library that has a page provides it. All calls may block, and raise StoreError."""

    def __init__(self, libraries: Sequence[Library], scope: Filters, summaries: SummaryTable) -> None:
        self._libraries = libraries
        self._scope = scope
        self._summaries = summaries

    def list_pages(self, *, dated: bool = True) -> Sequence[Page]:
        """Return the pages in scope that are not excluded from answers, newest first, without their text.

        Without `dated`, the dates of the scope are ignored.
        """
        by_hash: dict[str, Page] = {}
        for library in self._libraries:
            excluded = library.excluded_pages()
            pages = (page for page in library.pages() if page.url_hash not in excluded)
            by_hash = {**{page.url_hash: page for page in pages if self._scope.matches(page, dated=dated)}, **by_hash}
        return sorted(by_hash.values(), key=lambda page: page.added_at, reverse=True)

    def read(self, url_hash: str) -> Page | None:
        """Return the page with its text. Raises StoreError("page_damaged") if the text does not match its hash."""
        page = self._library_of(url_hash).page(url_hash)
        if page and page.text_hash != text_hash(page.text):
            raise StoreError("page_damaged", title=page.title or page.url)
        return page

    def passages(self, url_hash: str) -> Sequence[Passage]:
        """Return the page's passages, with the name of their library if there are several."""
        library = self._library_of(url_hash)
        return [replace(one, library=self._library_name(library)) for one in library.chunks(url_hash)]

    def versions(self, url_hash: str) -> Sequence[PageVersion]:
        return self._library_of(url_hash).versions(url_hash)

    def find_summary(self, page: Page, language: str, by: str = "") -> Mapping[str, Any] | None:
        """Return the newest summary of the page's text by this author, or by any, with its time as `made`."""
        library = self._library_of(page.url_hash)
        row = self._summaries.find(library.name, page.url_hash, page.text_hash, language, by)
        if row is None:
            return None
        data, of = row["data"], {"library": self._library_name(library)}
        data |= {name: [{**one, **of} for one in data.get(name, ())] for name in ("citations", "passages")}
        return {**data, "made": row["created_at"], "by": row["author"]}

    def save_summary(self, page: Page, language: str, by: str, summary: Mapping[str, Any]) -> object:
        library = self._library_of(page.url_hash).name
        return self._summaries.save(library, page.url_hash, page.text_hash, language, by, summary)

    def _library_name(self, library: Library) -> str:
        return library.name if len(self._libraries) > 1 else ""

    def _library_of(self, url_hash: str) -> Library:
        return next((one for one in self._libraries if one.stored_pages([url_hash])), self._libraries[0])
