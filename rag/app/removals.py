"""Pages that were just deleted, and can be restored while this process runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from rag.app.imports import Imports
from rag.app.libraries import Libraries
from rag.errors import StoreError
from rag.ingest.sources import Source
from rag.types import Page

_MAX_DELETIONS: Final = 20  # deletions
_MAX_PAGES: Final = 500  # pages of one; more are not remembered


@dataclass(frozen=True, slots=True)
class Removed:
    """A deletion: the pages with their texts."""

    library: str
    pages: tuple[Page, ...]


class Removals:
    """The latest deletions, in memory. Safe to share between threads."""

    def __init__(self, libraries: Libraries, imports: Imports) -> None:
        self._libraries = libraries
        self._imports = imports
        self._latest: OrderedDict[str, Removed] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, name: str, url_hashes: Sequence[str]) -> str:
        """Remember pages that are about to be deleted; return a token for `undo`, empty for too many."""
        library = self._libraries.get(name)
        if not 0 < len(url_hashes) <= _MAX_PAGES:
            return ""
        pages = tuple(page for url_hash in url_hashes if (page := library.page(url_hash)))
        token = uuid4().hex
        with self._lock:
            self._latest[token] = Removed(name, pages)
            while len(self._latest) > _MAX_DELETIONS:
                self._latest.popitem(last=False)
        return token

    def undo(self, token: str, owner: str = "") -> str:
        """Queue an import of the pages' last texts; return the job's id. Earlier versions stay deleted.

        Raises StoreError("removal_unknown") for a token that is no longer known.
        """
        with self._lock:
            removed = self._latest.pop(token, None)
        if removed is None:
            raise StoreError("removal_unknown")
        sources = [
            Source(
                page.title or page.url,
                page.url,
                page.source,
                record={"text": page.text, "title": page.title, "lang": page.language},
            )
            for page in removed.pages
        ]
        return self._imports.submit(sources, library=removed.library, owner=owner, force=True)
