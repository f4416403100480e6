"""The database schema, conversion of pages, chunks and libraries to points, and the registry of libraries.

Only this module names and creates collections. Ids are uuid5, so repeating a write overwrites the same point. A deleted
library keeps its record and data for a day, during which it can be restored.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from itertools import count
from operator import itemgetter
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

from qdrant_client import QdrantClient, models

from rag.errors import StoreError
from rag.store.qdrant.client import is_shared, layout, library_locks
from rag.store.values import DATE, Filters, Signature, alias_hash, content_hash, merge_aliases, now
from rag.text import lazy_regex, white_space_before
from rag.types import Chunk, Page, Passage

DENSE = "dense"
SPARSE = "sparse"
SENTENCES = "sentences"
LIBRARIES = "pagelight.libraries"
ORDER = models.WriteOrdering.MEDIUM
"""Ordering of all writes of records: a live node serialises them. With weak ordering, two concurrent writes can each
win on a different replica; with strong ordering, writes wait for a fixed node even while it is down.
"""
RESTORE_PERIOD = timedelta(days=1)
"""Time for which a deleted library can be restored."""
INDEX_PERIOD = timedelta(days=7)
"""Time for which a library can revert to its previous index."""
FORMAT = 2
"""Format version of pages and chunks, increased when older programs must not write them."""

_NAME = lazy_regex(r"[a-z0-9][a-z0-9_-]{0,39}", re.ASCII)
_KEYWORD = models.PayloadSchemaType.KEYWORD
_DATETIME = models.PayloadSchemaType.DATETIME
_BOOL = models.PayloadSchemaType.BOOL

CHUNK_INDEXES: Mapping[str, models.PayloadSchemaType] = {
    "metadata.url_hash": _KEYWORD,
    "metadata.generation": _KEYWORD,
    "metadata.active": _BOOL,
    "metadata.left_out": _BOOL,
    "metadata.site": _KEYWORD,
    "metadata.language": _KEYWORD,
    "metadata.section": _KEYWORD,
    "metadata.added_at": _DATETIME,
    "metadata.base_rev": models.PayloadSchemaType.INTEGER,
}
PAGE_INDEXES: Mapping[str, models.PayloadSchemaType] = {
    "settled": _BOOL,
    "text_hash": _KEYWORD,
    "alias_hashes": _KEYWORD,
    "claim_hashes": _KEYWORD,
    "left_out": _BOOL,
    "removed": _BOOL,
    "rev": models.PayloadSchemaType.INTEGER,
}
VERSION_INDEXES: Mapping[str, models.PayloadSchemaType] = {"url_hash": _KEYWORD, "settled": _BOOL}
_SCROLL_SIZE = 1000  # points per call; the embedded engine holds the GIL for a whole call


def check_library_name(name: str) -> str:
    """Return the name; raise StoreError if it is invalid."""
    if not _NAME.fullmatch(name):
        raise StoreError("library_name_invalid", name=name)
    return name


def pages_collection(library: str) -> str:
    return f"pagelight.{library}.pages"


def versions_collection(library: str) -> str:
    """Return the name of the collection of earlier texts, which is separate so that listing pages is fast."""
    return f"pagelight.{library}.versions"


def chunks_collections(client: QdrantClient, library: str) -> list[str]:
    """Return the names of all existing collections of the library's chunks."""
    prefix = f"pagelight.{library}.chunks."
    return [info.name for info in client.get_collections().collections if info.name.startswith(prefix)]


def chunks_collection(library: str, embedding_model: str) -> str:
    """Return the collection of one model's chunks: one per model, so that a library in use can be re-embedded."""
    name = re.split(r"[/\\]", embedding_model.rstrip("/\\"))[-1].lower()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:32] or "model"
    digest = hashlib.sha256(embedding_model.encode()).hexdigest()[:8]
    return f"pagelight.{library}.chunks.{slug}-{digest}"


