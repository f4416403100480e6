"""Export of a library with its vectors to one file, and import under any name or on another machine.

`rag.store.qdrant.archive` describes the file. Nothing is re-encoded, so both sides need the same model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from qdrant_client import QdrantClient, models

from rag.errors import ModelMismatchError, StoreError
from rag.store.qdrant.archive import (
    MAX_CHARACTERS,
    MAX_HEADINGS,
    MAX_INDEX,
    ROWS_BYTES,
    TEXT_FIELDS,
    AddressError,
    ArchiveReader,
    ArchiveWriter,
    check_address,
    parse_chunk,
    parse_claim,
    parse_page,
    parse_version,
)
from rag.store.qdrant.client import library_locks
from rag.store.qdrant.library import Library, dense_vector
from rag.store.qdrant.records import (
    DENSE,
    SENTENCES,
    SPARSE,
    ImportReservation,
    LibraryInfo,
    Revision,
    check_free,
    check_library_name,
    chunk_id,
    ensure_library,
    ensure_registry,
    is_removed,
    library_info,
    match_any,
    page_from,
    page_id,
    page_point,
    version_id,
    walk,
)
from rag.store.values import batches, merge_aliases, now, signature_from
from rag.types import Page

T = TypeVar("T")

OnProgress = Callable[[int, int], object]

FORMAT = "pagelight-library"
VERSION = 1
_PAGES = 20  # per part
_BATCH = 128


def export_library(
    library: Library, path: str | Path, on_progress: OnProgress = lambda done, total: None
) -> dict[str, int]:
    """Write the library to a file, atomically; return the numbers of pages, chunks and versions.

    `on_progress` gets the numbers of exported and of all pages. Each page is consistent. Raises StoreError, also if the
    disk is full.
    """
    hashes = [page.url_hash for page in library.pages()]
    counts = {"pages": 0, "chunks": 0, "versions": 0}
    with ArchiveWriter(Path(path)) as archive:
        done = 0
        for batch in batches(hashes, _PAGES):
            with library.lock_pages(batch):
                export_pages(library, batch, archive, counts)
            done += len(batch)
            on_progress(done, len(hashes))
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
    display_name: str = "",
    title: str = "",
) -> dict[str, int]:
    """Create the library `name` from an exported file; return the numbers of pages, chunks and versions.

    `display_name` is that of the file, if different. The library becomes visible when it is complete; the next import
    deletes an interrupted one. Raises ModelMismatchError if `embedding_model` is given and is not the file's. Raises
    StoreError if the name is taken, or the file is not a library, damaged, or of a newer version.
    """
    with ArchiveReader(Path(path), display_name) as archive:
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

    Also yields a heartbeat function to call regularly; it raises StoreError if another process has taken over. Raises
    StoreError if the name is taken or invalid, or there are too many libraries.
    """
    check_library_name(info.name)
    ensure_registry(client)
    with library_locks(client, info.name).lock_all():
        if library_info(client, info.name) is not None:
            raise StoreError("library_exists", library=info.display_name)
        check_free(client, info.name)
        reservation = ImportReservation(client, info)
        reservation.begin()
        try:
            ensure_library(client, info.name, info.embedding_model, info.dimension)
            yield Library(client, info), reservation.renew
            reservation.end()
        except BaseException:
            reservation.abandon()
            raise


def _read_info(archive: ArchiveReader) -> tuple[LibraryInfo, dict[str, int]]:
    data = archive.read_manifest()
    if data.get("format") != FORMAT or type(data.get("version")) is not int:
        raise StoreError("exchange_unreadable", name=archive.name)
    if data["version"] > VERSION:
        raise StoreError("exchange_newer", name=archive.name)
    try:
        info = LibraryInfo(*(data[key] for key in ("name", "embedding_model", "dimension", "created_at")))
        counts = {key: _length(data["counts"][key]) for key in ("pages", "chunks", "versions")}
        texts = (info.name, info.embedding_model, info.created_at)
        if not all(isinstance(text, str) for text in texts) or not 0 < _length(info.dimension) <= 65_536:
            raise ValueError(info)
    except (KeyError, TypeError, ValueError) as error:
        raise archive.damage_error("manifest") from error
    return info, counts


