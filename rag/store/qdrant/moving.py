"""Migration of a library to another embedding model: fills a second set of chunks while the first is searched.

Chunks keep their ids, texts, terms and generations, so an interrupted migration resumes without rewriting existing
chunks. Both sets share pages and versions. A single write to the library's record switches between them; the previous
set stays for going back, which is the same migration in reverse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.dates import now
from rag.errors import LibraryMovedError, StoreError
from rag.models.lexical import joined, without_learned
from rag.store.qdrant.library import Library
from rag.store.qdrant.locks import library_locks
from rag.store.qdrant.records import (
    DENSE,
    LIBRARIES,
    ORDER,
    SPARSE,
    LibraryInfo,
    chunks_collection,
    chunks_collections,
    ensure_library,
    is_removed,
    library_id,
    library_payload,
    match,
    match_any,
    passage_from,
    walk,
)
from rag.store.qdrant.registry import check_present
from rag.types import Passage, SparseVector

T = TypeVar("T")

Encoded = tuple[NDArray[np.float32] | None, SparseVector | None]
"""A chunk's dense vector (d,) and its learned terms; None if the model cannot read the text or has no such output."""
Encode = Callable[[Sequence[Passage]], Sequence[Encoded]]

_PAGES = 32  # per batch
_BATCH = 128  # chunks encoded and written per call
_FEW = 256  # chunks that may be copied during the switch
_MOST = 1000  # ids per call


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The chunks that a page's record calls for."""

    generation: str
    chunks: int
    left_out: bool


@dataclass(slots=True)
class _Difference:
    """The difference between existing chunks and the records, by page and by id."""

    lacking: dict[str, _Wanted] = field(default_factory=dict)
    missing: int = 0
    surplus: list[Any] = field(default_factory=list)
    misflagged: dict[bool, list[Any]] = field(default_factory=lambda: {True: [], False: []})


