"""Rows of an exported file: written from a library's records, versions and chunks, and parsed again.

The file is untrusted, so parsing raises ValueError for an invalid row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar, get_args

import numpy as np
from qdrant_client import models

from rag.store.duplicates import merge_aliases
from rag.store.qdrant.archive import ROWS_BYTES, ArchiveWriter
from rag.store.qdrant.library import Library
from rag.store.qdrant.records import SPARSE, chunk_payload, is_removed, match_any, page_from, page_id, walk
from rag.store.qdrant.search import dense_vector
from rag.store.values import text_hash
from rag.text import to_plain_line
from rag.types import Chunk, Page, PageSource, PageStatus, PageVersion
from rag.web.guard import is_web_address, printable
from rag.web.url_key import split_url

T = TypeVar("T")

_TEXT_BYTES = 4_000_000
_MAX_ROWS = 1000  # per part
_HEADING_BYTES = ROWS_BYTES // 2  # of all headings of a part
_MAX_CHARACTERS = 2000  # characters of a heading, a title, a name
_MAX_HEADINGS = 16  # headings of a path
_TEXT_FIELDS = frozenset(["title", "site", "author", "published", "modified", "etag", "last_modified", "claim"])


def export_pages(library: Library, hashes: Sequence[str], archive: ArchiveWriter, counts: dict[str, int]) -> None:
    """Write some pages with their versions and chunks, and add their numbers to `counts`."""
    records = library.client.retrieve(library.pages_collection, [page_id(key) for key in hashes], with_payload=True)
    payloads = {page_from(r.payload or {}).url_hash: r.payload or {} for r in records if not is_removed(r)}
    for group in _group_by_size(list(payloads.values())):
        _write_texts(archive, "pages", [_strip_page(payload) for payload in group])
        counts["pages"] += len(group)
        pages = {payload["url_hash"]: page_from(payload) for payload in group}
        only = models.Filter(must=[match_any("url_hash", list(pages))])
        points = (r.payload or {} for r in walk(library.client, library._versions.collection, only))
        versions = [payload for payload in points if payload["number"] < pages[payload["url_hash"]].version]
        for part in _group_by_size(versions):
            _write_texts(archive, "versions", [_omit(payload, "settled", "written") for payload in part])
        counts["versions"] += len(versions)
        counts["chunks"] += _export_chunks(library, pages, archive)


def _export_chunks(library: Library, pages: Mapping[str, Page], archive: ArchiveWriter) -> int:
    generations = [page.generation for page in pages.values()]
    only = models.Filter(
        must=[match_any("metadata.url_hash", list(pages)), match_any("metadata.generation", generations)]
    )
    points = walk(library.client, library.chunks_collection, only, vectors=True)
    count = 0
    for part in _group_by_headings(points):
        _write_chunks(archive, part, library.dimension)
        count += len(part)
    return count


def _group_by_headings(points: Iterable[models.Record]) -> Iterator[list[models.Record]]:
    """Group chunks so that their rows fit a part; only headings can make a row long."""
    return _group(points, lambda point: sum(4 * len(heading) for heading in _headings(point)), _HEADING_BYTES)


def _group_by_size(payloads: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Group payloads so that their texts fit a part."""
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
    """Return the headings above a chunk, cut to the limits of the reader."""
    section = (point.payload or {})["metadata"]["section"]
    return [heading[:_MAX_CHARACTERS] for heading in section[:_MAX_HEADINGS]]


