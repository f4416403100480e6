"""Another look at a page that is stored: nothing new, no answer, gone, or back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.errors import IngestError
from rag.messages import say
from rag.store.library import Library
from rag.store.records import now
from rag.types import IngestStatus, Notice, Page

PATIENCE = 3
"""Failures in a row after which a page counts as gone."""
_OURS = frozenset(["blocked"])  # what this program refuses says nothing about the page


def still_there(library: Library, before: Page, seen: Page | None = None) -> Notice:
    """Note that the page's site answered with what is stored; `seen` is the page as it was read, if it was.

    Returns what to say of it.
    """
    page = replace(before, checked_at=now(), failures=0, status="active")
    if seen is not None:
        aliases = tuple(dict.fromkeys((*before.aliases, *seen.aliases)))
        page = replace(page, etag=seen.etag, last_modified=seen.last_modified, aliases=aliases)
    library.update_record(page)
    if before.status == "gone":
        return Notice("page_back")
    return Notice("not_modified" if seen is None else "page_unchanged")


def not_there(library: Library, before: Page, error: IngestError) -> tuple[IngestStatus, Notice]:
    """Note that a stored page could not be read: gone at once where its site says so, else after PATIENCE times."""
    if error.code in _OURS:
        return "failed", error.notice
    status = error.notice.params.get("status")
    failures = before.failures + 1
    is_gone = status in (404, 410) or failures >= PATIENCE or before.status == "gone"
    moment = now()
    library.update_record(
        replace(before, checked_at=moment, failures=failures, status="gone" if is_gone else before.status)
    )
    if status in (404, 410):
        return "gone", Notice("page_gone", {"status": status})
    why = {"why_en": say(error.notice, "en"), "why_zh": say(error.notice, "zh"), "cause": error.code}
    if is_gone:
        return "gone", Notice("page_lost", {"failures": failures, **why})
    return "failed", Notice("page_missed", {"failures": failures, **why})


def looked_at(library: Library, before: Page) -> None:
    """Note that a page's site answered, with something that is not to be stored."""
    library.update_record(replace(before, checked_at=now(), failures=0))


def due(pages: Sequence[Page], before: str) -> list[Page]:
    """The web pages that were last looked at before a moment (ISO 8601, UTC), the longest ago first."""
    waiting = [page for page in pages if page.source == "web" and (page.checked_at or page.added_at) < before]
    return sorted(waiting, key=lambda page: (page.checked_at or page.added_at, page.url_hash))
