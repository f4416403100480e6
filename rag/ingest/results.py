"""Result rows of sources, and the outcomes of re-checks: unchanged, no answer, gone, or back online."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag.dates import now
from rag.errors import IngestError, RagError
from rag.ingest.duplicates import Duplicate
from rag.ingest.loader import LoadedPage
from rag.ingest.sources import Source, unique_sources
from rag.locales import say
from rag.store.duplicates import merge_aliases
from rag.text import to_plain_line
from rag.types import IngestResult, IngestStatus, Notice, Page, because
from rag.web.url_key import split_url, url_hash

if TYPE_CHECKING:
    from rag.store.qdrant.library import Library

IdentifiedSource = tuple[Source, str, IngestResult | None]
_PREVIEW = 600  # characters
_SKIPPED_CODES = frozenset(["other_kind", "archive_left_out"])
GONE_AFTER = 3
"""Consecutive failures after which a page counts as gone."""
_OWN_REFUSALS = frozenset(["blocked", "cancelled"])  # refusals by this program say nothing about the page
_OWN_CAUSES = frozenset(["parse_timeout", "parse_failed", "reader_missing"])  # nor do its own failures
_NO_ANSWER = frozenset(["unresolved", "unreachable", "timeout"])  # this machine may be offline
UNANSWERED = "page_unheard"
"""The reason code of a page that did not answer while nothing else had answered either."""


def result(
    source: Source, key: str, status: IngestStatus, notice: Notice, *, chunks: int = 0, seconds: float = 0.0
) -> IngestResult:
    params: dict[str, Any] = dict(notice.params)
    name, words = to_plain_line(source.name), say(notice, "en")
    return IngestResult(name, source.url, key, status, notice.code, words, chunks, round(seconds, 3), params)


def find_repeats(sources: Iterable[Source]) -> Iterator[IdentifiedSource]:
    """Yield each source, its url_hash, and its result if it repeats an earlier source's URL, else None.

    The url_hash is "" for a source that is broken or has no URL. Files that only share their name get distinct URLs.
    """
    first: dict[str, str] = {}
    for source in unique_sources(sources):
        key = url_hash(source.url) if source.broken is None and split_url(source.url).scheme else ""
        row = None
        if key in first:
            row = result(source, key, "duplicate", Notice("same_address", {"url": source.url, "first": first[key]}))
        elif key:
            first[key] = source.name
        yield source, key, row


def add_unread_pages(row: IngestResult, loaded: LoadedPage) -> IngestResult:
    """Add the numbers of a file's unreadable pages to its row, if there are any."""
    unreadable_pages = loaded.extracted.unreadable_pages if loaded.extracted else ()
    if not unreadable_pages:
        return row
    params = {**row.params, "pages": len(unreadable_pages), "numbers": _ranges(unreadable_pages)}
    return replace(row, reason="page_in_part", message=say(Notice("page_in_part", params), "en"), params=params)


def _ranges(numbers: Sequence[int]) -> str:
    """Format sorted numbers as `2, 5-7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def failure(source: Source, error: RagError, seconds: float = 0.0) -> IngestResult:
    """Return the row of a source that failed, or that is skipped because of its type."""
    status: IngestStatus = "skipped" if error.code in _SKIPPED_CODES else "failed"
    return result(source, "", status, error.notice, seconds=seconds)


def review_result(loaded: LoadedPage, notice: Notice, status: IngestStatus = "held") -> IngestResult:
    """Return the row of a page that is stored only if the user confirms it."""
    row = result(loaded.source, loaded.page.url_hash, status, notice)
    return replace(row, preview=_preview(loaded.page.text), choices=("add_anyway", "skip"))


def duplicate_result(loaded: LoadedPage, duplicate: Duplicate) -> IngestResult:
    """Return the row of a page that was read and is already stored."""
    row = result(loaded.source, loaded.page.url_hash, "duplicate", duplicate.notice, chunks=duplicate.page.chunks)
    return replace(row, preview=_preview(loaded.page.text), choices=duplicate.choices)


def existing_result(source: Source, key: str, page: Page) -> IngestResult:
    """Return the row of a URL that is not read because its page, or the one it is an alias of, is stored."""
    if page.url_hash != key:
        duplicate = Duplicate("alias_address", page, True)
        row = result(source, key, "duplicate", duplicate.notice, chunks=page.chunks)
        return replace(row, choices=duplicate.choices)
    notice = Notice("already_here", {"title": page.title, "added": page.added_at[:10]})
    return result(source, key, "unchanged", notice, chunks=page.chunks)


def _preview(text: str) -> str:
    """Return the beginning of a text, for the user to judge it by."""
    if len(text) <= _PREVIEW:
        return text
    return text[:_PREVIEW].rsplit(None, 1)[0] + " …"


def is_answer(error: IngestError) -> bool:
    """Return whether a site answered, even if with an error."""
    return error.code not in _OWN_REFUSALS | _NO_ANSWER


def mark_present(library: Library, before: Page, seen: Page | None = None, claim: str | None = None) -> Notice:
    """Record that the site still has the stored text; return a notice about it.

    `seen` is the page as just read, None after "not modified". `claim` is as in `Library.update_record`.
    """
    page = replace(before, checked_at=now(), failures=0, status="active")
    if seen is not None:
        aliases = merge_aliases(before.aliases, seen.aliases)
        page = replace(page, etag=seen.etag, last_modified=seen.last_modified, aliases=aliases, reading=seen.reading)
    library.update_record(page, claim=claim)
    if before.status == "gone":
        return Notice("page_back")
    return Notice("not_modified" if seen is None else "page_unchanged")


def mark_missing(
    library: Library, before: Page, error: IngestError, *, online: bool = False
) -> tuple[IngestStatus, Notice]:
    """Record that a stored page could not be read: gone at once if its site says so, else after GONE_AFTER failures.

    A missing answer counts only if something else answered (`online`): otherwise this machine may be offline.
    """
    params = error.notice.params
    if error.code in _OWN_REFUSALS or (error.code == "unreadable" and error.notice.cause in _OWN_CAUSES):
        return "failed", error.notice
    why = because(error.code, **params)
    if error.code in _NO_ANSWER and not online:
        return "failed", Notice(UNANSWERED, why)
    status = params.get("status")
    failures = before.failures + 1
    is_gone = status in (404, 410) or failures >= GONE_AFTER or before.status == "gone"
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
    """Record that a page's URL now leads to another stored page: the page itself is gone."""
    library.update_record(replace(before, checked_at=now(), failures=0, status="gone"))


def mark_checked(library: Library, before: Page) -> None:
    """Record that a page's site answered, with content that is not stored."""
    library.update_record(replace(before, checked_at=now(), failures=0))
