"""Dumps split into batches: stretches of JSONL files and web archives, and the pages of sitemaps.

A batch is found again by its place alone, so that whoever takes it in reads nothing else of the dump.
"""

from __future__ import annotations

import glob
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from rag.errors import ConfigError, IngestError
from rag.ingest.loader import Source
from rag.ingest.sources import RecordBounds, record_lines, record_sources, too_large, web_source
from rag.web.guard import is_web_address
from rag.web.media import byte_limit, parse_content_type

Kind = Literal["jsonl", "warc", "sitemap"]

_ENDINGS: dict[str, Kind] = {".jsonl": "jsonl", ".warc": "warc", ".warc.gz": "warc"}
_LARGEST = 64_000_000  # bytes of a JSONL file that are read at once
_PAGES = frozenset(("text/html", "application/xhtml+xml", "application/pdf"))


@dataclass(frozen=True, slots=True)
class Batch:
    """Bytes `start` to `end` of the file `place`, whose first record is the `first` one; or the sitemap at `place`."""

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
    """The batches of `inputs`: patterns of files, sitemaps' addresses, or .txt files with one of these per line.

    `size` is the number of records in each. Raises ConfigError for what cannot be read or matches nothing.
    """
    for given in inputs:
        if is_web_address(given):
            yield Batch("sitemap", given)
            continue
        places = sorted(glob.glob(str(Path(given).expanduser()), recursive=True))  # noqa: PTH207 - patterns may be absolute
        if not places:
            raise ConfigError("bulk_input", name=given)
        for place in places:
            try:
                yield from _batches_in(place, size)
            except OSError as error:
                raise ConfigError("file_unreadable", name=place) from error


def _batches_in(place: str, size: int) -> Iterator[Batch]:
    kind = next((kind for ending, kind in _ENDINGS.items() if place.lower().endswith(ending)), None)
    if kind == "jsonl":
        yield from _stretches(kind, place, _line_ends(place), size)
    elif kind == "warc":
        yield from _stretches(kind, place, _page_ends(place), size)
    elif place.lower().endswith(".txt"):
        lines = [line.strip() for line in Path(place).read_text("utf-8", "replace").splitlines()]
        yield from find_batches([line for line in lines if line and not line.startswith("#")], size)
    else:
        raise ConfigError("bulk_input", name=place)


def _stretches(kind: Kind, place: str, ends: Iterable[int], size: int) -> Iterator[Batch]:
    """Batches of `size` records, or fewer where these are large; `ends` are the bytes where the records end."""
    full = str(Path(place).absolute())
    start = end = last = 0
    first = 1
    for last, end in enumerate(ends, 1):
        if last - first + 1 == size or end - start >= _LARGEST:
            yield Batch(kind, full, start, end, first, last)
            start, first = end, last + 1
    if end > start:
        yield Batch(kind, full, start, end, first, last)


def _line_ends(place: str) -> Iterator[int]:
    with Path(place).open("rb") as file:
        end = 0
        for line in file:
            end += len(line)
            yield end


def _page_ends(place: str) -> Iterator[int]:
    """Where the records that are pages end."""
    with Path(place).open("rb") as file, _archive(file, place) as records:
        for record in records:
            if _is_page(record):
                records.read_to_end(record)
                yield records.offset  # where the next one begins


@contextmanager
def _archive(file: Any, place: str) -> Iterator[Any]:
    """warcio's records of a web archive. Raises OSError for a broken file."""
    try:
        from warcio.archiveiterator import ArchiveIterator
        from warcio.exceptions import ArchiveLoadFailed
    except ImportError as error:
        raise ConfigError("bulk_package", name=place) from error
    try:
        yield ArchiveIterator(file)
    except (ArchiveLoadFailed, zlib.error) as error:
        raise OSError(str(error)) from error


def _is_page(record: Any) -> bool:
    if record.format != "warc":  # what is no archive at all is taken for an old format
        raise OSError("no WARC record")
    if record.rec_type != "response" or record.http_headers is None or record.http_headers.get_statuscode() != "200":
        return False
    essence, _ = parse_content_type(record.http_headers.get_header("Content-Type") or "")
    return essence in _PAGES


def sources_of(batch: Batch, bounds: RecordBounds, find_pages: Callable[[str], list[str]]) -> Sequence[Source]:
    """The pages of a batch; `find_pages` gives the addresses in a sitemap. Raises IngestError if it cannot be read."""
    if batch.kind == "sitemap":
        return [web_source(url) for url in find_pages(batch.place)]
    try:
        with Path(batch.place).open("rb") as file:
            file.seek(batch.start)
            if batch.kind == "warc":
                return list(_archived(file, batch))
            lines = record_lines(BytesIO(file.read(batch.end - batch.start)), bounds)
            return list(record_sources(lines, Path(batch.place).name, bounds, first=batch.first))
    except OSError as error:
        raise IngestError("file_unreadable", name=batch.place) from error


def _archived(file: Any, batch: Batch) -> Iterator[Source]:
    with _archive(file, batch.place) as records:
        for record in records:
            if records.offset >= batch.end:
                return
            if _is_page(record):
                yield _archived_page(record)


def _archived_page(record: Any) -> Source:
    url = record.rec_headers.get_header("WARC-Target-URI")
    content_type = record.http_headers.get_header("Content-Type")
    limit = byte_limit(parse_content_type(content_type)[0])
    body = record.content_stream().read(limit + 1)
    if len(body) > limit:
        return Source(url, url, "import", broken=too_large(url, limit))
    return Source(url, url, "import", data=body, content_type=content_type)
