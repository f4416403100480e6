"""The registry of libraries: one record each, in a separate collection.

A deleted library keeps its record and data for a day, during which it can be restored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

from qdrant_client import QdrantClient, models

from rag.dates import now
from rag.errors import StoreError
from rag.store.qdrant.client import is_shared, library_locks
from rag.store.qdrant.records import (
    FORMAT,
    LIBRARIES,
    ORDER,
    LibraryInfo,
    check_library_name,
    drop_library,
    ensure_libraries,
    ensure_library,
    library_from,
    library_id,
    library_payload,
    walk,
)

MAX_LIBRARIES = 200
"""Maximum number of libraries, including deleted ones that are not purged yet."""

_HEARTBEAT = 10.0  # seconds between heartbeats of an import
_TIMEOUT = 120.0  # seconds without a heartbeat until an import counts as dead
_MAX_TITLE = 60
_MAX_SHOWN = 40  # characters of an unknown name in messages; valid names are not longer


def list_libraries(client: QdrantClient) -> list[str]:
    """Return the names of existing libraries, sorted."""
    return sorted(info.name for info in library_infos(client))


def library_infos(client: QdrantClient, *, removed: bool = False) -> list[LibraryInfo]:
    """Return the existing libraries, or with `removed` the deleted ones that are not purged yet."""
    if not client.collection_exists(LIBRARIES):
        return []
    payloads = (record.payload or {} for record in walk(client, LIBRARIES))
    infos = (library_from(payload) for payload in payloads if not payload.get("importing"))
    return [info for info in infos if bool(info.removed_at) == removed]


def library_info(client: QdrantClient, name: str) -> LibraryInfo | None:
    """Return the record of a library without opening it; None if it does not exist."""
    return next((info for info in library_infos(client) if info.name == name), None)


def check_present(client: QdrantClient, name: str) -> LibraryInfo:
    """Return the record of a library. Raises StoreError if it is deleted, being imported or unknown."""
    if (info := library_info(client, name)) is not None:
        return info
    check_not_removed(client, name)
    if client.collection_exists(LIBRARIES):
        _check_not_importing(client, _record(client, name))
    raise StoreError("library_unknown", library=name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…")


def check_not_removed(client: QdrantClient, name: str) -> None:
    """Raise StoreError("library_removed") for a deleted library that is not purged yet."""
    for info in library_infos(client, removed=True):
        if info.name == name:
            raise StoreError(
                "library_removed", library=info.display_name, until=f"{info.restorable_until:%Y-%m-%d %H:%M} UTC"
            )


def is_expired(info: LibraryInfo) -> bool:
    """Return whether a deleted library can no longer be restored and may be purged."""
    return datetime.now(UTC) >= info.restorable_until


def ensure_registry(client: QdrantClient) -> None:
    with library_locks(client, LIBRARIES).commit_lock:
        ensure_libraries(client)


def create_library(client: QdrantClient, info: LibraryInfo) -> LibraryInfo:
    """Return the library of this name, created if it does not exist.

    Raises StoreError if the name is invalid or not free (see `check_free`).
    """
    check_library_name(info.name)
    ensure_registry(client)
    with library_locks(client, info.name).lock_all():
        if (present := library_info(client, info.name)) is not None:
            return present
        check_free(client, info.name)
        ensure_library(client, info.name, info.embedding_model, info.dimension)
        register(client, info.name, library_payload(info))
        return check_present(client, info.name)


def check_format(info: LibraryInfo) -> None:
    """Raise StoreError for a library in an older or newer format."""
    if info.format != FORMAT:
        raise StoreError("library_newer" if info.format > FORMAT else "library_older", library=info.display_name)


def note_fingerprint(client: QdrantClient, info: LibraryInfo, model: str, fingerprint: str) -> None:
    """Record the fingerprint of a model that is identified by its address."""
    fields = {"fingerprints": {**info.fingerprints, model: fingerprint}}
    client.set_payload(LIBRARIES, fields, [library_id(info.name)], ordering=ORDER)


def register(client: QdrantClient, name: str, payload: dict[str, Any]) -> None:
    """Write a new library's record, unless another process has already."""
    point = models.PointStruct(id=library_id(name), vector={}, payload=payload)
    client.upsert(LIBRARIES, [point], update_mode=models.UpdateMode.INSERT_ONLY, ordering=ORDER)


def check_free(client: QdrantClient, name: str) -> None:
    """Raise StoreError if a library of this name is deleted or being imported, or there are too many libraries."""
    check_not_removed(client, name)
    clear_dead_import(client, name)
    if not is_taken(client, name) and client.count(LIBRARIES).count >= MAX_LIBRARIES:
        raise StoreError("libraries_full", most=MAX_LIBRARIES)


# A library that is being imported