def ensure_library(client: QdrantClient, library: str, embedding_model: str, dimension: int) -> None:
    """Create missing collections and indexes of the library; safe against concurrent calls."""
    _ensure(client, pages_collection(library), PAGE_INDEXES)
    _ensure(client, versions_collection(library), VERSION_INDEXES)
    size: dict[str, Any] = {"size": dimension, "on_disk": layout(client).on_disk}
    dense = {DENSE: models.VectorParams(distance=models.Distance.COSINE, **size)}
    _ensure(client, chunks_collection(library, embedding_model), CHUNK_INDEXES, dense)


def _ensure(
    client: QdrantClient,
    name: str,
    indexes: Mapping[str, models.PayloadSchemaType],
    dense: Mapping[str, models.VectorParams] = MappingProxyType({}),
) -> None:
    """Create a collection and its indexes. Of records, only pages use sparse vectors: the bands of their signatures."""
    if not client.collection_exists(name):
        sparse = {SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        options = layout(client).chunks if dense else layout(client).records
        try:
            client.create_collection(name, vectors_config=dense, sparse_vectors_config=sparse, **options)
        except StoreError as error:
            if error.code != "collection_exists":  # another process was faster
                raise
    present = client.get_collection(name).payload_schema
    for key, schema in indexes.items():
        if key not in present:
            client.create_payload_index(name, key, field_schema=schema, wait=True)


_SPACE = UUID("6f1f6f0e-55a3-5c0b-9f8a-2d1c3f0a7b11")
WITHOUT_TEXT = models.PayloadSelectorExclude(exclude=["text", "signature", "alias_hashes", "claim_hashes"])
_PAGE_DEFAULTS = {"text": ""} | {field.name: field.default for field in fields(Page) if field.default is not MISSING}
_get_page_fields = itemgetter(*(field.name for field in fields(Page)))


@dataclass(frozen=True, slots=True)
class Revision:
    """The state of a record: its revision, and the tokens of its last changes."""

    rev: int
    recent_tokens: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page's record: the page without its text, its exclusion from answers, and its `Revision`.

    `removed` means that only the revision remains.
    """

    page: Page
    excluded: bool
    rev: int
    recent_tokens: Sequence[str]
    removed: bool


@dataclass(frozen=True, slots=True)
class LibraryInfo:
    """The record of a library. `name` never changes; `title` is the display name.

    `removed_at` is when it was deleted, else empty. `format` is the format version of its pages and chunks.

    `moving_to` is the model of an index under construction. `previous_model` was used until `moved_at`; its index is
    kept for reverting. Pages made with any of `earlier_models` count as current. `fingerprints` of models served at an
    address, by model name, reveal that another model is served there now.
    """

    name: str
    embedding_model: str
    dimension: int
    created_at: str = ""
    title: str = ""
    removed_at: str = ""
    format: int = FORMAT
    moving_to: str = ""
    previous_model: str = ""
    moved_at: str = ""
    earlier_models: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @property
    def display_name(self) -> str:
        return self.title or self.name

    @property
    def restorable_until(self) -> datetime:
        """The time until which a deleted library can be restored."""
        return datetime.fromisoformat(self.removed_at) + RESTORE_PERIOD

    @property
    def revertible_until(self) -> datetime | None:
        """The time until which the library can revert to `previous_model` without re-encoding; None if it cannot."""
        return datetime.fromisoformat(self.moved_at) + INDEX_PERIOD if self.moved_at else None


def recipe(text: str, chunker: str, embedding_model: str) -> str:
    """Return 16 hex digits that identify a page's text, chunker and embedding model."""
    parts = "\n".join((chunker, embedding_model, content_hash(text)))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _digest(name: str) -> bytes:
    return hashlib.sha1(_SPACE.bytes + name.encode(), usedforsecurity=False).digest()[:16]


def _uuid5(digest: bytes) -> str:
    """Format a digest as a uuid5, four times as fast as `UUID`; some callers need ten thousand."""
    octets = bytearray(digest)
    octets[6] = octets[6] & 0x0F | 0x50
    octets[8] = octets[8] & 0x3F | 0x80
    text = octets.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def library_id(name: str) -> str:
    return _uuid5(_digest(f"library\n{name}"))


def page_id(url_hash: str) -> str:
    return _uuid5(_digest(f"page\n{url_hash}"))


def chunk_id(url_hash: str, generation: str, index: int) -> str:
    """Return a chunk's id. Its first half depends only on page and index, so ties sort alike in every library."""
    by_place, by_attempt = _digest(f"chunk\n{url_hash}\n{index}"), _digest(f"chunk\n{url_hash}\n{generation}\n{index}")
    return _uuid5(by_place[:8] + by_attempt[8:])


def version_id(url_hash: str, number: int) -> str:
    return _uuid5(_digest(f"version\n{url_hash}\n{number}"))


def library_payload(info: LibraryInfo) -> dict[str, Any]:
    """Return the library's record. Programs from before `format` read a wrong model name in it, and refuse to open."""
    return {**asdict(info), "model": info.embedding_model, "embedding_model": f"{info.embedding_model} ({info.format})"}


def library_from(payload: Mapping[str, Any]) -> LibraryInfo:
    values = {entry.name: payload[entry.name] for entry in fields(LibraryInfo)}
    model = {"embedding_model": payload["model"]}
    return LibraryInfo(**{**values, **model, "earlier_models": tuple(values["earlier_models"])})


def claim_payload(claim: str) -> dict[str, Any]:
    """Return the fields for `claim`, the normalised but unverified address that the page claims, or ""."""
    return {"claim": claim, "claim_hashes": [alias_hash(claim)] if claim else []}


def page_point(
    page: Page, signature: Signature, revision: Revision, *, excluded: bool, settled: bool = True, claim: str = ""
) -> models.PointStruct:
    """Return the page's record as a point, with the bands of its signature as the sparse vector.

    `settled` is False if the flags of its chunks may differ from the record.
    """
    bands = signature.bands
    vector = {SPARSE: models.SparseVector(indices=bands.indices, values=bands.values)} if bands.indices else {}
    payload = {
        **asdict(page),
        **revision_payload(revision),
        **state_payload(page),
        **signature.payload(),
        **claim_payload(claim),
        "left_out": excluded,
        "settled": settled,
    }
    return models.PointStruct(id=page_id(page.url_hash), vector=vector, payload=payload)


def tombstone(url_hash: str, revision: Revision) -> models.PointStruct:
    """Return the tombstone of a removed page: its revision, so that an older commit can't restore it."""
    payload = {"url_hash": url_hash, "generation": "", "removed": True, "removed_at": now(), "settled": False}
    return models.PointStruct(id=page_id(url_hash), vector={}, payload={**payload, **revision_payload(revision)})


def revision_payload(revision: Revision) -> dict[str, Any]:
    return {"rev": revision.rev, "recent": list(revision.recent_tokens)}


def is_removed(record: models.Record) -> bool:
    """Return whether a page's record is a tombstone."""
    return bool((record.payload or {}).get("removed"))


def state_payload(page: Page) -> dict[str, Any]:
    """Return the record fields that a re-check updates, even if the text is unchanged."""
    aliases = merge_aliases((), page.aliases)
    return {
        "etag": page.etag,
        "last_modified": page.last_modified,
        "checked_at": page.checked_at,
        "failures": page.failures,
        "reading": page.reading,
        "status": page.status,
        "aliases": list(aliases),
        "alias_hashes": [alias_hash(address) for address in aliases],
    }


def page_from(payload: Mapping[str, Any]) -> Page:
    values = {**_PAGE_DEFAULTS, **payload}
    values["aliases"] = tuple(values["aliases"])
    return Page(*_get_page_fields(values))


def record_from(payload: Mapping[str, Any]) -> PageRecord:
    removed = bool(payload.get("removed"))
    page = Page("", payload["url_hash"], "", "", "", "", "", "web") if removed else page_from(payload)
    return PageRecord(page, bool(payload.get("left_out")), payload.get("rev", 0), payload.get("recent", ()), removed)


def chunk_payload(
    page: Page,
    chunk: Chunk,
    vector_hash: str,
    *,
    active: bool,
    written: float,
    first_child: int = 0,
    base_rev: int = 0,
    sentences: str = "",
) -> dict[str, Any]:
    """Return a chunk in LangChain's layout. `written` (Unix time) tells leftovers from commits in progress.

    `first_child` is the index of the first child of its parent, whose id the parent has. `base_rev` is the page
    record's revision when the chunk was written, `sentences` the packed index of its sentences."""
    parent: dict[str, Any] = {}
    if chunk.parent is not None:
        parent_id = chunk_id(page.url_hash, page.generation, first_child)
        parent = {"parent_start": chunk.parent[0], "parent_end": chunk.parent[1], "parent_id": parent_id}
    return {
        "page_content": chunk.text,
        "metadata": {
            "url": page.url,
            "url_hash": page.url_hash,
            "title": page.title,
            "site": page.site,
            "language": page.language,
            "section": list(chunk.section),
            "start": chunk.start,
            "end": chunk.end,
            "lead": white_space_before(page.text, chunk.start),
            **({"header": chunk.context} if chunk.context else {}),
            "index": chunk.index,
            "generation": page.generation,
            "content_hash": vector_hash,
            "text_hash": content_hash(chunk.text),
            "added_at": page.added_at,
            "date": page.modified or page.published,
            "active": active,
            "written": written,
            "base_rev": base_rev,
            **parent,
            **({SENTENCES: sentences} if sentences else {}),
        },
    }


def passage_from(
    point: Any,
    score: float = 0.0,
    ranks: Mapping[str, int] | None = None,
    scores: Mapping[str, float] | None = None,
) -> Passage:
    """Return a stored chunk with its score and its ranks by leg. A damaged chunk gets no text."""
    data: Mapping[str, Any] = point.payload["metadata"]
    return Passage(
        id=str(point.id),
        url=data["url"],
        url_hash=data["url_hash"],
        title=data["title"],
        site=data["site"],
        language=data["language"],
        section=tuple(data["section"]),
        text="" if is_damaged(point.payload) else point.payload["page_content"],
        start=data["start"],
        end=data["end"],
        score=score,
        ranks=ranks or {},
        scores=scores or {},
        lead=data.get("lead", ""),
        header=data.get("header", ""),
        parent=(data["parent_start"], data["parent_end"]) if "parent_start" in data else None,
        parent_id=data.get("parent_id", ""),
        date=data.get("date", ""),
    )


def is_damaged(payload: Mapping[str, Any]) -> bool:
    """Return whether a chunk's text differs from its stored hash."""
    return bool(payload["metadata"]["text_hash"] != content_hash(payload["page_content"]))


def match(key: str, value: str | bool | int) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def match_any(key: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))


