"""The files that were handed in with a job become its items: read by the worker, a few at a time."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import Any

from rag.errors import IngestError, RagError
from rag.ingest.outcomes import result
from rag.ingest.records import RecordBounds
from rag.ingest.sources import Source, apart, sources_in
from rag.store.database import Database
from rag.store.item_table import NewItem
from rag.text import plain
from rag.types import Notice
from rag.web.url_key import split_url, url_hash

_AT_ONCE = 500
_APART = frozenset(["data", "broken"])


class Unpacking:
    """`run` may be cut off at any point and called again: the items that there are tell how far it was."""

    def __init__(self, job_id: str, database: Database, bounds: RecordBounds) -> None:
        self._job_id = job_id
        self._items = database.items
        self._files = database.files
        self._bounds = bounds

    def run(self, stopped: Callable[[], bool]) -> int:
        """Add an item for each source in the job's files, then forget the files; returns how many were added."""
        added = 0
        items = islice(new_items(self._sources()), self._items.count(self._job_id), None)
        while batch := list(islice(items, _AT_ONCE)):
            if stopped() or not self._items.append(self._job_id, batch):  # the job was cancelled or removed
                return added
            added += len(batch)
        self._files.clear(self._job_id)
        return added

    def _sources(self) -> Iterator[Source]:
        for name, data in self._files.files(self._job_id):
            yield from sources_in(name, data, bounds=self._bounds)


def new_items(sources: Iterable[Source]) -> Iterator[NewItem]:
    """An item for each source; one that repeats the address of another has its result at once."""
    first: dict[str, str] = {}
    for source in apart(sources):
        key = _key(source)
        if key not in first:
            if key:
                first[key] = source.name
            yield new_item(source, key)
            continue
        row = result(source, key, "duplicate", Notice("same_address", {"url": source.url, "first": first[key]}))
        yield NewItem(row.source, source.url, result=row)


def _key(source: Source) -> str:
    """The source's url_hash; empty for one that has none, which its turn will tell."""
    if source.broken is not None or not split_url(source.url).scheme:
        return ""
    try:
        return url_hash(source.url)
    except RagError:
        return ""


def pack(source: Source) -> dict[str, Any]:
    """Everything of a source that JSON can carry; its `data` is stored beside it."""
    packed = {field.name: getattr(source, field.name) for field in fields(source) if field.name not in _APART}
    packed["record"] = dict(source.record)
    if source.broken is not None:
        packed["broken"] = {"code": source.broken.code, "params": dict(source.broken.notice.params)}
    return packed


def unpack(packed: Mapping[str, Any], data: bytes | None) -> Source:
    kept = dict(packed)
    broken, inline = kept.pop("broken", None), kept.pop("data", None)
    if inline is not None:  # as files of the first version hold it
        data = base64.b64decode(inline)
    error = IngestError(broken["code"], **broken["params"]) if broken else None
    return Source(**kept, data=data, broken=error)


def new_item(source: Source, url_hash: str = "", *, depth: int = 0, parent: int | None = None) -> NewItem:
    return NewItem(plain(source.name), source.url, url_hash, pack(source), source.data, depth, parent)
