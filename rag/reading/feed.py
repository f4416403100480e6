"""RSS and Atom feeds: the pages that they name. Runs in the process that parses, as its task "feed"."""

from __future__ import annotations

import io
import time
from typing import Any

from rag.web.site_scope import FoundPage, is_page_name, page_address

MAX_ENTRIES = 2000


def feed_pages(body: bytes, url: str) -> list[FoundPage]:
    """The pages that the feed in `body`, read from `url`, names; in its order, each once. Empty for no feed."""
    import feedparser

    feed = feedparser.parse(
        io.BytesIO(body), response_headers={"content-location": url}, sanitize_html=False, resolve_relative_uris=True
    )
    if not feed.get("version"):
        return []
    found: dict[str, FoundPage] = {}
    for entry in feed.entries[:MAX_ENTRIES]:
        address = _page_of(entry)
        if address:
            found.setdefault(address, FoundPage(address, modified=_time_of(entry)))
    return list(found.values())


def feed_task(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """{"pages": [[url, modified], …]} of a feed; argument: url (where it came from in the end)."""
    return {"pages": [[page.url, page.modified] for page in feed_pages(body, header["url"])]}


def _page_of(entry: Any) -> str:
    """The address of an entry's page, or "" where it has none that could be read."""
    link = str(entry.get("link") or "").strip()
    if not link.startswith(("http://", "https://")) or not is_page_name(link):
        return ""
    return page_address(link)


def _time_of(entry: Any) -> str:
    """When the entry was changed or published, in UTC, or ""."""
    given = (entry.get(name) for name in ("updated_parsed", "published_parsed") if name in entry)
    moment = next((moment for moment in given if moment), None)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if isinstance(moment, time.struct_time) else ""