def match_ids(ids: Iterable[Any]) -> models.HasIdCondition:
    return models.HasIdCondition(has_id=list(ids))


def active_chunks(only: models.Filter | None) -> models.Filter:
    """Return the filter for the chunks that take part in searches and match `only`."""
    return models.Filter(must=[match("metadata.active", True), *([only] if only else [])])


def scope_filter(scope: Filters | None) -> models.Filter | None:
    """Translate the scope to a Qdrant filter; None if it is empty."""
    if not scope:
        return None
    keys = {
        "metadata.url_hash": scope.pages,
        "metadata.site": scope.sites,
        "metadata.language": scope.languages,
        "metadata.section": scope.sections,
    }
    must: list[models.Condition] = [match_any(key, list(values)) for key, values in keys.items() if values]
    if scope.since or scope.until:
        period = models.DatetimeRange(gte=scope.since or None, lte=scope.until or None)
        if DATE.fullmatch(scope.until):  # the whole day
            day_after = (date.fromisoformat(scope.until) + timedelta(days=1)).isoformat()
            period = models.DatetimeRange(gte=scope.since or None, lt=day_after)
        must.append(models.FieldCondition(key="metadata.added_at", range=period))
    must_not: list[models.Condition] = [match_any("metadata.url_hash", list(scope.without))] if scope.without else []
    return models.Filter(must=must or None, must_not=must_not or None)


