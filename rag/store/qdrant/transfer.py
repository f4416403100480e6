"""Export of a library to one file, with its vectors, and import under any name or on another machine.

`rag.store.qdrant.archive` describes the file. Nothing is re-encoded, so both sides need the same model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.dates import now
from rag.errors import ModelMismatchError, StoreError
from rag.store.duplicates import signature_from
from rag.store.qdrant.archive import ArchiveReader, ArchiveWriter
from rag.store.qdrant.exchange_rows import (
    AddressError,
    check_address,
    export_pages,
    parse_chunk,
    parse_claim,
    parse_page,
    parse_version,
)
from rag.store.qdrant.library import Library
from rag.store.qdrant.locks import library_locks
from rag.store.qdrant.records import (
    DENSE,
    SPARSE,
    LibraryInfo,
    Mark,
    check_library_name,
    chunk_id,
    ensure_library,
    page_point,
    version_id,
)
from rag.store.qdrant.registry import ImportReservation, check_free, ensure_registry, library_info
from rag.types import Page

OnProgress = Callable[[int, int], object]

FORMAT = "pagelight-library"
VERSION = 1
_PAGES = 20  # per part
_BATCH = 128


def export_library(
    library: Library, path: str | Path, on_progress: OnProgress = lambda done, total: None
) -> dict[str, int]:
    """Write the library to a file, atomically; return the numbers of pages, chunks and versions.

    `on_progress` gets the number of pages done, and of all. Each page is consistent. Raises StoreError, also for a full
    disk.
    """
    hashes = [page.url_hash for page in library.pages()]
    counts = {"pages": 0, "chunks": 0, "versions": 0}
    with ArchiveWriter(Path(path)) as archive:
        for at in range(0, len(hashes), _PAGES):
            with library.lock_pages(hashes[at : at + _PAGES]):
                export_pages(library, hashes[at : at + _PAGES], archive, counts)
            on_progress(min(at + _PAGES, len(hashes)), len(hashes))
        info = LibraryInfo(library.name, library.embedding_model, library.dimension, now())
        archive.write_manifest({**asdict(info), "format": FORMAT, "version": VERSION, "counts": counts})
    return counts


def import_library(
    client: QdrantClient,
    path: str | Path,
    name: str,
    *,
    embedding_model: str = "",
    dimension: int = 0,
    on_progress: OnProgress = lambda done, total: None,
    called: str = "",
    title: str = "",
) -> dict[str, int]:
    """Make the library `name` from an exported file; return the numbers of pages, chunks and versions.

    `called` is the file's name as shown to people, if different. The library becomes visible when complete; the next
    import deletes an interrupted one. Raises ModelMismatchError if it was not made with `embedding_model`, if given.
    Raises StoreError if the name is taken, or the file is not a library, damaged, or of a newer version.
    """
    with ArchiveReader(Path(path), called) as archive:
        info, counts = _read_info(archive)
        if embedding_model and (embedding_model, dimension) != (info.embedding_model, info.dimension):
            raise ModelMismatchError(
                "exchange_model",
                name=archive.name,
                made_with=info.embedding_model,
                made_dimension=info.dimension,
                asked=embedding_model,
                asked_dimension=dimension,
            )
        if library_info(client, name) is not None:
            raise StoreError("library_exists", library=name)
        with open_import(client, replace(info, name=name, title=title)) as (library, heartbeat):
            imported = _Import(
                archive, library, counts, lambda done, total: (heartbeat(), on_progress(done, total))
            ).run()
            stored = {"pages": library.page_count(), "chunks": client.count(library.chunks_collection).count}
            if imported != counts or any(counts[kind] != number for kind, number in stored.items()):
                raise archive.damage_error("parts are missing")
    return counts


@contextmanager
def open_import(client: QdrantClient, info: LibraryInfo) -> Iterator[tuple[Library, Callable[[], None]]]:
    """Yield a new library to fill in the block; it stays hidden until the block succeeds.

    Also yields a function to call regularly as a heartbeat; it raises StoreError if another process has taken over.
    Raises StoreError if the name is taken or invalid, or there are too many libraries.
    """
    check_library_name(info.name)
    ensure_registry(client)
    with library_locks(client, info.name).lock_all():
        if library_info(client, info.name) is not None:
            raise StoreError("library_exists", library=info.shown)
        check_free(client, info.name)
        reservation = ImportReservation(client, info)
        reservation.begin()
        is_complete = False
        try:
            ensure_library(client, info.name, info.embedding_model, info.dimension)
            yield Library(client, info), reservation.renew
            reservation.end()
            is_complete = True
        finally:
            if not is_complete:
                reservation.abandon()


def _read_info(archive: ArchiveReader) -> tuple[LibraryInfo, dict[str, int]]:
    data = archive.read_manifest()
    if data.get("format") != FORMAT or type(data.get("version")) is not int:
        raise StoreError("exchange_unreadable", name=archive.name)
    if data["version"] > VERSION:
        raise StoreError("exchange_newer", name=archive.name)
    try:
        info = LibraryInfo(*(data[key] for key in ("name", "embedding_model", "dimension", "created_at")))
        counts = {key: _length(data["counts"][key]) for key in ("pages", "chunks", "versions")}
    except (KeyError, TypeError, ValueError) as error:
        raise archive.damage_error("manifest") from error
    texts = (info.name, info.embedding_model, info.created_at)
    if not all(isinstance(text, str) for text in texts) or type(info.dimension) is not int:
        raise archive.damage_error("manifest")
    if not 0 < info.dimension <= 65_536:
        raise archive.damage_error("manifest")
    return info, counts


class _Import:
    """One import: the parts in order, into a library that is still hidden."""

    def __init__(
        self, archive: ArchiveReader, library: Library, counts: Mapping[str, int], on_progress: OnProgress
    ) -> None:
        self._archive = archive
        self._library = library
        self._total = counts["pages"]
        self._on_progress = on_progress
        self._pages: dict[str, tuple[Page, bool]] = {}  # of the last part of pages, which chunks and versions refer to

    def run(self) -> dict[str, int]:
        """Import all parts; return the numbers of pages, chunks and versions."""
        counts = {"pages": 0, "chunks": 0, "versions": 0}
        importers = {"pages": self._import_pages, "versions": self._import_versions, "chunks": self._import_chunks}
        for number, kind in self._archive.parts():
            try:
                counts[kind] += importers[kind](number)
            except AddressError as error:
                raise self._archive.damage_error(f"part {number}: no page can have the address {error}") from error
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise self._archive.damage_error(f"part {number}") from error
            self._on_progress(counts["pages"], self._total)
        return counts

    def _texts(self, number: str, kind: str) -> Iterator[tuple[dict[str, Any], str]]:
        rows = list(self._archive.read_rows(number, kind))
        data = self._archive.read_array(number, "texts.u1", "u1", sum(_length(row["bytes"]) for row in rows)).tobytes()
        at = 0
        for row in rows:
            yield row, data[at : at + row["bytes"]].decode("utf-8", "surrogatepass")
            at += row["bytes"]

    def _import_pages(self, number: str) -> int:
        self._pages = {}
        points = []
        for row, text in self._texts(number, "pages"):
            page, left_out = check_address(parse_page(row, text)), row.get("left_out") is True
            self._pages[page.url_hash] = (page, left_out)
            claim = parse_claim(row)
            mark = Mark(time.time_ns() // 1_000_000)
            points.append(page_point(page, signature_from(row), mark, left_out=left_out, claim=claim))
        self._upsert(self._library.pages_collection, points)
        return len(points)

    def _import_versions(self, number: str) -> int:
        points = []
        for row, text in self._texts(number, "versions"):
            version = parse_version(row, text)
            page, _ = self._pages[version.url_hash]
            if not 0 < version.number < page.version:
                raise ValueError(version.number)
            payload = {**asdict(version), "written": time.time(), "settled": True}
            points.append(
                models.PointStruct(id=version_id(version.url_hash, version.number), vector={}, payload=payload)
            )
        self._upsert(self._library._versions.collection, points)
        return len(points)

    def _import_chunks(self, number: str) -> int:
        rows = [parse_chunk(row, self._pages) for row in self._archive.read_rows(number, "chunks")]
        size = self._library.dimension
        dense = self._archive.read_array(number, "dense.f4", "<f4", size * sum(row.dense for row in rows)).reshape(
            -1, size
        )
        terms = self._archive.read_array(number, "terms.u4", "<u4", sum(row.terms for row in rows))
        weights = self._archive.read_array(number, "weights.f4", "<f4", len(terms))
        points, dense_at, at = [], 0, 0
        for row in rows:
            vector: dict[str, Any] = {DENSE: dense[dense_at].tolist()} if row.dense else {}
            if row.terms:
                vector[SPARSE] = _sparse(terms[at : at + row.terms], weights[at : at + row.terms])
            dense_at, at = dense_at + row.dense, at + row.terms
            point_id = chunk_id(row.page.url_hash, row.page.generation, row.chunk.index)
            payload = row.payload(time.time())
            points.append(models.PointStruct.model_construct(id=point_id, vector=vector, payload=payload))
        self._upsert(self._library.chunks_collection, points)
        return len(points)

    def _upsert(self, collection: str, points: Sequence[models.PointStruct]) -> None:
        for at in range(0, len(points), _BATCH):
            self._library.client.upsert(collection, points[at : at + _BATCH], wait=True)


def _length(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _sparse(terms: NDArray[Any], weights: NDArray[Any]) -> models.SparseVector:
    return models.SparseVector.model_construct(indices=terms.tolist(), values=weights.tolist())