class ImportReservation:
    """A reservation of a library's name during its import, kept alive by heartbeats."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self._client = client
        self._info = info
        self._owner = uuid4().hex
        self._last_heartbeat = 0.0

    def begin(self) -> None:
        """Reserve the name. Raises StoreError if another process has reserved it."""
        register(self._client, self._info.name, self._payload(importing=True))
        self.renew()

    def renew(self) -> None:
        """Send a heartbeat. Raises StoreError if another process presumed this one dead and took over."""
        moment = time.time()
        if moment - self._last_heartbeat < _HEARTBEAT:
            return
        condition = models.Filter(must=self._own_filter())
        self._client.set_payload(LIBRARIES, {"seen": moment}, condition, ordering=ORDER)
        self._check()
        self._last_heartbeat = moment

    def end(self) -> None:
        """Make the library visible. Raises StoreError like `renew`."""
        condition = models.Filter(must=self._own_filter())
        point = models.PointStruct(id=library_id(self._info.name), vector={}, payload=self._payload(importing=False))
        mode = models.UpdateMode.UPDATE_ONLY
        self._client.upsert(LIBRARIES, [point], update_filter=condition, update_mode=mode, ordering=ORDER)
        self._check()

    def abandon(self) -> None:
        """Delete the imported data, if the name is still reserved for this process."""
        if self._owner == _record(self._client, self._info.name).get("maker"):
            _drop(self._client, self._info)

    def _check(self) -> None:
        if self._owner != _record(self._client, self._info.name).get("maker"):
            raise StoreError("library_arriving", library=self._info.display_name)

    def _payload(self, *, importing: bool) -> dict[str, Any]:
        import_fields = {"importing": True, "seen": time.time()} if importing else {}
        return {**library_payload(self._info), "maker": self._owner, **import_fields}

    def _own_filter(self) -> list[models.Condition]:
        return _owner_filter(self._info.name, self._owner)


def clear_dead_import(client: QdrantClient, name: str) -> None:
    """Delete the leftovers of a dead import of this name; raise StoreError if it is still running."""
    record = _record(client, name)
    if not record.get("importing"):
        return
    _check_not_importing(client, record)
    owner = record.get("maker", "")
    if owner:  # if its process is slow, not dead, it learns that it lost the name
        client.set_payload(LIBRARIES, {"maker": ""}, models.Filter(must=_owner_filter(name, owner)), ordering=ORDER)
    _drop(client, library_from(record))


def _check_not_importing(client: QdrantClient, record: Mapping[str, Any]) -> None:
    if record.get("importing") and is_shared(client) and time.time() - record.get("seen", 0.0) < _TIMEOUT:
        raise StoreError("library_arriving", library=library_from(record).display_name)


def _owner_filter(name: str, owner: str) -> list[models.Condition]:
    owner_condition = models.FieldCondition(key="maker", match=models.MatchValue(value=owner))
    return [models.HasIdCondition(has_id=[library_id(name)]), owner_condition]


def _record(client: QdrantClient, name: str) -> dict[str, Any]:
    points = client.retrieve(LIBRARIES, [library_id(name)], with_payload=True)
    return (points[0].payload or {}) if points else {}


def is_taken(client: QdrantClient, name: str) -> bool:
    """Return whether the name is in use, including by deleted libraries and running imports."""
    return bool(client.retrieve(LIBRARIES, [library_id(name)]))


def free_name(client: QdrantClient, title: str, reserved: Collection[str] = ()) -> str:
    """Return an unused name for a new library, made from the title, with a number if needed."""
    ensure_registry(client)
    base = re.sub(r"[^a-z0-9]+", "-", title.lower())[:32].strip("-") or "library"
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(name for name in names if name not in reserved and not is_taken(client, name))


def check_title(client: QdrantClient, title: str, library: str = "") -> str:
    """Return the title without extra spaces; `library` is the name of the library that gets it.

    Raises StoreError if it is empty, too long, taken, or contains unprintable characters.
    """
    plain = " ".join(title.split())
    if not plain.isprintable() or not 0 < len(plain) <= _MAX_TITLE:
        raise StoreError("library_title_wrong", most=_MAX_TITLE)
    others = [*library_infos(client), *library_infos(client, removed=True)]
    if any(info.display_name.casefold() == plain.casefold() for info in others if info.name != library):
        raise StoreError("library_title_taken", title=plain)
    return plain


def rename_library(client: QdrantClient, name: str, title: str) -> None:
    check_present(client, name)
    client.set_payload(LIBRARIES, {"title": check_title(client, title, library=name)}, [library_id(name)])


def remove_library(client: QdrantClient, name: str) -> None:
    """Hide the library; its data stays until `purge_library`."""
    check_present(client, name)
    client.set_payload(LIBRARIES, {"removed_at": now()}, [library_id(name)])


def restore_library(client: QdrantClient, name: str) -> None:
    """Restore a deleted library. Raises StoreError if it is too late."""
    if not any(info.name == name and not is_expired(info) for info in library_infos(client, removed=True)):
        raise StoreError("library_unknown", library=name)
    client.set_payload(LIBRARIES, {"removed_at": ""}, [library_id(name)])


def purge_library(client: QdrantClient, name: str) -> None:
    """Delete a library and its data if it is deleted and can no longer be restored."""
    with library_locks(client, name).lock_all():
        for info in library_infos(client, removed=True):
            if info.name == name and is_expired(info):
                _drop(client, info)


def _drop(client: QdrantClient, info: LibraryInfo) -> None:
    """Delete the library, its record last, so that leftovers of a killed process can be found."""
    drop_library(client, info.name)
    client.delete(LIBRARIES, [library_id(info.name)], ordering=ORDER)