def walk(
    client: QdrantClient,
    collection: str,
    only: models.Filter | None = None,
    *,
    payload: Any = True,
    vectors: Any = False,
) -> Iterator[models.Record]:
    """Yield all points that match the filter, in order of their ids."""
    offset: Any = None
    while True:
        records, offset = client.scroll(
            collection,
            scroll_filter=only,
            limit=_SCROLL_SIZE,
            offset=offset,
            with_payload=payload,
            with_vectors=vectors,
        )
        yield from records
        if offset is None:
            return


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
        _ensure(client, LIBRARIES, {})


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
    """Delete the leftovers of a dead import of this name.

    Raises StoreError if a library of this name is deleted or being imported, or there are too many libraries.
    """
    check_not_removed(client, name)
    record = _record(client, name)
    if record.get("importing"):
        _check_not_importing(client, record)
        if owner := record.get("maker", ""):  # if its process is slow, not dead, it learns that it lost the name
            client.set_payload(LIBRARIES, {"maker": ""}, _owner_filter(name, owner), ordering=ORDER)
        _drop(client, library_from(record))
    if not _record(client, name) and client.count(LIBRARIES).count >= MAX_LIBRARIES:
        raise StoreError("libraries_full", most=MAX_LIBRARIES)


# A library that is being imported


