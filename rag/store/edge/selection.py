"""Which points a write is for: ids, or a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import qdrant_edge as edge
from qdrant_client import models

from rag.store.edge.faults import unsupported
from rag.store.edge.filters import to_filter

_IDS = 1000  # a call, for the engine holds Python's lock for the whole of it


def operations(
    selector: Any, by_id: Callable[[list[Any]], Any], by_filter: Callable[[edge.Filter], Any]
) -> Iterator[edge.UpdateOperation]:
    """The operations for a selector: one for a filter, so that it is atomic, or one a batch of ids."""
    if isinstance(selector, models.FilterSelector):
        selector = selector.filter
    if isinstance(selector, models.PointIdsList):
        selector = selector.points
    if isinstance(selector, models.Filter):
        yield by_filter(to_filter(selector) or edge.Filter())
        return
    if not isinstance(selector, (list, tuple)):
        raise unsupported(f"a selection by {type(selector).__name__}")
    for batch in id_batches(selector):
        yield by_id(batch)


def id_batches(ids: Any) -> Iterator[list[Any]]:
    """Point ids as the engine takes them, a bounded number at a time."""
    plain = [plain_id(one) for one in ids]
    for at in range(0, len(plain), _IDS):
        yield plain[at : at + _IDS]


def plain_id(given: Any) -> Any:
    return str(given) if isinstance(given, UUID) else given
