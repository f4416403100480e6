"""Splitting of dumps into batches: byte ranges of JSONL files and web archives, and sitemaps.

A process can import a batch without reading the rest of the dump.
"""

from __future__ import annotations

import glob
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from rag.errors import ConfigError, IngestError
from rag.ingest.archives import make_size_error
from rag.ingest.sources import RecordBounds, Source, record_lines, record_sources, web_source
from rag.web.guard import is_web_address
from rag.web.media import byte_limit, parse_content_type

Kind = Literal["jsonl", "warc", "sitemap"]

_ENDINGS: dict[str, Kind] = {".jsonl": "jsonl", ".warc": "warc", ".warc.gz": "warc"}
_MAX_BATCH_BYTES = 64_000_000  # maximum bytes of a batch
_PAGE_TYPES = frozenset(("text/html", "application/xhtml+xml", "application/pdf"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Bytes `start` to `end` of the file `place`, which are records `first` to `last`, or the sitemap at `place`."""

    kind: Kind
    place: str
    start: int = 0
    end: int = 0
    first: int = 1
    last: int = 1

    @property
    def name(self) -> str:
        return self.place if self.kind == "sitemap" else f"{Path(self.place).name}: {self.first:,}–{self.last:,}"


def find_batches(inputs: Iterable[str], size: int) -> Iterator[Batch]:
    """Yield the batches of `inputs`: file patterns, sitemap URLs, or .txt files with one of these per line.

    `size` is the number of records per batch. Raises ConfigError for input that is unreadable or matches no file.
    """
    for input_ in inputs:
        if is_web_address(input_):
            yield Batch("sitemap", input_)
            continue
        paths = sorted(glob.glob(str(Path(input_).expanduser()), recursive=True))  # noqa: PTH207 - patterns may be absolute
        if not paths:
            raise ConfigError("bulk_input", name=input_)
        for path in paths:
            try:
                yield from _batches_in(path, size)
            except OSError as error:
                raise ConfigError("file_unreadable", name=path) from error


def _batches_in(path: str, size: int) -> Iterator[Batch]:
    kind = next((kind for ending, kind in _ENDINGS.items() if path.lower().endswith(ending)), None)
    if kind == "jsonl":
        with Path(path).open("rb") as file:
            yield from _split(kind, path, accumulate(map(len, file)), size)
    elif kind == "warc":
        yield from _split(kind, path, _page_ends(path), size)
    elif path.lower().endswith(".txt"):
        lines = [line.strip() for line in Path(path).read_text("utf-8", "replace").splitlines()]
        yield from find_batches([line for line in lines if line and not line.startswith("#")], size)
    else:
        raise ConfigError("bulk_input", name=path)


def _split(kind: Kind, path: str, ends: Iterable[int], size: int) -> Iterator[Batch]:
    """Yield batches of `size` records, or fewer if they are large; `ends` are the end offsets of records in bytes."""
    full_path = str(Path(path).absolute())
    start = end = last = 0
    first = 1
    for last, end in enumerate(ends, 1):
        if last - first + 1 == size or end - start >= _MAX_BATCH_BYTES:
            yield Batch(kind, full_path, start, end, first, last)
            start, first = end, last + 1
    if end > start:
        yield Batch(kind, full_path, start, end, first, last)


def _page_ends(path: str) -> Iterator[int]:
    """Yield the end offsets of page records in bytes."""
    with Path(path).open("rb") as file, _open_archive(file, path) as records:
        for record in records:
            if _is_page(record):
                records.read_to_end(record)
                yield records.offset  # the start of the next record


@contextmanager
def _open_archive(file: Any, path: str) -> Iterator[Any]:
    """Open a web archive as warcio's records. Raises OSError for a broken file."""
    try:
        from warcio.archiveiterator import ArchiveIterator
        from warcio.exceptions import ArchiveLoadFailed
    except ImportError as error:
        raise ConfigError("bulk_package", name=path) from error
    try:
        yield ArchiveIterator(file)
    except (ArchiveLoadFailed, zlib.error) as error:
        raise OSError(str(error)) from error


def _is_page(record: Any) -> bool:
    if record.format != "warc":  # warcio takes any other file for ARC, the older format
        raise OSError("no WARC record")
    if record.rec_type != "response" or record.http_headers is None or record.http_headers.get_statuscode() != "200":
        return False
    essence, _ = parse_content_type(record.http_headers.get_header("Content-Type") or "")
    return essence in _PAGE_TYPES


def sources_of(batch: Batch, bounds: RecordBounds, find_pages: Callable[[str], list[str]]) -> Sequence[Source]:
    """Return the pages of a batch; `find_pages` reads a sitemap. Raises IngestError if it can't be read."""
    if batch.kind == "sitemap":
        return [web_source(url) for url in find_pages(batch.place)]
    try:
        with Path(batch.place).open("rb") as file:
            file.seek(batch.start)
            if batch.kind == "warc":
                return list(_archived_sources(file, batch))
            lines = record_lines(BytesIO(file.read(batch.end - batch.start)), bounds)
            return list(record_sources(lines, Path(batch.place).name, bounds, first=batch.first))
    except OSError as error:
        raise IngestError("file_unreadable", name=batch.place) from error


def _archived_sources(file: Any, batch: Batch) -> Iterator[Source]:
    with _open_archive(file, batch.place) as records:
        for record in records:
            if records.offset >= batch.end:
                return
            if not _is_page(record):
                continue
            url = record.rec_headers.get_header("WARC-Target-URI")
            content_type = record.http_headers.get_header("Content-Type")
            limit = byte_limit(parse_content_type(content_type)[0])
            body = record.content_stream().read(limit + 1)
            if len(body) > limit:
                yield Source(url, url, "import", broken=make_size_error(url, limit))
            else:
                yield Source(url, url, "import", data=body, content_type=content_type)
