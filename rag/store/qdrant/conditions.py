"""What the engine is asked for: conditions of filters, and all the points that pass one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from qdrant_client import QdrantClient, models

from rag.store.filters import DATE, Filters

_PAGE = 1000  # points a call; the embedded engine holds Python's lock for the whole of one


def match(key: str, value: str | bool) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def match_any(key: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))


def within(scope: Filters) -> models.Filter | None:
    """Qdrant's form of it, None for no filter."""
    keys = {
        "metadata.url_hash": scope.pages,
        "metadata.site": scope.sites,
        "metadata.language": scope.languages,
        "metadata.section": scope.sections,
    }
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        for key, values in keys.items()
        if values
    ]
    if scope.since or scope.until:
        must.append(models.FieldCondition(key="metadata.added_at", range=_between(scope.since, scope.until)))
    aside: list[models.Condition] = [
        models.FieldCondition(key="metadata.url_hash", match=models.MatchAny(any=list(scope.without)))
    ]
    if not (must or scope.without):
        return None
    return models.Filter(must=must or None, must_not=aside if scope.without else None)


def _between(since: str, until: str) -> models.DatetimeRange:
    if DATE.fullmatch(until):
        day_after = (date.fromisoformat(until) + timedelta(days=1)).isoformat()
        return models.DatetimeRange(gte=since or None, lt=day_after)
    return models.DatetimeRange(gte=since or None, lte=until or None)


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