class Move:
    """A new or resumed migration of `source` to a model of `dimension`. Raises StoreError.

    `target` is the library after the switch: it can be searched, but must not be written before.
    """

    def __init__(self, source: Library, model: str, dimension: int, encode: Encode) -> None:
        if model == source.embedding_model:
            raise StoreError("move_same_model", library=source.info.shown, model=model)
        self._client = source.client
        self._source = source
        self._encode = encode
        self._locks = library_locks(source.client, source.name)
        with self._locks.everything():
            info = check_present(source.client, source.name)
            if info.embedding_model != source.embedding_model:
                raise LibraryMovedError("library_moved", library=info.shown)
            source.client.set_payload(LIBRARIES, {"moving_to": model}, [library_id(source.name)], ordering=ORDER)
            ensure_library(source.client, source.name, model, dimension)
        earlier = tuple(sorted({*info.earlier_models, source.embedding_model}))
        self.target = Library(
            source.client, replace(info, embedding_model=model, dimension=dimension, earlier_models=earlier)
        )

    def fill(self, on_progress: Callable[[int, int], object], stopped: Callable[[], bool]) -> bool:
        """Encode missing chunks until few remain; return False if stopped.

        `on_progress` gets the number of existing chunks, and of all. Pages may be written meanwhile.
        """
        missing = None
        while True:
            wanted = self._wanted()
            found = self._difference(wanted)
            total = sum(one.chunks for one in wanted.values())
            on_progress(total - found.missing, total)
            if not found.missing or (missing is not None and (found.missing <= _FEW or found.missing >= missing)):
                return True
            missing = found.missing
            done = total - missing
            for count in self._copied(found.lacking):
                done += count
                on_progress(min(done, total), total)
                if stopped():
                    return False

    def switch(self) -> None:
        """Copy the last changes, and search the new set from now on. Blocks writers of pages meanwhile."""
        with self._locks.everything():
            self._agree()
            info = self.target.info
            changed = library_payload(replace(info, moving_to="", **self._previous()))
            said = {key: changed[key] for key in _SWITCHED}
            here = models.Filter(
                must=[
                    models.HasIdCondition(has_id=[library_id(info.name)]),
                    match("model", self._source.embedding_model),
                ]
            )
            self._client.set_payload(LIBRARIES, said, points=here, ordering=ORDER)
        if self._source._is_shared:  # another process may have been writing
            self._agree()

    def _previous(self) -> dict[str, Any]:
        source = self._source
        return {
            "previous_model": source.embedding_model,
            "previous_dimension": source.dimension,
            "moved_at": now(),
        }

    def _agree(self) -> None:
        """Make the chunks of the target match the records."""
        found = self._difference(self._wanted())
        for _ in self._copied(found.lacking):
            pass
        chunks = self.target.chunks_collection
        for ids in _batches(found.surplus, _MOST):
            self._client.delete(chunks, models.PointIdsList(points=ids))
        for left_out, flagged in found.misflagged.items():
            for ids in _batches(flagged, _MOST):
                self._client.set_payload(chunks, _flags(left_out), points=ids, key="metadata")

    def _wanted(self) -> dict[str, _Wanted]:
        fields = ["url_hash", "generation", "chunks", "left_out", "removed"]
        records = walk(self._client, self._source.pages_collection, payload=fields)
        payloads = (record.payload or {} for record in records if not is_removed(record))
        return {
            one["url_hash"]: _Wanted(one["generation"], one["chunks"], bool(one.get("left_out"))) for one in payloads
        }

    def _difference(self, wanted: Mapping[str, _Wanted]) -> _Difference:
        found = _Difference()
        there: Counter[str] = Counter()
        fields = [f"metadata.{name}" for name in ("url_hash", "generation", "active", "left_out")]
        for point in walk(self._client, self.target.chunks_collection, payload=fields):
            data = (point.payload or {})["metadata"]
            page = wanted.get(data["url_hash"])
            if page is None or page.generation != data["generation"]:
                found.surplus.append(point.id)
                continue
            there[data["url_hash"]] += 1
            if (data["active"], bool(data.get("left_out"))) != (not page.left_out, page.left_out):
                found.misflagged[page.left_out].append(point.id)
        found.lacking = {one: page for one, page in wanted.items() if there[one] < page.chunks}
        found.missing = sum(page.chunks - there[one] for one, page in found.lacking.items())
        return found

    def _copied(self, lacking: Mapping[str, _Wanted]) -> Iterator[int]:
        """Encode and write the missing chunks of these pages; yield the number in each batch."""
        source, target = self._source.chunks_collection, self.target.chunks_collection
        for pages in _batches(list(lacking.items()), _PAGES):
            only = models.Filter(
                must=[
                    match_any("metadata.url_hash", [one for one, _ in pages]),
                    match_any("metadata.generation", [page.generation for _, page in pages]),
                ]
            )
            ids = [record.id for record in walk(self._client, source, only, payload=False)]
            for some in _batches(ids, _BATCH):
                there = {one.id for one in self._client.retrieve(target, some, with_payload=False)}
                missing = [one for one in some if one not in there]
                points = self._client.retrieve(source, missing, with_payload=True, with_vectors=[SPARSE])
                if points:
                    self._client.upsert(target, self._encoded(points, dict(pages)), wait=True)
                    yield len(points)

    def _encoded(self, points: Sequence[models.Record], pages: Mapping[str, _Wanted]) -> list[models.PointStruct]:
        given = self._encode([passage_from(point) for point in points])
        encoded = []
        for point, (vector, learned) in zip(points, given, strict=True):
            payload = point.payload or {}
            vectors: dict[str, Any] = dict(point.vector) if isinstance(point.vector, dict) else {}
            if words := vectors.get(SPARSE):
                terms = without_learned(SparseVector(words.indices, words.values))
                terms = joined(terms, learned) if learned else terms
                vectors[SPARSE] = models.SparseVector(indices=terms.indices, values=terms.values)
            if vector is not None:
                if not np.isfinite(vector).all():
                    raise StoreError("vector_invalid", point=str(point.id))
                vectors[DENSE] = vector.tolist()
            flags = _flags(pages[payload["metadata"]["url_hash"]].left_out)
            payload = {**payload, "metadata": {**payload["metadata"], **flags}}
            encoded.append(models.PointStruct.model_construct(id=point.id, vector=vectors, payload=payload))
        return encoded


_SWITCHED = (
    *("embedding_model", "model", "dimension", "moving_to"),
    *("previous_model", "previous_dimension", "moved_at", "earlier_models"),
)


def _batches(rows: Sequence[T], size: int) -> Iterator[list[T]]:
    return (list(rows[at : at + size]) for at in range(0, len(rows), size))


def _flags(left_out: bool) -> dict[str, bool]:
    return {"active": not left_out, "left_out": left_out}


def drop_unused_chunks(client: QdrantClient, info: LibraryInfo, *, over: bool) -> None:
    """Delete the library's unused sets of chunks; `over` includes the one kept for going back."""
    if not over and not _unused(info, chunks_collections(client, info.name)):
        return
    with library_locks(client, info.name).everything():
        there = chunks_collections(client, info.name)  # before reading the record, which names a set before it exists
        info = check_present(client, info.name)
        if over and not info.moving_to:
            forgotten = {"previous_model": "", "previous_dimension": 0, "moved_at": ""}
            client.set_payload(LIBRARIES, forgotten, [library_id(info.name)], ordering=ORDER)
            info = replace(info, previous_model="")
        for name in _unused(info, there):
            client.delete_collection(name)


def _unused(info: LibraryInfo, collections: Sequence[str]) -> set[str]:
    used = filter(None, (info.embedding_model, info.moving_to, info.previous_model))
    return set(collections) - {chunks_collection(info.name, one) for one in used}
