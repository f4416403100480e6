"""A library as one file, with its vectors: written here, read into a library of another name or machine.

`rag.store.archive` describes the file. Nothing is encoded anew, so both sides need the same model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from rag.errors import ModelMismatchError, StoreError
from rag.store.archive import ArchiveReader, ArchiveWriter
from rag.store.arriving import checked_chunk, checked_page, checked_version
from rag.store.collections import DENSE, SPARSE
from rag.store.duplicates import signature_from
from rag.store.library import Library, importing, library_info
from rag.store.records import (
    LibraryInfo,
    chunk_id,
    match_any,
    now,
    page_from,
    page_id,
    page_point,
    version_id,
)
from rag.store.search import dense_of
from rag.store.walking import walk
from rag.types import Page

OnProgress = Callable[[int, int], object]

FORMAT = "pagelight-library"
VERSION = 1
_PAGES = 20  # a part
_TEXT_BYTES = 4_000_000
_CHUNKS = 1000
_BATCH = 128


def export_library(
    library: Library, path: str | Path, on_progress: OnProgress = lambda done, total: None
) -> dict[str, int]:
    """Write the library to a file that appears whole or not at all; returns how many pages, chunks, versions it holds.

    `on_progress` gets the pages done and their number. Each page is written as it is at one moment.
    Raises StoreError, also for a disk that is full.
    """
    hashes = [page.url_hash for page in library.pages()]
    counts = {"pages": 0, "chunks": 0, "versions": 0}
    with ArchiveWriter(Path(path)) as archive:
        for at in range(0, len(hashes), _PAGES):
            with library.held(hashes[at : at + _PAGES]):
                _export_pages(library, hashes[at : at + _PAGES], archive, counts)
            on_progress(min(at + _PAGES, len(hashes)), len(hashes))
        info = LibraryInfo(library.name, library.embedding_model, library.dimension, now())
        archive.manifest({"format": FORMAT, "version": VERSION, **asdict(info), "counts": counts})
    return counts


def _export_pages(library: Library, hashes: Sequence[str], archive: ArchiveWriter, counts: dict[str, int]) -> None:
    records = library.client.retrieve(library.pages_collection, [page_id(one) for one in hashes], with_payload=True)
    payloads = {page_from(record.payload or {}).url_hash: record.payload or {} for record in records}
    for group in _by_size(list(payloads.values())):
        _texts_part(archive, "pages", [_plain(one, "alias_hashes", "settled") for one in group])
        counts["pages"] += len(group)
        pages = {one["url_hash"]: page_from(one) for one in group}
        only = models.Filter(must=[match_any("url_hash", list(pages))])
        versions = (r.payload or {} for r in walk(library.client, library._versions.collection, only))
        past = [one for one in versions if one["number"] < pages[one["url_hash"]].version]
        for part in _by_size(past):
            _texts_part(archive, "versions", [_plain(one, "settled", "written") for one in part])
        counts["versions"] += len(past)
        counts["chunks"] += _export_chunks(library, pages, archive)


def _export_chunks(library: Library, pages: Mapping[str, Page], archive: ArchiveWriter) -> int:
    generations = [page.generation for page in pages.values()]
    only = models.Filter(
        must=[match_any("metadata.url_hash", list(pages)), match_any("metadata.generation", generations)]
    )
    points = walk(library.client, library.chunks_collection, only, vectors=True)
    count = 0
    while part := list(islice(points, _CHUNKS)):
        _chunks_part(archive, part, library.dimension)
        count += len(part)
    return count


def _by_size(payloads: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The payloads in groups whose texts fit a part."""
    group: list[Mapping[str, Any]] = []
    size = 0
    for one in payloads:
        length = len(one["text"]) * 3
        if group and size + length > _TEXT_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += length
    if group:
        yield group


def _plain(payload: Mapping[str, Any], *without: str) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key not in without}


def _texts_part(archive: ArchiveWriter, kind: str, rows: Sequence[dict[str, Any]]) -> None:
    texts = [row["text"].encode("utf-8", "surrogatepass") for row in rows]
    slim = [{**_plain(row, "text"), "bytes": len(text)} for row, text in zip(rows, texts, strict=True)]
    archive.rows(kind, slim, texts_u1=np.frombuffer(b"".join(texts), dtype=np.uint8))


def _chunks_part(archive: ArchiveWriter, points: Sequence[models.Record], dimension: int) -> None:
    rows, dense, terms, weights = [], [], [], []
    for point in points:
        data = (point.payload or {})["metadata"]
        vector = dense_of(point)
        sparse: Any = point.vector.get(SPARSE) if isinstance(point.vector, dict) else None
        parent = [data["parent_start"], data["parent_end"], data["parent_id"]] if "parent_start" in data else None
        row = {"page": data["url_hash"], "index": data["index"], "start": data["start"], "end": data["end"]}
        row |= {"section": data["section"], "hash": data["content_hash"], "parent": parent}
        rows.append({**row, "dense": vector is not None, "terms": len(sparse.indices) if sparse else 0})
        dense += [vector] if vector is not None else []
        terms += list(sparse.indices) if sparse else []
        weights += list(sparse.values) if sparse else []
    stacked = np.stack(dense) if dense else np.zeros((0, dimension))
    archive.rows(
        "chunks",
        rows,
        dense_f4=stacked.astype("<f4"),
        terms_u4=np.asarray(terms, dtype="<u4"),
        weights_f4=np.asarray(weights, dtype="<f4"),
    )


def file_info(path: str | Path) -> tuple[LibraryInfo, dict[str, int]]:
    """What an exported file says of its library, and how many pages, chunks and versions it holds. StoreError."""
    with ArchiveReader(Path(path)) as archive:
        return _info(archive)