class ImportReservation:
    """A reservation of a library's name during its import, kept alive by heartbeats."""

    def __init__(self, client: QdrantClient, info: LibraryInfo) -> None:
        self._client = client
        self._info = info
        self._owner = uuid4().hex
        self._own_record = _owner_filter(info.name, self._owner)
        self._last_heartbeat = 0.0

    def begin(self) -> None:
        """Reserve the name. Raises StoreError if another process has reserved it."""
        register(self._client, self._info.name, {**self._payload(), "importing": True, "seen": time.time()})
        self.renew()

    def renew(self) -> None:
        """Send a heartbeat. Raises StoreError if another process presumed this one dead and took over."""
        moment = time.time()
        if moment - self._last_heartbeat < _HEARTBEAT:
            return
        self._client.set_payload(LIBRARIES, {"seen": moment}, self._own_record, ordering=ORDER)
        self._check()
        self._last_heartbeat = moment

    def end(self) -> None:
        """Make the library visible. Raises StoreError like `renew`."""
        point = models.PointStruct(id=library_id(self._info.name), vector={}, payload=self._payload())
        mode = models.UpdateMode.UPDATE_ONLY
        self._client.upsert(LIBRARIES, [point], update_filter=self._own_record, update_mode=mode, ordering=ORDER)
        self._check()

    def abandon(self) -> None:
        """Delete the imported data, if the name is still reserved for this process."""
        if self._is_owner():
            _drop(self._client, self._info)

    def _check(self) -> None:
        if not self._is_owner():
            raise StoreError("library_arriving", library=self._info.display_name)

    def _is_owner(self) -> bool:
        return bool(self._owner == _record(self._client, self._info.name).get("maker"))

    def _payload(self) -> dict[str, Any]:
        return {**library_payload(self._info), "maker": self._owner}


def _check_not_importing(client: QdrantClient, record: Mapping[str, Any]) -> None:
    if record.get("importing") and is_shared(client) and time.time() - record.get("seen", 0.0) < _TIMEOUT:
        raise StoreError("library_arriving", library=library_from(record).display_name)


def _owner_filter(name: str, owner: str) -> models.Filter:
    return models.Filter(must=[match_ids([library_id(name)]), match("maker", owner)])


def _record(client: QdrantClient, name: str) -> dict[str, Any]:
    """Return the record of a library, even a deleted or incomplete one; empty if the name is free."""
    points = client.retrieve(LIBRARIES, [library_id(name)], with_payload=True)
    return (points[0].payload or {}) if points else {}


def free_name(client: QdrantClient, title: str, reserved: Collection[str] = ()) -> str:
    """Return an unused name for a new library, made from the title, with a number if needed."""
    ensure_registry(client)
    base = re.sub(r"[^a-z0-9]+", "-", title.lower())[:32].strip("-") or "library"
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(name for name in names if name not in reserved and not _record(client, name))


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
    records = pages_collection(info.name), versions_collection(info.name)
    for name in (*records, *chunks_collections(client, info.name)):
        if client.collection_exists(name):
            client.delete_collection(name)
    client.delete(LIBRARIES, [library_id(info.name)], ordering=ORDER)
