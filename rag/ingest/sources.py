"""What a person can hand in: an address, a file, or pages that are text already: the rows of a JSONL file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Final
from unicodedata import normalize
from urllib.parse import quote

from rag.errors import IngestError
from rag.ingest.archives import Member, folder_members, zip_members
from rag.ingest.loader import Source
from rag.text import without_surrogates
from rag.web.guard import MAX_LENGTH, is_web_address, shown
from rag.web.media import ENDINGS, FILES, PICTURE

__all__ = ["Source", "file_sources", "path_sources", "sources_in", "unique_sources", "web_source"]

MAX_FILE_BYTES = 5_000_000
MAX_DOCUMENT_BYTES = 25_000_000
MAX_ARCHIVE_BYTES = 100_000_000
_DOCUMENTS = tuple(ending for ending, kind in ENDINGS.items() if kind in FILES)
FILE_TYPES = (*ENDINGS, ".jsonl")
_TOGETHER = tuple(ending for ending in FILE_TYPES if ENDINGS.get(ending) != PICTURE)
"""What is taken from folders and archives: the pictures there belong to pages."""
_ARCHIVE = ".zip"
_LIMITS = {ending: MAX_DOCUMENT_BYTES if ending in _DOCUMENTS else MAX_FILE_BYTES for ending in ("", *FILE_TYPES)}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_NAMES = ("title", "lang")
_TEXTS = ("text", "html", "markdown")
_LINE_END = re.compile(r"\r\n?|\n")
_ESCAPED = 6  # characters of a line for a byte of text: \u0041
_BESIDE = 65_536  # characters for all that is not the text


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """How much is read of a JSONL file: of each record's text in bytes of UTF-8, and records."""

    size: int = 1_000_000
    records: int = 100_000

    @property
    def line(self) -> int:
        """Characters that a line may have."""
        return _ESCAPED * self.size + _BESIDE


BOUNDS: Final = RecordBounds()


def web_source(url: str) -> Source:
    return Source(url, url, "web")


def file_sources(name: str, data: bytes, url: str = "", bounds: RecordBounds = BOUNDS) -> list[Source]:
    """The sources in an uploaded or local file: the files of a .zip, the rows of a .jsonl, else the file itself.

    `url` is where the file came from; without one it is known by its name, as `file:///name`.
    """
    return list(sources_in(name, data, url, bounds))


def sources_in(name: str, data: bytes, url: str = "", bounds: RecordBounds = BOUNDS) -> Iterator[Source]:
    """The same one by one, as they are asked for."""
    name = normalize("NFC", without_surrogates(name)).strip()  # macOS takes letters apart in its names
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
        yield Source(name, address, "file", broken=too_large(name, limit))
    else:
        yield Source(name, address, "file", data=data)


def path_sources(path: str, bounds: RecordBounds = BOUNDS) -> list[Source]:
    """The sources in a file or folder on this machine, known by their full paths."""
    full, path = full_path(path).absolute(), without_surrogates(path)
    address = Path(normalize("NFC", str(full))).as_uri()
    try:
        if full.is_dir():
            return [
                source
                for member in folder_members(full, _TOGETHER, _LIMITS)
                for source in _member_sources(member, path, address, bounds)
            ]
        if full.exists() and not full.is_file():
            raise IngestError("file_irregular", name=path)  # to open a pipe is to wait for whoever writes to it
        if full.stat().st_size > (limit := file_limit(path)):
            return [Source(path, address, "file", broken=too_large(path, limit))]
        return file_sources(path, full.read_bytes(), "" if path.endswith(".jsonl") else address, bounds)
    except (OSError, ValueError):  # ValueError for a name that no file can have
        return [Source(path, address, "file", broken=IngestError("file_unreadable", name=path))]
    except IngestError as error:
        return [Source(path, address, "file", broken=error)]


