"""RSS and Atom feeds: the pages that they name. Parsing runs in the process that parses, as its task "feed"."""

from __future__ import annotations

import io
import logging
import time
from typing import Any

from rag.errors import IngestError
from rag.ingest.parser import Parser
from rag.web.fetch import Fetched, Fetcher
from rag.web.guard import shown
from rag.web.site_scope import FoundPage, is_page_name, page_address

log = logging.getLogger(__name__)

MAX_ENTRIES = 2000
_MAX_BYTES = 5 * 1024 * 1024
_MAX_TRIED = 3


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


def read_feed(fetcher: Fetcher, parser: Parser, url: str) -> list[FoundPage]:
    """The pages of the feed at `url`, or of the first that works of those which the page at `url` names.

    Raises IngestError: what fetching raises, and "feed_missing".
    """
    fetched = fetcher.fetch(url, raw=_MAX_BYTES)
    if pages := _pages(parser, fetched):
        return pages
    named = parser.run("links", fetched.body, url=fetched.final_url, charset=fetched.charset)["feeds"]
    for address in named[:_MAX_TRIED]:
        try:
            if pages := _pages(parser, fetcher.fetch(address, raw=_MAX_BYTES)):
                return pages
        except IngestError as error:
            log.info("feed %s: %s", shown(address), error)
    raise IngestError("feed_missing", url=shown(url))


def _pages(parser: Parser, fetched: Fetched) -> list[FoundPage]:
    rows = parser.run("feed", fetched.body, url=fetched.final_url)["pages"]
    return [FoundPage(address, modified=modified) for address, modified in rows]


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
