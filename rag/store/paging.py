"""Going through many points without asking for too many at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qdrant_client import QdrantClient, models

_PAGE = 1000  # points a call; the embedded engine holds Python's lock for the whole of one


def walk(
    client: QdrantClient,
    collection: str,
    only: models.Filter | None = None,
    *,
    payload: Any = True,
    vectors: Any = False,
) -> Iterator[models.Record]:
    """Every point that passes the filter, in order of id."""
    offset: Any = None
    while True:
        records, offset = client.scroll(
            collection,
            scroll_filter=only,
            limit=_PAGE,
            offset=offset,
            with_payload=payload,
            with_vectors=vectors,
        )
        yield from records
        if offset is None:
            return