def full_path(path: str) -> Path:
    """`path` with the home folder that it may begin with; a name that begins like one is left as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def unique_sources(sources: Iterable[Source]) -> Iterator[Source]:
    """The same sources, but each with an address of its own where files of one name differ in what they hold.

    The second is `file:///name?2`, and so on in their order; the same file given twice keeps one address.
    """
    given: dict[str, list[bytes]] = {}
    for source in sources:
        if source.data is not None and source.url.startswith("file:"):
            texts, digest = given.setdefault(source.url, []), sha256(source.data).digest()
            if digest not in texts:
                texts.append(digest)
            number = texts.index(digest) + 1
            source = replace(source, url=source.url if number == 1 else f"{source.url}?{number}")
        yield source


def file_limit(name: str) -> int:
    """The largest file in bytes under this name; a .jsonl holds many pages and has no limit of its own."""
    lower = name.lower()
    if lower.endswith(".jsonl"):
        return sys.maxsize
    if lower.endswith(_ARCHIVE):
        return MAX_ARCHIVE_BYTES
    return MAX_DOCUMENT_BYTES if lower.endswith(_DOCUMENTS) else MAX_FILE_BYTES


def _archive_sources(name: str, data: bytes, address: str, bounds: RecordBounds) -> Iterator[Source]:
    if len(data) > MAX_ARCHIVE_BYTES:
        yield Source(name, address, "file", broken=too_large(name, MAX_ARCHIVE_BYTES))
        return
    try:
        for member in zip_members(name, data, _TOGETHER, _LIMITS):
            yield from _member_sources(member, name, address, bounds)
    except IngestError as error:
        yield Source(name, address, "file", broken=error)


def _member_sources(member: Member, name: str, address: str, bounds: RecordBounds) -> Iterator[Source]:
    """The sources in a file of an archive or folder, which is known by the whole's address and its path."""
    if not member.path:
        yield Source(name, address, "file", broken=member.broken)
        return
    path = normalize("NFC", member.path)
    full = f"{name.rstrip('/')}/{without_surrogates(path)}"
    own = f"{address}/{quote(path, errors='surrogateescape')}"
    if member.broken:
        yield Source(full, own, "file", broken=member.broken)
    else:
        yield from _sources_at(own, full, member.data, bounds)


def too_large(name: str, limit: int) -> IngestError:
    return IngestError("file_too_large", name=name, limit=limit // 1_000_000)


def example_sources() -> list[Source]:
    """The sample pages, under the addresses that examples/pages.json gives them."""
    rows: list[Mapping[str, Any]] = json.loads((EXAMPLES / "pages.json").read_text(encoding="utf-8"))
    return [
        source
        for row in rows
        for source in file_sources(row["file"], (EXAMPLES / row["file"]).read_bytes(), row["url"])
    ]


def text_lines(text: str) -> list[str]:
    """The lines of a text. Unlike `str.splitlines` this leaves U+2028 and its like, which JSON may hold, in place."""
    return _LINE_END.split(text)


def record_lines(file: BinaryIO, bounds: RecordBounds) -> Iterator[str]:
    """The lines of a file, one at a time; of one that is longer than a record may be, the beginning alone."""
    text = TextIOWrapper(file, "utf-8-sig", "replace", newline=None)
    while line := text.readline(bounds.line + 1):
        yield line.removesuffix("\n")
        while len(line) > bounds.line and not line.endswith("\n"):
            line = text.readline(bounds.line + 1)


def record_sources(
    lines: Iterable[str], name: str, bounds: RecordBounds = BOUNDS, *, first: int = 1
) -> Iterator[Source]:
    """One source for each line {"url", "title", "lang"?, "text" | "html" | "markdown"}; a broken one says so.

    What follows the last record that is read is one broken source. `first` is the number of the first line.
    """
    count = 0
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        count += 1
        if count > bounds.records:
            yield _broken("records_left_out", name, number, limit=f"{bounds.records:,}")
            return
        yield _source(line, name, number, bounds)


def _source(line: str, name: str, number: int, bounds: RecordBounds) -> Source:
    record = _record(line) if len(line) <= bounds.line else {}
    if record is None:
        return _broken("record_broken", name, number)
    if not record or any(len(record[key].encode()) > bounds.size for key in _TEXTS if key in record):
        return _broken("record_too_large", name, number, limit=f"{bounds.size / 1e6:g}")
    if not is_web_address(record["url"]):
        return _broken("record_address", name, number, url=shown(record["url"]), longest=f"{MAX_LENGTH:,}")
    return Source(record["url"], record["url"], "import", record=record)


def _broken(code: str, name: str, number: int, **params: str) -> Source:
    return Source(f"{name}:{number}", "", "import", broken=IngestError(code, name=name, line=number, **params))


def _record(line: str) -> Mapping[str, Any] | None:
    """What is read of a line's object, without broken characters; None for a line that is no page."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("url"), str) or not record["url"].strip():
        return None
    texts = [record[key] for key in _TEXTS if key in record]
    named = all(isinstance(record.get(key, ""), str | None) for key in _NAMES)
    if not named or not texts or not all(isinstance(text, str) for text in texts):
        return None
    kept = ("url", *_NAMES, *_TEXTS)
    return {key: without_surrogates(record[key]) for key in kept if isinstance(record.get(key), str)}
