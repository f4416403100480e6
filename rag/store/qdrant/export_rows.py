"""Pages on their way out: a library's records, versions and chunks as the parts of a file.

What a reader refuses is not written: rows and parts keep within the bounds of `rag.store.qdrant.archive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from qdrant_client import models

from rag.store.duplicates import joined_aliases
from rag.store.qdrant.archive import ROWS_BYTES, ArchiveWriter
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import SPARSE, is_removed, match_any, page_from, page_id, walk
from rag.store.qdrant.search import dense_of
from rag.types import Page

T = TypeVar("T")

_TEXT_BYTES = 4_000_000
_ROWS = 1000  # of a part
_HEADING_BYTES = ROWS_BYTES // 2  # of all headings in a part
_LONGEST = 2000  # characters of a heading, a title, a name
_DEEPEST = 16  # headings of a path
_WORDS = frozenset(["title", "site", "author", "published", "modified", "etag", "last_modified", "claim"])


def export_pages(library: Library, hashes: Sequence[str], archive: ArchiveWriter, counts: dict[str, int]) -> None:
    """Write some pages with their versions and chunks, and add to `counts` how many of each there were."""
    records = library.client.retrieve(library.pages_collection, [page_id(one) for one in hashes], with_payload=True)
    payloads = {page_from(r.payload or {}).url_hash: r.payload or {} for r in records if not is_removed(r)}
    for group in _by_size(list(payloads.values())):
        _texts_part(archive, "pages", [_slim_page(one) for one in group])
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
    for part in _by_headings(points):
        _chunks_part(archive, part, library.dimension)
        count += len(part)
    return count


def _by_headings(points: Iterable[models.Record]) -> Iterator[list[models.Record]]:
    """The chunks in groups whose rows fit a part: their headings are what may be long in them."""
    return _grouped(points, lambda point: sum(4 * len(heading) for heading in _section(point)), _HEADING_BYTES)


def _by_size(payloads: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The payloads in groups whose texts fit a part."""
    return _grouped(payloads, lambda one: 3 * len(one["text"]), _TEXT_BYTES)


def _grouped(rows: Iterable[T], size_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    group: list[T] = []
    size = 0
    for row in rows:
        length = size_of(row)
        if group and (size + length > limit or len(group) == _ROWS):
            yield group
            group, size = [], 0
        group.append(row)
        size += length
    if group:
        yield group


def _section(point: models.Record) -> list[str]:
    """The headings above a chunk, as far as a reader of them would go."""
    section = (point.payload or {})["metadata"]["section"]
    return [heading[:_LONGEST] for heading in section[:_DEEPEST]]


def _slim_page(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A page's record without what is made from the rest of it, and with nothing in it that is too long to be true."""
    slim = _plain(payload, "alias_hashes", "claim_hashes", "settled", "rev", "recent")
    words = {name: str(slim[name])[:_LONGEST] for name in _WORDS & slim.keys()}
    return {**slim, **words, "aliases": list(joined_aliases((), payload.get("aliases", ())))}


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
        row |= {"section": _section(point), "hash": data["content_hash"], "parent": parent}
        row |= {"header": data["header"][:_LONGEST]} if data.get("header") else {}
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