class _Import:
    """An import of the parts of a file, in order, into a library that is still hidden."""

    def __init__(
        self, archive: ArchiveReader, library: Library, counts: Mapping[str, int], on_progress: OnProgress
    ) -> None:
        self._archive = archive
        self._library = library
        self._total = counts["pages"]
        self._on_progress = on_progress
        self._pages: dict[str, tuple[Page, bool]] = {}  # the last part's; chunks and versions refer to them

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
            page, excluded = check_address(parse_page(row, text)), row.get("left_out") is True
            self._pages[page.url_hash] = (page, excluded)
            claim = parse_claim(row)
            revision = Revision(time.time_ns() // 1_000_000)
            points.append(page_point(page, signature_from(row), revision, excluded=excluded, claim=claim))
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
        self._upsert(self._library.versions_collection, points)
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
                part = slice(at, at + row.terms)
                vector[SPARSE] = models.SparseVector.model_construct(
                    indices=terms[part].tolist(), values=weights[part].tolist()
                )
            dense_at, at = dense_at + row.dense, at + row.terms
            point_id = chunk_id(row.page.url_hash, row.page.generation, row.chunk.index)
            payload = row.payload(time.time())
            points.append(models.PointStruct.model_construct(id=point_id, vector=vector, payload=payload))
        self._upsert(self._library.chunks_collection, points)
        return len(points)

    def _upsert(self, collection: str, points: Sequence[models.PointStruct]) -> None:
        for batch in batches(points, _BATCH):
            self._library.client.upsert(collection, batch, wait=True)


def _length(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


# Export of records, versions and chunks as rows

_TEXT_BYTES = 4_000_000
_MAX_ROWS = 1000  # per part
_HEADING_BYTES = ROWS_BYTES // 2  # of all headings of a part


def export_pages(library: Library, hashes: Sequence[str], archive: ArchiveWriter, counts: dict[str, int]) -> None:
    """Write some pages with their versions and chunks, and add their numbers to `counts`."""
    records = library.client.retrieve(library.pages_collection, [page_id(key) for key in hashes], with_payload=True)
    payloads = {page_from(r.payload or {}).url_hash: r.payload or {} for r in records if not is_removed(r)}
    for group in _group_by_size(list(payloads.values())):
        _write_texts(archive, "pages", [_strip_page(payload) for payload in group])
        counts["pages"] += len(group)
        pages = {payload["url_hash"]: page_from(payload) for payload in group}
        only = models.Filter(must=[match_any("url_hash", list(pages))])
        points = (r.payload or {} for r in walk(library.client, library.versions_collection, only))
        versions = [payload for payload in points if payload["number"] < pages[payload["url_hash"]].version]
        for part in _group_by_size(versions):
            _write_texts(archive, "versions", [_omit(payload, "settled", "written") for payload in part])
        counts["versions"] += len(versions)
        generations = [page.generation for page in pages.values()]
        current = [match_any("metadata.url_hash", list(pages)), match_any("metadata.generation", generations)]
        chunks = walk(library.client, library.chunks_collection, models.Filter(must=[*current]), vectors=True)
        # only headings can make a row long
        for chunk_part in _group(chunks, lambda point: sum(4 * len(text) for text in _headings(point)), _HEADING_BYTES):
            _write_chunks(archive, chunk_part, library.dimension)
            counts["chunks"] += len(chunk_part)


def _group_by_size(payloads: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Group payloads so that their texts fit in a part."""
    return _group(payloads, lambda payload: 3 * len(payload["text"]), _TEXT_BYTES)


def _group(rows: Iterable[T], size_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    group: list[T] = []
    size = 0
    for row in rows:
        length = size_of(row)
        if group and (size + length > limit or len(group) == _MAX_ROWS):
            yield group
            group, size = [], 0
        group.append(row)
        size += length
    if group:
        yield group


def _headings(point: models.Record) -> list[str]:
    """Return a chunk's headings, cut to the limits of the reader."""
    section = (point.payload or {})["metadata"]["section"]
    return [heading[:MAX_CHARACTERS] for heading in section[:MAX_HEADINGS]]


def _strip_page(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page's record without derived fields, with overlong values truncated."""
    slim = _omit(payload, "alias_hashes", "claim_hashes", "settled", "rev", "recent")
    texts = {name: str(slim[name])[:MAX_CHARACTERS] for name in TEXT_FIELDS & slim.keys()}
    return {**slim, **texts, "aliases": list(merge_aliases((), payload.get("aliases", ())))}


def _omit(payload: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key not in names}


def _write_texts(archive: ArchiveWriter, kind: str, rows: Sequence[dict[str, Any]]) -> None:
    texts = [row["text"].encode("utf-8", "surrogatepass") for row in rows]
    stripped = [{**_omit(row, "text"), "bytes": len(text)} for row, text in zip(rows, texts, strict=True)]
    archive.write_rows(kind, stripped, texts_u1=np.frombuffer(b"".join(texts), dtype=np.uint8))


def _write_chunks(archive: ArchiveWriter, points: Sequence[models.Record], dimension: int) -> None:
    rows, dense, terms, weights = [], [], [], []
    for point in points:
        data = (point.payload or {})["metadata"]
        vector = dense_vector(point)
        sparse: Any = point.vector.get(SPARSE) if isinstance(point.vector, dict) else None
        parent = [data["parent_start"], data["parent_end"], data["parent_id"]] if "parent_start" in data else None
        row = {"page": data["url_hash"], "index": data["index"], "start": data["start"], "end": data["end"]}
        row |= {"section": _headings(point), "hash": data["content_hash"], "parent": parent}
        row |= {"header": data["header"][:MAX_CHARACTERS]} if data.get("header") else {}
        row |= {"sentences": data[SENTENCES]} if 0 < len(data.get(SENTENCES, "")) <= MAX_INDEX else {}
        rows.append({**row, "dense": vector is not None, "terms": len(sparse.indices) if sparse else 0})
        dense += [vector] if vector is not None else []
        terms += list(sparse.indices) if sparse else []
        weights += list(sparse.values) if sparse else []
    stacked = np.stack(dense) if dense else np.zeros((0, dimension))
    archive.write_rows(
        "chunks",
        rows,
        dense_f4=stacked.astype("<f4"),
        terms_u4=np.asarray(terms, dtype="<u4"),
        weights_f4=np.asarray(weights, dtype="<f4"),
    )
