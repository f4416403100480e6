"""The list of libraries: one record each, in a collection of its own.

A library that was removed keeps its record and all else that it holds for a day, in which it can be restored.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from itertools import count

from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.commit import library_locks
from rag.store.records import (
    LIBRARIES,
    LibraryInfo,
    check_library_name,
    drop_library,
    ensure_libraries,
    ensure_library,
    library_from,
    library_id,
    library_payload,
    now,
    walk,
)

KEPT = timedelta(days=1)
"""How long a library that was removed can be restored."""

MOST = 200
"""How many libraries there can be, those counted that can still be restored."""

_LONGEST_TITLE = 60
_SHOWN = 40  # characters of a name that somebody typed; no library's is longer


def list_libraries(client: QdrantClient) -> list[str]:
    """The names of the libraries that are there, sorted."""
    return sorted(info.name for info in library_infos(client))


def library_infos(client: QdrantClient, *, removed: bool = False) -> list[LibraryInfo]:
    """The libraries that are there, or with `removed` those that can be restored."""
    if not client.collection_exists(LIBRARIES):
        return []
    payloads = (record.payload or {} for record in walk(client, LIBRARIES))
    infos = (library_from(payload) for payload in payloads if not payload.get("importing"))
    return [info for info in infos if bool(info.removed_at) == removed]


def library_info(client: QdrantClient, name: str) -> LibraryInfo | None:
    """What the library remembers of itself, without opening it; None when there is none of this name."""
    return next((info for info in library_infos(client) if info.name == name), None)


def check_present(client: QdrantClient, name: str) -> LibraryInfo:
    """The library of this name, else StoreError: "library_removed" for one that can be restored, "library_unknown"."""
    if (info := library_info(client, name)) is not None:
        return info
    check_not_removed(client, name)
    raise StoreError("library_unknown", library=name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…")


def check_not_removed(client: QdrantClient, name: str) -> None:
    """StoreError("library_removed") for a library that is gone and can be restored."""
    for info in library_infos(client, removed=True):
        if info.name == name:
            raise StoreError("library_removed", library=info.shown, until=f"{kept_until(info):%Y-%m-%d %H:%M} UTC")


def kept_until(info: LibraryInfo) -> datetime:
    """Until when a library that was removed can be restored."""
    return datetime.fromisoformat(info.removed_at) + KEPT


def is_over(info: LibraryInfo) -> bool:
    """Whether a library that was removed can no longer be restored, so that it may be purged."""
    return datetime.now(UTC) >= kept_until(info)


def ensure_registry(client: QdrantClient) -> None:
    with library_locks(client, LIBRARIES).switch:
        ensure_libraries(client)


def create_library(client: QdrantClient, info: LibraryInfo) -> LibraryInfo:
    """The library of this name, made now unless another thread was faster.

    Raises StoreError for a name that cannot be one, or when there are as many as there can be.
    """
    check_library_name(info.name)
    ensure_registry(client)
    with library_locks(client, info.name).everything():
        if (present := library_info(client, info.name)) is not None:
            return present
        check_not_removed(client, info.name)
        discard_import(client, info.name)
        _check_room(client, info.name)
        ensure_library(client, info.name, info.embedding_model, info.dimension)
        register(client, info)
    return info


def register(client: QdrantClient, info: LibraryInfo, *, importing: bool = False) -> None:
    """Write the library's record; of a new one, where there is room for it."""
    payload = {**library_payload(info), **({"importing": True} if importing else {})}
    with library_locks(client, LIBRARIES).switch:
        _check_room(client, info.name)
        client.upsert(LIBRARIES, [models.PointStruct(id=library_id(info.name), vector={}, payload=payload)])


def _check_room(client: QdrantClient, name: str) -> None:
    if not is_taken(client, name) and client.count(LIBRARIES).count >= MOST:
        raise StoreError("libraries_full", most=MOST)


def discard_import(client: QdrantClient, name: str) -> None:
    """Remove what an import that did not end has left of a library."""
    for record in client.retrieve(LIBRARIES, [library_id(name)], with_payload=True):
        if (record.payload or {}).get("importing"):
            _drop(client, name, (record.payload or {})["embedding_model"])


def is_taken(client: QdrantClient, name: str) -> bool:
    """Whether the name is that of a library, also of one that was removed or is on its way in."""
    return bool(client.retrieve(LIBRARIES, [library_id(name)]))


def free_name(client: QdrantClient, title: str, reserved: Collection[str] = ()) -> str:
    """A name for a new library with this title, that no other has: its letters and digits, and a number at need."""
    ensure_registry(client)
    base = re.sub(r"[^a-z0-9]+", "-", title.lower())[:32].strip("-") or "library"
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(name for name in names if name not in reserved and not is_taken(client, name))


def check_title(client: QdrantClient, title: str, of: str = "") -> str:
    """The title without needless spaces; `of` names the library that is to have it.

    Raises StoreError for one that is empty, too long, has signs that cannot be seen, or is another library's.
    """
    plain = " ".join(title.split())
    if not plain.isprintable() or not 0 < len(plain) <= _LONGEST_TITLE:
        raise StoreError("library_title_wrong", most=_LONGEST_TITLE)
    others = [*library_infos(client), *library_infos(client, removed=True)]
    if any(info.shown.casefold() == plain.casefold() for info in others if info.name != of):
        raise StoreError("library_title_taken", title=plain)
    return plain


def rename_library(client: QdrantClient, name: str, title: str) -> None:
    check_present(client, name)
    client.set_payload(LIBRARIES, {"title": check_title(client, title, of=name)}, [library_id(name)])


def remove_library(client: QdrantClient, name: str) -> None:
    """Hide the library; what it holds stays until `purge_library`."""
    check_present(client, name)
    client.set_payload(LIBRARIES, {"removed_at": now()}, [library_id(name)])


def restore_library(client: QdrantClient, name: str) -> None:
    """Let a library be there again that was removed; StoreError when its day is over."""
    if not any(info.name == name and not is_over(info) for info in library_infos(client, removed=True)):
        raise StoreError("library_unknown", library=name)
    client.set_payload(LIBRARIES, {"removed_at": ""}, [library_id(name)])


def purge_library(client: QdrantClient, name: str) -> None:
    """Delete a library whose day is over, with everything in it; every other stays."""
    with library_locks(client, name).everything():
        for info in library_infos(client, removed=True):
            if info.name == name and is_over(info):
                _drop(client, name, info.embedding_model)


def _drop(client: QdrantClient, name: str, embedding_model: str) -> None:
    """The record goes last: what a kill leaves is found by it."""
    drop_library(client, name, embedding_model)
    client.delete(LIBRARIES, [library_id(name)])