def import_library(
    client: QdrantClient,
    path: str | Path,
    name: str,
    *,
    embedding_model: str = "",
    dimension: int = 0,
    on_progress: OnProgress = lambda done, total: None,
) -> dict[str, int]:
    """Make the library `name` from an exported file; returns how many pages, chunks and versions came in.

    It appears when all of it is there; one that was cut off is cleared by the next try. Raises
    ModelMismatchError when it was not made with `embedding_model`, if that is given, and StoreError for
    a name that is taken, a file that is none of ours, is damaged, or is of a newer version.
    """
    with ArchiveReader(Path(path)) as archive:
        info, counts = _info(archive)
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
        with importing(client, replace(info, name=name)) as library:
            found = _Arrival(archive, library, counts, on_progress).run()
            stored = {"pages": library.page_count(), "chunks": client.count(library.chunks_collection).count}
            if found != counts or any(counts[kind] != number for kind, number in stored.items()):
                raise archive.damaged("parts are missing")
    return counts


def _info(archive: ArchiveReader) -> tuple[LibraryInfo, dict[str, int]]:
    data = archive.manifest()
    if data.get("format") != FORMAT or not isinstance(data.get("version"), int):
        raise StoreError("exchange_unreadable", name=archive.name)
    if data["version"] > VERSION:
        raise StoreError("exchange_newer", name=archive.name)
    try:
        info = LibraryInfo(*(data[key] for key in ("name", "embedding_model", "dimension", "created_at")))
        counts = {key: int(data["counts"][key]) for key in ("pages", "chunks", "versions")}
    except (KeyError, TypeError, ValueError) as error:
        raise archive.damaged("manifest") from error
    if not (isinstance(info.embedding_model, str) and isinstance(info.dimension, int) and 0 < info.dimension <= 65_536):
        raise archive.damaged("manifest")
    return info, counts


class _Arrival:
    """One import: the parts in their order, into a library that nobody sees yet."""

    def __init__(
        self, archive: ArchiveReader, library: Library, counts: Mapping[str, int], on_progress: OnProgress
    ) -> None:
        self._archive = archive
        self._library = library
        self._total = counts["pages"]
        self._on_progress = on_progress
        self._pages: dict[str, tuple[Page, bool]] = {}  # of the part before, which chunks and versions belong to

    def run(self) -> dict[str, int]:
        """How many pages, chunks and versions there were."""
        counts = {"pages": 0, "chunks": 0, "versions": 0}
        take = {"pages": self._take_pages, "versions": self._take_versions, "chunks": self._take_chunks}
        for number, kind in self._archive.parts():
            try:
                counts[kind] += take[kind](number)
            except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
                raise self._archive.damaged(f"part {number}") from error
            self._on_progress(counts["pages"], self._total)
        return counts

    def _texts(self, number: str, kind: str) -> Iterator[tuple[dict[str, Any], str]]:
        rows = list(self._archive.rows(number, kind))
        data = self._archive.array(number, "texts.u1", "u1", sum(_length(row["bytes"]) for row in rows)).tobytes()
        at = 0
        for row in rows:
            yield row, data[at : at + row["bytes"]].decode("utf-8", "surrogatepass")
            at += row["bytes"]

    def _take_pages(self, number: str) -> int:
        self._pages = {}
        points = []
        for row, text in self._texts(number, "pages"):
            page, left_out = checked_page(row, text), row.get("left_out") is True
            self._pages[page.url_hash] = (page, left_out)
            points.append(page_point(page, signature_from(row), left_out=left_out, settled=True))
        self._upsert(self._library.pages_collection, points)
        return len(points)

    def _take_versions(self, number: str) -> int:
        points = []
        for row, text in self._texts(number, "versions"):
            version = checked_version(row, text)
            page, _ = self._pages[version.url_hash]
            if not 0 < version.number < page.version:
                raise ValueError(version.number)
            payload = {**asdict(version), "written": time.time(), "settled": True}
            points.append(
                models.PointStruct(id=version_id(version.url_hash, version.number), vector={}, payload=payload)
            )
        self._upsert(self._library._versions.collection, points)
        return len(points)

    def _take_chunks(self, number: str) -> int:
        rows = [checked_chunk(row, self._pages) for row in self._archive.rows(number, "chunks")]
        wide = self._library.dimension
        dense = self._archive.array(number, "dense.f4", "<f4", wide * sum(row.dense for row in rows)).reshape(-1, wide)
        terms = self._archive.array(number, "terms.u4", "<u4", sum(row.terms for row in rows))
        weights = self._archive.array(number, "weights.f4", "<f4", len(terms))
        points, at, place = [], 0, 0
        for row in rows:
            vector: dict[str, Any] = {DENSE: dense[at].tolist()} if row.dense else {}
            if row.terms:
                vector[SPARSE] = _sparse(terms[place : place + row.terms], weights[place : place + row.terms])
            at, place = at + row.dense, place + row.terms
            identity = chunk_id(row.page.url_hash, row.page.generation, row.chunk.index)
            payload = row.payload(time.time())
            points.append(models.PointStruct.model_construct(id=identity, vector=vector, payload=payload))
        self._upsert(self._library.chunks_collection, points)
        return len(points)

    def _upsert(self, collection: str, points: Sequence[models.PointStruct]) -> None:
        for at in range(0, len(points), _BATCH):
            self._library.client.upsert(collection, points[at : at + _BATCH], wait=True)


def _length(given: Any) -> int:
    if not isinstance(given, int) or given < 0:
        raise ValueError(given)
    return given


def _sparse(terms: NDArray[Any], weights: NDArray[Any]) -> models.SparseVector:
    return models.SparseVector.model_construct(indices=terms.tolist(), values=weights.tolist())
