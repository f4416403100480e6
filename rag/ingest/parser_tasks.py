"""What the process that parses can be asked for, by name.

A task takes a body and its arguments and returns what JSON can carry. It imports its libraries when it
is first called, and raises IngestError for a body that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rag.errors import IngestError
from rag.ingest.documents import find_reader
from rag.ingest.extract import as_mapping, extract
from rag.messages.ingest import because
from rag.web.guard import shown
from rag.web.media import GZIP, XML

Task = Callable[[bytes, dict[str, Any]], dict[str, Any]]


def _extract(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Extracted`; arguments: content_type, charset, url."""
    kind, charset, url = header["content_type"], header["charset"], header["url"]
    if kind in (XML, GZIP):
        raise IngestError("content_type", url=shown(url), **because("feed" if kind == XML else "binary"))
    reader = find_reader(kind)
    return dict(as_mapping(reader(body, charset, url) if reader else extract(body, kind, charset, url)))


def _links(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """See `links_task`."""
    from rag.ingest.discovery.links import links_task

    return links_task(body, header)


def _feed(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """See `feed_task`."""
    from rag.ingest.discovery.feeds import feed_task

    return feed_task(body, header)


def _sitemap(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """See `sitemap_task`."""
    from rag.ingest.discovery.sitemaps import sitemap_task

    return sitemap_task(body, header)


TASKS: dict[str, Task] = {
    "extract": _extract,
    "links": _links,
    "feed": _feed,
    "sitemap": _sitemap,
}
