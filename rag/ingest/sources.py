"""Inputs of an import: URLs, files, and pages whose text is given in the rows of a JSONL file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Final
from unicodedata import normalize
from urllib.parse import quote

from rag.errors import IngestError
from rag.ingest.archives import Member, folder_members, zip_members
from rag.patterns import lazy_regex
from rag.text import replace_surrogates
from rag.types import PageSource
from rag.web.guard import MAX_LENGTH, is_web_address, printable
from rag.web.media import EXTENSION_TYPES, MEGABYTE, PICTURE, SLOW_TYPES

MAX_FILE_BYTES = 5 * MEGABYTE
MAX_DOCUMENT_BYTES = 25 * MEGABYTE
MAX_ARCHIVE_BYTES = 100 * MEGABYTE
_DOCUMENT_EXTENSIONS = tuple(ending for ending, kind in EXTENSION_TYPES.items() if kind in SLOW_TYPES)
FILE_TYPES = (*EXTENSION_TYPES, ".jsonl")
_MEMBER_TYPES = tuple(ending for ending in FILE_TYPES if EXTENSION_TYPES.get(ending) != PICTURE)
"""File types read from folders and archives, without images, which usually belong to pages there."""
_ARCHIVE = ".zip"
_LIMITS = {
    ending: MAX_DOCUMENT_BYTES if ending in _DOCUMENT_EXTENSIONS else MAX_FILE_BYTES for ending in ("", *FILE_TYPES)
}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_NAME_FIELDS = ("title", "lang")
_TEXT_FIELDS = ("text", "html", "markdown")
_LINE_END = lazy_regex(r"\r\n?|\n")
_ESCAPE_LENGTH = 6  # characters in a line for a byte of text: \u0041
_OTHER_FIELDS = 65_536  # characters for everything but the text


@dataclass(frozen=True, slots=True)
class Source:
    """An input to import. `name` is the one that the user gave it, `url` identifies it.

    With `data` or `record` nothing is fetched; `broken` is the error of a source that cannot be read. `is_upload`
    marks a file identified only by its name. `content_type` is the header that a server sent with `data`.
    """

    name: str
    url: str
    kind: PageSource
    data: bytes | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    broken: IngestError | None = None
    is_upload: bool = False
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """Limits on a JSONL file: `size` of each record's text in bytes of UTF-8, and number of `records`."""

    size: int = 1 * MEGABYTE
    records: int = 100_000

    @property
    def line(self) -> int:
        """The maximum number of characters of a line."""
        return _ESCAPE_LENGTH * self.size + _OTHER_FIELDS


BOUNDS: Final = RecordBounds()


def web_source(url: str) -> Source:
    return Source(url, url, "web")


def file_sources(name: str, data: bytes, url: str = "", bounds: RecordBounds = BOUNDS) -> list[Source]:
    """Return the sources in an uploaded or local file: the files of a .zip, the rows of a .jsonl, or the file itself.

    `url` is the file's origin; without it, the file is identified by its name, as `file:///name`.
    """
    return list(sources_in(name, data, url, bounds))


def sources_in(name: str, data: bytes, url: str = "", bounds: RecordBounds = BOUNDS) -> Iterator[Source]:
    """Yield the sources of `file_sources` one at a time."""
    name = normalize("NFC", replace_surrogates(name)).strip()  # macOS decomposes letters in its file names
    address = url or f"file:///{quote(name.replace(chr(92), '/').lstrip('/'))}"
    for source in _sources_at(address, name, data, bounds):
        yield replace(source, is_upload=not url) if source.kind == "file" else source


def _sources_at(address: str, name: str, data: bytes, bounds: RecordBounds) -> Iterator[Source]:
    lower = name.lower()
    if lower.endswith(_ARCHIVE):
        yield from _archive_sources(name, data, address, bounds)
    elif lower.endswith(".jsonl"):
        yield from record_sources(record_lines(BytesIO(data), bounds), name, bounds)
    elif not lower.endswith(FILE_TYPES):
        types = ", ".join((*FILE_TYPES, _ARCHIVE))
        yield Source(name, address, "file", broken=IngestError("file_type", name=name, types=types))
    elif len(data) > (limit := file_limit(name)):
        yield Source(name, address, "file", broken=make_size_error(name, limit))
    else:
        yield Source(name, address, "file", data=data)


def path_sources(path: str, bounds: RecordBounds = BOUNDS) -> list[Source]:
    """Return the sources in a file or folder on this machine, identified by their full paths."""
    full, path = full_path(path).absolute(), replace_surrogates(path)
    address = Path(normalize("NFC", str(full))).as_uri()
    try:
        if full.is_dir():
            return [
                source
                for member in folder_members(full, _MEMBER_TYPES, _LIMITS)
                for source in _member_sources(member, path, address, bounds)
            ]
        if full.exists() and not full.is_file():
            raise IngestError("file_irregular", name=path)  # opening a pipe would wait for its writer
        if full.stat().st_size > (limit := file_limit(path)):
            return [Source(path, address, "file", broken=make_size_error(path, limit))]
        return file_sources(path, full.read_bytes(), "" if path.endswith(".jsonl") else address, bounds)
    except (OSError, ValueError):  # ValueError for an impossible file name
        return [Source(path, address, "file", broken=IngestError("file_unreadable", name=path))]
    except IngestError as error:
        return [Source(path, address, "file", broken=error)]


