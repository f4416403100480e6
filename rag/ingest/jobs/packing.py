"""Sources as they rest in the database until they are taken in."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rag.errors import IngestError
from rag.ingest.sources import Source
from rag.store.item_table import NewItem
from rag.text import plain

_APART = frozenset(["data", "broken"])


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
