"""The rows that tell what became of sources, for those who asked for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rag.errors import RagError
from rag.ingest.duplicates import Duplicate
from rag.ingest.source_reading import Read
from rag.ingest.sources import Source
from rag.messages import say
from rag.text import plain
from rag.types import IngestResult, IngestStatus, Notice, Page

_PREVIEW = 600  # characters
_LEFT_OUT = frozenset(["other_kind", "archive_left_out"])


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params: dict[str, Any] = dict(notice.params)
    name, words = plain(source.name), say(notice, "en")
    return IngestResult(name, source.url, key, status, notice.code, words, chunks, round(seconds, 3), params)


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """The row of a source that could not be taken in, or is of a kind that nobody expects to be."""
    status: IngestStatus = "skipped" if error.code in _LEFT_OUT else "failed"
    return result(source, "", status, error.notice, seconds=seconds)


def held(read: Read, notice: Notice, status: IngestStatus = "held") -> IngestResult:
    """The row of a page that is not taken in unless a person says so."""
    row = result(read.source, read.page.url_hash, status, notice)
    return replace(row, preview=_preview(read.page.text), choices=("add_anyway", "skip"))


def repeated(read: Read, duplicate: Duplicate) -> IngestResult:
    """The row of a page that was read and is here already."""
    row = result(read.source, read.page.url_hash, "duplicate", duplicate.notice, chunks=duplicate.page.chunks)
    return replace(row, preview=_preview(read.page.text), choices=duplicate.choices)


def here_already(source: Source, key: str, known: Page) -> IngestResult:
    """The row of an address whose page is stored, as itself or as another one that it leads to, and is left alone."""
    if known.url_hash != key:
        duplicate = Duplicate("alias_address", known, True)
        row = result(source, key, "duplicate", duplicate.notice, chunks=known.chunks)
        return replace(row, choices=duplicate.choices)
    notice = Notice("already_here", {"title": known.title, "added": known.added_at[:10]})
    return result(source, key, "unchanged", notice, chunks=known.chunks)


def _preview(text: str) -> str:
    """The beginning of a text, for a person to judge it by."""
    if len(text) <= _PREVIEW:
        return text
    return text[:_PREVIEW].rsplit(None, 1)[0] + " …"
