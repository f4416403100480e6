"""The file format of an exported library: a zip of JSON lines and plain arrays, with size limits.

    manifest.json            format, embedding model and counts
    000001.pages.jsonl       records of some pages, with
    000001.texts.u1          their texts, UTF-8, concatenated
    000002.versions.jsonl    earlier versions of those pages, with
    000002.texts.u1          their texts
    000003.chunks.jsonl      some of their chunks, with
    000003.dense.f4          dense vectors of the chunks that have one, little-endian float32, (n, d)
    000003.terms.u4          term numbers of all their sparse vectors, concatenated
    000003.weights.f4        the weights of these terms

Files are untrusted: there is no pickle, only one part at a time is loaded into memory, and parsed JSON is small. The
writer respects the limits of the reader.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from rag.errors import StoreError, os_fault
from rag.models.embedding import unpack_sentences
from rag.store.qdrant.records import chunk_payload
from rag.store.values import text_hash
from rag.text import lazy_regex, to_plain_line
from rag.types import Chunk, Page, PageSource, PageStatus, PageVersion
from rag.web.guard import is_web_address, printable
from rag.web.urls import split_url

MANIFEST = "manifest.json"
PART_BYTES = 64 * 1024 * 1024
"""Maximum unpacked size of one part."""
ROWS_BYTES = 8 * 1024 * 1024
"""Maximum size of a part's rows; parsed JSON takes up to thirty times as much memory."""
_LINE_BYTES = 256 * 1024
_MANIFEST_BYTES = 64 * 1024
_DIRECTORY_BYTES = 16 * 1024 * 1024  # of the zip's central directory, about 200 000 entries
_NAME = lazy_regex(r"(\d{6,9})\.(pages|versions|chunks)\.jsonl")
_END, _END64 = b"PK\x05\x06", b"PK\x06\x06"
_READ_ERRORS = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
_ZIP_DATE = (2020, 1, 1, 0, 0, 0)  # fixed, for reproducible files