def full_path(path: str) -> Path:
    """Expand `~` or `~user` at the start of `path`; return `path` unchanged if that fails."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def unique_sources(sources: Iterable[Source]) -> Iterator[Source]:
    """Yield `sources`, with distinct URLs for files that have the same name but different content.

    The second is `file:///name?2`, and so on; a file given twice has one URL.
    """
    by_url: dict[str, list[bytes]] = {}
    for source in sources:
        if source.data is not None and source.url.startswith("file:"):
            digests, digest = by_url.setdefault(source.url, []), sha256(source.data).digest()
            if digest not in digests:
                digests.append(digest)
            number = digests.index(digest) + 1
            source = replace(source, url=source.url if number == 1 else f"{source.url}?{number}")
        yield source


def file_limit(name: str) -> int:
    """Return the maximum size in bytes of a file with this name; a .jsonl has many pages and no limit."""
    lower = name.lower()
    if lower.endswith(".jsonl"):
        return sys.maxsize
    if lower.endswith(_ARCHIVE):
        return MAX_ARCHIVE_BYTES
    return MAX_DOCUMENT_BYTES if lower.endswith(_DOCUMENT_EXTENSIONS) else MAX_FILE_BYTES


def _archive_sources(name: str, data: bytes, address: str, bounds: RecordBounds) -> Iterator[Source]:
    if len(data) > MAX_ARCHIVE_BYTES:
        yield Source(name, address, "file", broken=make_size_error(name, MAX_ARCHIVE_BYTES))
        return
    try:
        for member in zip_members(name, data, _MEMBER_TYPES, _LIMITS):
            yield from _member_sources(member, name, address, bounds)
    except IngestError as error:
        yield Source(name, address, "file", broken=error)


def _member_sources(member: Member, name: str, address: str, bounds: RecordBounds) -> Iterator[Source]:
    """Yield the sources in a file of an archive or folder, whose URL is the container's plus the file's path."""
    if not member.path:
        yield Source(name, address, "file", broken=member.broken)
        return
    path = normalize("NFC", member.path)
    full = f"{name.rstrip('/')}/{replace_surrogates(path)}"
    own = f"{address}/{quote(path, errors='surrogateescape')}"
    if member.broken:
        yield Source(full, own, "file", broken=member.broken)
    else:
        yield from _sources_at(own, full, member.data, bounds)


def make_size_error(name: str, limit: int) -> IngestError:
    return IngestError("file_too_large", name=name, limit=limit // MEGABYTE)


def example_sources() -> list[Source]:
    """Return the sample pages, with their URLs from examples/pages.json."""
    rows: list[Mapping[str, Any]] = json.loads((EXAMPLES / "pages.json").read_text(encoding="utf-8"))
    return [
        source
        for row in rows
        for source in file_sources(row["file"], (EXAMPLES / row["file"]).read_bytes(), row["url"])
    ]


def text_lines(text: str) -> list[str]:
    """Split text into lines, but unlike `str.splitlines` not at U+2028 and the like, which JSON may contain."""
    return _LINE_END.split(text)


def record_lines(file: BinaryIO, bounds: RecordBounds) -> Iterator[str]:
    """Yield the lines of a file; a line longer than `bounds.line` is truncated to one character more than that."""
    text = TextIOWrapper(file, "utf-8-sig", "replace", newline=None)
    while line := text.readline(bounds.line + 1):
        yield line.removesuffix("\n")
        while len(line) > bounds.line and not line.endswith("\n"):
            line = text.readline(bounds.line + 1)


def record_sources(
    lines: Iterable[str], name: str, bounds: RecordBounds = BOUNDS, *, first: int = 1
) -> Iterator[Source]:
    """Yield a source for each line {"url", "title", "lang"?, "text" | "html" | "markdown"}, with an error if broken.

    Records beyond the limit become one broken source. `first` is the number of the first line.
    """
    count = 0
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        count += 1
        if count > bounds.records:
            yield _make_broken("records_left_out", name, number, limit=f"{bounds.records:,}")
            return
        yield _parse_line(line, name, number, bounds)


def _parse_line(line: str, name: str, number: int, bounds: RecordBounds) -> Source:
    record = _parse_record(line) if len(line) <= bounds.line else {}
    if record is None:
        return _make_broken("record_broken", name, number)
    if not record or any(len(record[key].encode()) > bounds.size for key in _TEXT_FIELDS if key in record):
        return _make_broken("record_too_large", name, number, limit=f"{bounds.size / MEGABYTE:g}")
    if not is_web_address(record["url"]):
        return _make_broken("record_address", name, number, url=printable(record["url"]), longest=f"{MAX_LENGTH:,}")
    return Source(record["url"], record["url"], "import", record=record)


def _make_broken(code: str, name: str, number: int, **params: str) -> Source:
    return Source(f"{name}:{number}", "", "import", broken=IngestError(code, name=name, line=number, **params))


def _parse_record(line: str) -> Mapping[str, Any] | None:
    """Return the supported fields of a line's JSON object, without lone surrogates; None if it is not a page."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("url"), str) or not record["url"].strip():
        return None
    texts = [record[key] for key in _TEXT_FIELDS if key in record]
    has_names = all(isinstance(record.get(key, ""), str | None) for key in _NAME_FIELDS)
    if not has_names or not texts or not all(isinstance(text, str) for text in texts):
        return None
    keys = ("url", *_NAME_FIELDS, *_TEXT_FIELDS)
    return {key: replace_surrogates(record[key]) for key in keys if isinstance(record.get(key), str)}
