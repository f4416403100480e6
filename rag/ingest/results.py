"""The rows that tell what became of sources, for those who asked for them.

And what another look at a page that is stored comes to: nothing new, no answer, gone, or back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag.dates import now
from rag.errors import IngestError, RagError
from rag.ingest.duplicates import Duplicate
from rag.ingest.loader import Read
from rag.ingest.sources import Source
from rag.locales import say
from rag.store.duplicates import joined_aliases
from rag.text import plain
from rag.types import IngestResult, IngestStatus, Notice, Page, because

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

_PREVIEW = 600  # characters
_LEFT_OUT = frozenset(["other_kind", "archive_left_out"])
PATIENCE = 3
"""Failures in a row after which a page counts as gone."""
_OURS = frozenset(["blocked", "cancelled"])  # what this program refuses says nothing about the page
_OUR_CAUSES = frozenset(["parse_timeout", "parse_failed", "reader_missing"])  # nor does what it cannot manage
_NO_ANSWER = frozenset(["unresolved", "unreachable", "timeout"])  # perhaps for lack of a network on this side
UNHEARD = "page_unheard"
"""The reason of a row whose page did not answer, as nothing else did before it."""


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params: dict[str, Any] = dict(notice.params)
    name, words = plain(source.name), say(notice, "en")
    return IngestResult(name, source.url, key, status, notice.code, words, chunks, round(seconds, 3), params)


def read_in_part(row: IngestResult, read: Read) -> IngestResult:
    """The row of a file that was stored, with the numbers of its pages that could not be read, if there are any."""
    unread = read.extracted.unread if read.extracted else ()
    if not unread:
        return row
    params = {**row.params, "pages": len(unread), "numbers": _ranges(unread)}
    return replace(row, reason="page_in_part", message=say(Notice("page_in_part", params), "en"), params=params)


def _ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers as `2, 5-7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """The row of a source that could not be taken in, or is of a kind that nobody expects to be."""
    status: IngestStatus = "skipped" if error.code in _LEFT_OUT else "failed"
    return result(source, "", status, error.notice, seconds=seconds)


def held_result(read: Read, notice: Notice, status: IngestStatus = "held") -> IngestResult:
    """The row of a page that is not taken in unless a person says so."""
    row = result(read.source, read.page.url_hash, status, notice)
    return replace(row, preview=_preview(read.page.text), choices=("add_anyway", "skip"))


def duplicate_result(read: Read, duplicate: Duplicate) -> IngestResult:
    """The row of a page that was read and is here already."""
    row = result(read.source, read.page.url_hash, "duplicate", duplicate.notice, chunks=duplicate.page.chunks)
    return replace(row, preview=_preview(read.page.text), choices=duplicate.choices)


def stored_result(source: Source, key: str, known: Page) -> IngestResult:
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


def is_answer(error: IngestError) -> bool:
    """Whether a site has said something, if not what was hoped for."""
    return error.code not in _OURS | _NO_ANSWER


def still_there(library: Library, before: Page, seen: Page | None = None, claim: str | None = None) -> Notice:
    """Note that the page's site answered with what is stored; `seen` is the page as it was read, if it was.

    `claim` is as `Library.update_record` takes it. Returns what to say of it.
    """
    page = replace(before, checked_at=now(), failures=0, status="active")
    if seen is not None:
        aliases = joined_aliases(before.aliases, seen.aliases)
        page = replace(page, etag=seen.etag, last_modified=seen.last_modified, aliases=aliases, reading=seen.reading)
    library.update_record(page, claim=claim)
    if before.status == "gone":
        return Notice("page_back")
    return Notice("not_modified" if seen is None else "page_unchanged")


def mark_missing(
    library: Library, before: Page, error: IngestError, *, online: bool = False
) -> tuple[IngestStatus, Notice]:
    """Note that a stored page could not be read: gone at once where its site says so, else after PATIENCE times.

    That nothing answers counts only where something else did (`online`): else this machine may be offline.
    """
    params = error.notice.params
    if error.code in _OURS or (error.code == "unreadable" and error.notice.cause in _OUR_CAUSES):
        return "failed", error.notice
    why = because(error.code, **params)
    if error.code in _NO_ANSWER and not online:
        return "failed", Notice(UNHEARD, why)
    status = params.get("status")
    failures = before.failures + 1
    is_gone = status in (404, 410) or failures >= PATIENCE or before.status == "gone"
    moment = now()
    library.update_record(
        replace(before, checked_at=moment, failures=failures, status="gone" if is_gone else before.status)
    )
    if status in (404, 410):
        return "gone", Notice("page_gone", {"status": status})
    if is_gone:
        return "gone", Notice("page_lost", {"failures": failures, **why})
    return "failed", Notice("page_missed", {"failures": failures, **why})


def mark_moved(library: Library, before: Page) -> None:
    """Note that a page's address leads to another stored page by now: it is no longer there itself."""
    library.update_record(replace(before, checked_at=now(), failures=0, status="gone"))


def mark_checked(library: Library, before: Page) -> None:
    """Note that a page's site answered, with something that is not to be stored."""
    library.update_record(replace(before, checked_at=now(), failures=0))


def due(pages: Sequence[Page], before: str) -> list[Page]:
    """The web pages that were last looked at before a moment (ISO 8601, UTC), the longest ago first."""
    waiting = [page for page in pages if page.source == "web" and (page.checked_at or page.added_at) < before]
    return sorted(waiting, key=lambda page: (page.checked_at or page.added_at, page.url_hash))