class ArchiveWriter:
    """A writer to a temporary file next to `path`, which is renamed when the `with` block succeeds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.parent / f"{path.name}.draft"
        self._number = 0

    def __enter__(self) -> Self:
        try:
            if self._path.is_dir():
                raise StoreError("exchange_folder", name=str(self._path))
            self._zip = zipfile.ZipFile(self._draft, "w", allowZip64=True)
        except OSError as error:
            raise self._os_error(error) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._zip.close()
            if error is None:
                with self._draft.open("rb+") as file:
                    os.fsync(file.fileno())
                self._draft.replace(self._path)
        except OSError as fault:
            raise self._os_error(fault) from fault
        finally:
            with contextlib.suppress(OSError):
                self._draft.unlink(missing_ok=True)

    def write_rows(self, kind: str, rows: Iterable[dict[str, Any]], **arrays: NDArray[Any]) -> None:
        """Write the next part: its rows, and their arrays by file name (`dense_f4` for `dense.f4`)."""
        self._number += 1
        lines = []
        for row in rows:
            text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            lines.append(text.encode("utf-8", "surrogatepass") + b"\n")
            if len(lines[-1]) > _LINE_BYTES:
                raise self._size_error(str(row.get("url", kind))[:100])
        self._write(f"{self._number:06d}.{kind}.jsonl", b"".join(lines), zipfile.ZIP_DEFLATED, ROWS_BYTES)
        for name, array in arrays.items():
            compression = zipfile.ZIP_DEFLATED if array.dtype == np.uint8 else zipfile.ZIP_STORED
            self._write(f"{self._number:06d}.{name.replace('_', '.')}", array.tobytes(), compression)

    def write_manifest(self, data: dict[str, Any]) -> None:
        self._write(MANIFEST, json.dumps(data, indent=1).encode(), zipfile.ZIP_DEFLATED)

    def _write(self, name: str, data: bytes, compression: int, limit: int = PART_BYTES) -> None:
        if len(data) > limit:
            raise self._size_error(name)
        info = zipfile.ZipInfo(name, _ZIP_DATE)
        info.compress_type = compression
        try:
            self._zip.writestr(info, data, compresslevel=6)
        except OSError as error:
            raise self._os_error(error) from error

    def _size_error(self, part: str) -> StoreError:
        return StoreError("exchange_oversized", name=self._path.name, part=part)

    def _os_error(self, error: OSError) -> StoreError:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            return os_fault(self._path.parent, error)
        detail = error.strerror or type(error).__name__
        return StoreError("exchange_unwritable", name=str(self._path), detail=detail)


class ArchiveReader:
    """A reader of an untrusted file. Raises StoreError for an invalid one."""

    def __init__(self, path: Path, display_name: str = "") -> None:
        """`display_name` replaces the file's name in messages."""
        self.name = display_name or path.name
        self._path = path

    def __enter__(self) -> Self:
        try:
            if _directory_size(self._path) > _DIRECTORY_BYTES:
                raise self.damage_error("too many parts")
            self._zip = zipfile.ZipFile(self._path)
        except (OSError, zipfile.BadZipFile, ValueError, struct.error) as error:
            raise StoreError("exchange_unreadable", name=self.name) from error
        self._parts = {info.filename: info for info in self._zip.infolist()}
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read_manifest(self) -> dict[str, Any]:
        data = self._json(self._bytes(MANIFEST, _MANIFEST_BYTES)) if MANIFEST in self._parts else None
        if not isinstance(data, dict):
            raise StoreError("exchange_unreadable", name=self.name)
        return data

    def parts(self) -> list[tuple[str, str]]:
        """Return the number and kind of each part, in order."""
        parts = [(match[1], match[2]) for match in map(_NAME.fullmatch, self._parts) if match]
        return sorted(parts, key=lambda part: (int(part[0]), part[1]))

    def read_rows(self, number: str, kind: str) -> Iterator[dict[str, Any]]:
        for line in self._bytes(f"{number}.{kind}.jsonl", ROWS_BYTES).split(b"\n"):
            if not line:
                continue
            row = self._json(line) if len(line) <= _LINE_BYTES else None
            if not isinstance(row, dict):
                raise self.damage_error(f"part {number}")
            yield row

    def read_array(self, number: str, name: str, dtype: str, length: int) -> NDArray[Any]:
        size = length * np.dtype(dtype).itemsize
        data = self._bytes(f"{number}.{name}", PART_BYTES) if size else b""
        if len(data) != size:
            raise self.damage_error(f"part {number}")
        return np.frombuffer(data, dtype=dtype)

    def damage_error(self, detail: str) -> StoreError:
        return StoreError("exchange_damaged", name=self.name, detail=detail)

    def _bytes(self, name: str, limit: int) -> bytes:
        info = self._parts.get(name)
        if info is None or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.damage_error(f"{name} is missing")
        try:
            with self._zip.open(info) as file:
                data = file.read(limit + 1)
        except _READ_ERRORS as error:
            raise self.damage_error(name) from error
        if len(data) > limit:
            raise self.damage_error(f"{name} is too large")
        return data

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise self.damage_error("JSON") from error


