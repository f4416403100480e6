"""Migration of a library to another embedding model: fills a second set of chunks while the first is searched.

Chunks keep their ids, texts, terms and generations, so an interrupted migration resumes without rewriting existing
chunks. Both sets share pages and versions. A single write to the library's record switches between them; the previous
set is kept for reverting, which is the same migration in reverse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import LibraryMovedError, StoreError
from rag.models.embedding import drop_learned, join_vectors
from rag.store.qdrant.client import library_locks
from rag.store.qdrant.commit import search_flags
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import (
    DENSE,
    LIBRARIES,
    ORDER,
    SPARSE,
    LibraryInfo,
    check_present,
    chunks_collection,
    chunks_collections,
    ensure_library,
    is_removed,
    library_id,
    library_payload,
    match,
    match_any,
    match_ids,
    passage_from,
    walk,
)
from rag.store.values import batches, now
from rag.types import Passage, SparseVector

Encoded = tuple[NDArray[np.float32] | None, SparseVector | None]
"""A chunk's dense vector (d,) and learned terms, each None if the model can't read the text or has no such output."""
Encode = Callable[[Sequence[Passage]], Sequence[Encoded]]

_PAGES = 32  # per batch
_BATCH = 128  # chunks encoded and written per call
_MAX_MISSING = 256  # chunks left to copy during the switch, which blocks writers
_ID_BATCH = 1000  # ids per call


@dataclass(frozen=True, slots=True)
class _PageInfo:
    """The chunks that a page should have according to its record."""

    generation: str
    chunks: int
    excluded: bool


@dataclass(slots=True)
class _Difference:
    """The difference between the existing and the expected chunks, by page and by id."""

    incomplete: dict[str, _PageInfo] = field(default_factory=dict)
    missing: int = 0
    extra: list[Any] = field(default_factory=list)
    misflagged: dict[bool, list[Any]] = field(default_factory=lambda: {True: [], False: []})


class Move:
    """A new or resumed migration of `source` to a model of `dimension`. Raises StoreError.

    `target` is the library after the switch: before that, it can be searched but must not be written.
    """

    def __init__(self, source: Library, model: str, dimension: int, encode: Encode) -> None:
        if model == source.embedding_model:
            raise StoreError("move_same_model", library=source.info.display_name, model=model)
        self._client = source.client
        self._source = source
        self._encode = encode
        self._locks = library_locks(source.client, source.name)
        with self._locks.lock_all():
            info = check_present(source.client, source.name)
            if info.embedding_model != source.embedding_model:
                raise LibraryMovedError("library_moved", library=info.display_name)
            source.client.set_payload(LIBRARIES, {"moving_to": model}, [library_id(source.name)], ordering=ORDER)
            ensure_library(source.client, source.name, model, dimension)
        earlier = tuple(sorted({*info.earlier_models, source.embedding_model}))
        self.target = Library(
            source.client, replace(info, embedding_model=model, dimension=dimension, earlier_models=earlier)
        )

    def fill(self, on_progress: Callable[[int, int], object], stopped: Callable[[], bool]) -> bool:
        """Encode missing chunks until few remain; return False if stopped.

        `on_progress` gets the numbers of existing and of all chunks. Pages may be written meanwhile.
        """
        missing = None
        while True:
            expected = self._expected_pages()
            delta = self._difference(expected)
            total = sum(page.chunks for page in expected.values())
            on_progress(total - delta.missing, total)
            if not delta.missing or (
                missing is not None and (delta.missing <= _MAX_MISSING or delta.missing >= missing)
            ):
                return True
            missing = delta.missing
            completed = total - missing
            for count in self._copy_missing(delta.incomplete):
                completed += count
                on_progress(min(completed, total), total)
                if stopped():
                    return False

    def switch(self) -> None:
        """Copy the last changes, and make the library use the new set. Blocks writers of pages meanwhile."""
        with self._locks.lock_all():
            self._reconcile()
            info = self.target.info
            moved = replace(info, moving_to="", previous_model=self._source.embedding_model, moved_at=now())
            changed = library_payload(moved)
            fields = {key: changed[key] for key in _SWITCHED}
            current = match("model", self._source.embedding_model)
            condition = models.Filter(must=[match_ids([library_id(info.name)]), current])
            self._client.set_payload(LIBRARIES, fields, points=condition, ordering=ORDER)
        if self._source._is_shared:  # another process may have been writing
            self._reconcile()

    def _reconcile(self) -> None:
        """Make the chunks of the target match the records."""
        difference = self._difference(self._expected_pages())
        for _ in self._copy_missing(difference.incomplete):
            pass
        chunks = self.target.chunks_collection
        for ids in batches(difference.extra, _ID_BATCH):
            self._client.delete(chunks, ids)
        for excluded, flagged in difference.misflagged.items():
            for ids in batches(flagged, _ID_BATCH):
                self._client.set_payload(chunks, search_flags(excluded), points=ids, key="metadata")

    def _expected_pages(self) -> dict[str, _PageInfo]:
        fields = ["url_hash", "generation", "chunks", "left_out", "removed"]
        records = walk(self._client, self._source.pages_collection, payload=fields)
        rows = (record.payload or {} for record in records if not is_removed(record))
        return {row["url_hash"]: _PageInfo(row["generation"], row["chunks"], bool(row.get("left_out"))) for row in rows}

    def _difference(self, expected: Mapping[str, _PageInfo]) -> _Difference:
        difference = _Difference()
        counts: Counter[str] = Counter()
        fields = [f"metadata.{name}" for name in ("url_hash", "generation", "active", "left_out")]
        for point in walk(self._client, self.target.chunks_collection, payload=fields):
            data = (point.payload or {})["metadata"]
            page = expected.get(data["url_hash"])
            if page is None or page.generation != data["generation"]:
                difference.extra.append(point.id)
                continue
            counts[data["url_hash"]] += 1
            if (data["active"], bool(data.get("left_out"))) != (not page.excluded, page.excluded):
                difference.misflagged[page.excluded].append(point.id)
        difference.incomplete = {
            url_hash: page for url_hash, page in expected.items() if counts[url_hash] < page.chunks
        }
        difference.missing = sum(page.chunks - counts[url_hash] for url_hash, page in difference.incomplete.items())
        return difference

    def _copy_missing(self, incomplete: Mapping[str, _PageInfo]) -> Iterator[int]:
        """Encode and write the missing chunks of these pages; yield the number in each batch."""
        source, target = self._source.chunks_collection, self.target.chunks_collection
        for pages in batches(list(incomplete.items()), _PAGES):
            only = models.Filter(
                must=[
                    match_any("metadata.url_hash", [url_hash for url_hash, _ in pages]),
                    match_any("metadata.generation", [page.generation for _, page in pages]),
                ]
            )
            ids = [record.id for record in walk(self._client, source, only, payload=False)]
            for batch in batches(ids, _BATCH):
                existing = {point.id for point in self._client.retrieve(target, batch, with_payload=False)}
                missing = [chunk_id for chunk_id in batch if chunk_id not in existing]
                points = self._client.retrieve(source, missing, with_payload=True, with_vectors=[SPARSE])
                if points:
                    self._client.upsert(target, self._encode_points(points, dict(pages)), wait=True)
                    yield len(points)

    def _encode_points(
        self, points: Sequence[models.Record], pages: Mapping[str, _PageInfo]
    ) -> list[models.PointStruct]:
        vectors = self._encode([passage_from(point) for point in points])
        structs = []
        for point, (vector, learned) in zip(points, vectors, strict=True):
            payload = point.payload or {}
            point_vectors: dict[str, Any] = dict(point.vector) if isinstance(point.vector, dict) else {}
            if words := point_vectors.get(SPARSE):
                terms = drop_learned(SparseVector(words.indices, words.values))
                terms = join_vectors(terms, learned) if learned else terms
                point_vectors[SPARSE] = models.SparseVector(indices=terms.indices, values=terms.values)
            if vector is not None:
                if not np.isfinite(vector).all():
                    raise StoreError("vector_invalid", point=str(point.id))
                point_vectors[DENSE] = vector.tolist()
            flags = search_flags(pages[payload["metadata"]["url_hash"]].excluded)
            payload = {**payload, "metadata": {**payload["metadata"], **flags}}
            structs.append(models.PointStruct.model_construct(id=point.id, vector=point_vectors, payload=payload))
        return structs


_SWITCHED = ("embedding_model", "model", "dimension", "moving_to", "previous_model", "moved_at", "earlier_models")


def drop_unused_chunks(client: QdrantClient, info: LibraryInfo, *, include_previous: bool) -> None:
    """Delete the library's unused sets of chunks; with `include_previous`, also the one kept for reverting."""
    if not include_previous and not _unused_collections(info, chunks_collections(client, info.name)):
        return
    with library_locks(client, info.name).lock_all():
        collections = chunks_collections(client, info.name)  # first: records name new sets before they are created
        info = check_present(client, info.name)
        if include_previous and not info.moving_to:
            cleared = {"previous_model": "", "moved_at": ""}
            client.set_payload(LIBRARIES, cleared, [library_id(info.name)], ordering=ORDER)
            info = replace(info, previous_model="")
        for name in _unused_collections(info, collections):
            client.delete_collection(name)


def _unused_collections(info: LibraryInfo, collections: Sequence[str]) -> set[str]:
    names = filter(None, (info.embedding_model, info.moving_to, info.previous_model))
    return set(collections) - {chunks_collection(info.name, model) for model in names}
