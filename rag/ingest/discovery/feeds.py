"""The feeds of a site: the one at an address, or one that the page there names."""

from __future__ import annotations

import logging

from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.web.fetch import Fetched, Fetcher
from rag.web.guard import shown
from rag.web.site_scope import FoundPage

log = logging.getLogger(__name__)

_MAX_BYTES = 5 * 1024 * 1024
_MAX_TRIED = 3


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