def _strip_page(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page's record without derived fields, with overlong values cut."""
    slim = _omit(payload, "alias_hashes", "claim_hashes", "settled", "rev", "recent")
    texts = {name: str(slim[name])[:_MAX_CHARACTERS] for name in _TEXT_FIELDS & slim.keys()}
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
        row |= {"header": data["header"][:_MAX_CHARACTERS]} if data.get("header") else {}
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


_HASH = re.compile(r"[0-9a-f]{32}")
_NUMBER_FIELDS = frozenset(["chunks", "characters", "failures", "version", "reading"])
_MAX_NUMBER = 2**31
_REQUIRED_FIELDS = frozenset(["url", "url_hash", "title", "text_hash", "generation", "added_at"])
_OPTIONAL_FIELDS = frozenset(field.name for field in fields(Page)) - _REQUIRED_FIELDS
_TIMES = frozenset(["updated_at", "checked_at"])
# Stricter than Python's parser: the engine does not sort times that it cannot parse.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


class AddressError(ValueError):
    """An invalid page address; the message is the address in printable form."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A parsed chunk: `dense` says whether it has a vector, `terms` is the length of its sparse one."""

    page: Page
    chunk: Chunk
    content_hash: str
    left_out: bool
    dense: bool
    terms: int
    parent_id: str = ""

    def payload(self, written: float) -> dict[str, Any]:
        active = not self.left_out
        payload = chunk_payload(self.page, self.chunk, self.content_hash, active=active, written=written)
        payload["metadata"] |= {"left_out": True} if self.left_out else {}
        payload["metadata"] |= {"parent_id": self.parent_id} if self.chunk.parent else {}
        return payload


def parse_page(row: Mapping[str, Any], text: str) -> Page:
    """Return the page of a row, with its text."""
    values: dict[str, Any] = {"text": text}
    for field in fields(Page):
        if field.name == "text" or (field.name not in row and field.name in _OPTIONAL_FIELDS):
            continue
        values[field.name] = _check_value(field.name, row[field.name])
    page = Page(**{"language": "", "site": "", "source": "import", **values})
    page = replace(page, title=to_plain_line(page.title), author=to_plain_line(page.author))
    _require(bool(_HASH.fullmatch(page.url_hash)) and page.source in get_args(PageSource))
    _require(page.status in get_args(PageStatus) and page.version > 0 and bool(page.generation or not page.chunks))
    _require(_is_moment(page.added_at) and all(_is_moment(getattr(page, name) or page.added_at) for name in _TIMES))
    _require(page.text_hash == text_hash(text))
    return page


def check_address(page: Page) -> Page:
    """Return the page with its valid aliases. Its own address must pass the check for rows of JSONL, or be a file's.

    Raises AddressError.
    """
    if not (is_web_address(page.url) or (page.source in ("file", "note") and _is_file_address(page.url))):
        raise AddressError(printable(page.url))
    return replace(page, aliases=tuple(filter(_is_address, page.aliases)))


def parse_claim(row: Mapping[str, Any]) -> str:
    """Return the address that the page of a row claims; empty if it is invalid."""
    claim = row.get("claim", "")
    _require(isinstance(claim, str))
    return claim if _is_address(claim) else ""


def parse_version(row: Mapping[str, Any], text: str) -> PageVersion:
    """Return the version of a row, with its text."""
    number = row["number"]
    _require(isinstance(number, int) and not isinstance(number, bool))
    names = ("url_hash", "title", "text_hash", "since", "until")
    texts = {name: row[name] for name in names}
    _require(all(isinstance(value, str) for value in texts.values()))
    return PageVersion(number=number, text=text, **{**texts, "title": to_plain_line(texts["title"])})


def parse_chunk(row: Mapping[str, Any], pages: Mapping[str, tuple[Page, bool]]) -> ChunkRow:
    """Return the chunk of a row, a slice of one of `pages`."""
    page, left_out = pages[row["page"]]
    start, end, index, terms = row["start"], row["end"], row["index"], row["terms"]
    _require(all(type(value) is int for value in (start, end, index, terms)) and type(row["dense"]) is bool)
    _require(0 <= start <= end <= len(page.text) and 0 <= index < page.chunks and 0 <= terms <= 1_000_000)
    section, content_hash, header = row["section"], row["hash"], row.get("header", "")
    _require(isinstance(content_hash, str) and isinstance(header, str))
    _require(isinstance(section, list) and all(isinstance(heading, str) for heading in section))
    parent, parent_id = None, ""
    if row.get("parent") is not None:
        first, last, parent_id = row["parent"]
        _require(type(first) is int and type(last) is int and isinstance(parent_id, str))
        _require(0 <= first <= start and end <= last <= len(page.text))
        parent = (first, last)
    chunk = Chunk(index, page.text[start:end], start, end, tuple(section), header, parent)
    return ChunkRow(page, chunk, content_hash, left_out, row["dense"], terms, parent_id)


def _check_value(name: str, value: Any) -> Any:
    if name == "aliases":
        _require(isinstance(value, list) and all(isinstance(alias, str) for alias in value))
        return tuple(value)
    _require(type(value) is (int if name in _NUMBER_FIELDS else str))
    _require(name not in _NUMBER_FIELDS or 0 <= value < _MAX_NUMBER)
    return value


def _is_address(text: str) -> bool:
    return is_web_address(text) or _is_file_address(text)


def _is_file_address(text: str) -> bool:
    """Return whether this is a file address as imports make it, with a percent-encoded name."""
    return split_url(text).scheme == "file" and text.isascii() and text.isprintable() and " " not in text


def _is_moment(text: str) -> bool:
    """Return whether this is a stored time: ISO 8601 with a time zone."""
    if not _MOMENT.fullmatch(text):
        return False
    datetime.fromisoformat(text)  # ValueError for the 31st of February
    return True


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("a value that cannot be")