def _directory_size(path: Path) -> int:
    """Return the size of the zip's central directory without reading it. Raises ValueError if it is not a zip."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - 70_000))
        tail = file.read()
    end = tail.rfind(_END)
    if end < 0:
        raise ValueError("not a zip")
    length = int(struct.unpack_from("<I", tail, end + 12)[0])
    end64 = tail.rfind(_END64)
    if end64 >= 0:
        length = max(length if length != 0xFFFFFFFF else 0, int(struct.unpack_from("<Q", tail, end64 + 40)[0]))
    return length


# Parsing of rows: raises ValueError, KeyError or TypeError for an invalid one

MAX_CHARACTERS = 2000  # characters of a heading, a title, a name
MAX_HEADINGS = 16  # headings of a path
MAX_INDEX = 4000  # characters of a packed sentence index; longer ones are omitted, and computed when needed
TEXT_FIELDS = frozenset(["title", "site", "author", "published", "modified", "etag", "last_modified", "claim"])
_HASH = lazy_regex(r"[0-9a-f]{32}")
_NUMBER_FIELDS = frozenset(["chunks", "characters", "failures", "version", "reading"])
_MAX_NUMBER = 2**31
_REQUIRED_FIELDS = frozenset(["url", "url_hash", "title", "text_hash", "generation", "added_at"])
_OPTIONAL_FIELDS = frozenset(field.name for field in fields(Page)) - _REQUIRED_FIELDS
_TIMES = frozenset(["updated_at", "checked_at"])
# Stricter than Python's parser: the engine does not sort times that it cannot parse.
_MOMENT = lazy_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


class AddressError(ValueError):
    """An invalid page address; the message is the address in printable form."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A parsed chunk: `dense` says whether it has a dense vector, `terms` is the length of its sparse vector."""

    page: Page
    chunk: Chunk
    content_hash: str
    excluded: bool
    dense: bool
    terms: int
    parent_id: str = ""
    sentences: str = ""

    def payload(self, written: float) -> dict[str, Any]:
        active, sentences = not self.excluded, self.sentences
        payload = chunk_payload(
            self.page, self.chunk, self.content_hash, active=active, written=written, sentences=sentences
        )
        payload["metadata"] |= {"left_out": True} if self.excluded else {}
        payload["metadata"] |= {"parent_id": self.parent_id} if self.chunk.parent else {}
        return payload


def parse_page(row: Mapping[str, Any], text: str) -> Page:
    values: dict[str, Any] = {"text": text}
    for field in fields(Page):
        if field.name == "text" or (field.name not in row and field.name in _OPTIONAL_FIELDS):
            continue
        value = row[field.name]
        if field.name == "aliases":
            _require(isinstance(value, list) and all(isinstance(alias, str) for alias in value))
            value = tuple(value)
        elif field.name in _NUMBER_FIELDS:
            _require(type(value) is int and 0 <= value < _MAX_NUMBER)
        else:
            _require(type(value) is str)
        values[field.name] = value
    page = Page(**{"language": "", "site": "", "source": "import", **values})
    page = replace(page, title=to_plain_line(page.title), author=to_plain_line(page.author))
    _require(bool(_HASH.fullmatch(page.url_hash)) and page.source in get_args(PageSource))
    _require(page.status in get_args(PageStatus) and page.version > 0 and bool(page.generation or not page.chunks))
    _require(_is_moment(page.added_at) and all(_is_moment(getattr(page, name) or page.added_at) for name in _TIMES))
    _require(page.text_hash == text_hash(text))
    return page


def check_address(page: Page) -> Page:
    """Return the page with only its valid aliases.

    Raises AddressError unless its address is a web address or, for a file or note, a file address.
    """
    if not (is_web_address(page.url) or (page.source in ("file", "note") and _is_file_address(page.url))):
        raise AddressError(printable(page.url))
    return replace(page, aliases=tuple(filter(_is_address, page.aliases)))


def parse_claim(row: Mapping[str, Any]) -> str:
    """Return the address that the page in a row claims; empty if it is invalid."""
    claim = row.get("claim", "")
    _require(isinstance(claim, str))
    return claim if _is_address(claim) else ""


def parse_version(row: Mapping[str, Any], text: str) -> PageVersion:
    number = row["number"]
    texts = {name: row[name] for name in ("url_hash", "title", "text_hash", "since", "until")}
    _require(type(number) is int and all(isinstance(value, str) for value in texts.values()))
    return PageVersion(number=number, text=text, **{**texts, "title": to_plain_line(texts["title"])})


def parse_chunk(row: Mapping[str, Any], pages: Mapping[str, tuple[Page, bool]]) -> ChunkRow:
    """Return the chunk in a row, a slice of one of `pages`."""
    page, excluded = pages[row["page"]]
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
    sentences = row.get("sentences", "")
    _require(isinstance(sentences, str) and (not sentences or unpack_sentences(sentences, chunk.text) is not None))
    return ChunkRow(page, chunk, content_hash, excluded, row["dense"], terms, parent_id, sentences)


def _is_address(text: str) -> bool:
    return is_web_address(text) or _is_file_address(text)


def _is_file_address(text: str) -> bool:
    """Return whether this is a file address in the form that imports create, with a percent-encoded name."""
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
