"""What a person can hand in: an address, a file, or a page that is already text (a row of a JSONL file)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag.errors import IngestError
from rag.ingest.archives import Member, folder_members, zip_members
from rag.types import PageSource

MAX_FILE_BYTES = 5_000_000
MAX_DOCUMENT_BYTES = 25_000_000
MAX_ARCHIVE_BYTES = 100_000_000
_DOCUMENTS = (".pdf", ".docx")
FILE_TYPES = (".html", ".htm", ".xhtml", ".md", ".markdown", ".txt", ".csv", ".tsv", *_DOCUMENTS, ".jsonl")
_ARCHIVE = ".zip"
_LIMITS = {ending: MAX_DOCUMENT_BYTES if ending in _DOCUMENTS else MAX_FILE_BYTES for ending in ("", *FILE_TYPES)}


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to take in. `name` is how the person gave it, `url` the address it is known by.

    With `data` or `record` nothing is fetched; `broken` is the error of a source that cannot be read.
    """

    name: str
    url: str
    kind: PageSource
    data: bytes | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    broken: IngestError | None = None


def web_source(url: str) -> Source:
    return Source(url, url, "web")


def file_sources(name: str, data: bytes, url: str = "") -> list[Source]:
    """The sources in an uploaded or local file: the files of a .zip, the rows of a .jsonl, else the file itself.

    `url` is where the file came from; without one it is known by its name, as `file:///name`.
    """
    address = url or f"file:///{quote(name.replace(chr(92), '/').lstrip('/'))}"
    lower = name.lower()
    if lower.endswith(_ARCHIVE):
        return _archive_sources(name, data, address)
    if lower.endswith(".jsonl"):
        return list(record_sources(data.decode("utf-8", "replace").splitlines(), name))
    if not lower.endswith(FILE_TYPES):
        types = ", ".join((*FILE_TYPES, _ARCHIVE))
        return [Source(name, address, "file", broken=IngestError("file_type", name=name, types=types))]
    if len(data) > (limit := file_limit(name)):
        return [Source(name, address, "file", broken=_too_large(name, limit))]
    return [Source(name, address, "file", data=data)]


def path_sources(path: str) -> list[Source]:
    """The sources in a file or folder on this machine, known by their full paths."""
    full = Path(path).expanduser().absolute()
    try:
        if full.is_dir():
            return [
                source
                for member in folder_members(full, FILE_TYPES, _LIMITS)
                for source in _member_sources(member, path, full.as_uri())
            ]
        if full.stat().st_size > (limit := file_limit(path)):
            return [Source(path, full.as_uri(), "file", broken=_too_large(path, limit))]
        return file_sources(path, full.read_bytes(), "" if path.endswith(".jsonl") else full.as_uri())
    except OSError:
        return [Source(path, full.as_uri(), "file", broken=IngestError("file_unreadable", name=path))]
    except IngestError as error:
        return [Source(path, full.as_uri(), "file", broken=error)]


def file_limit(name: str) -> int:
    """The largest file in bytes under this name; a .jsonl holds many pages and has no limit of its own."""
    lower = name.lower()
    if lower.endswith(".jsonl"):
        return sys.maxsize
    if lower.endswith(_ARCHIVE):
        return MAX_ARCHIVE_BYTES
    return MAX_DOCUMENT_BYTES if lower.endswith(_DOCUMENTS) else MAX_FILE_BYTES


def _archive_sources(name: str, data: bytes, address: str) -> list[Source]:
    if len(data) > MAX_ARCHIVE_BYTES:
        return [Source(name, address, "file", broken=_too_large(name, MAX_ARCHIVE_BYTES))]
    found: list[Source] = []
    try:
        for member in zip_members(name, data, FILE_TYPES, _LIMITS):
            found.extend(_member_sources(member, name, address))
    except IngestError as error:
        found.append(Source(name, address, "file", broken=error))
    return found


def _member_sources(member: Member, name: str, address: str) -> list[Source]:
    """The sources in a file of an archive or folder, which is known by the whole's address and its path."""
    if not member.path:
        return [Source(name, address, "file", broken=member.broken)]
    full = f"{name.rstrip('/')}/{member.path}"
    own = f"{address}/{quote(member.path)}"
    if member.broken:
        return [Source(full, own, "file", broken=member.broken)]
    return file_sources(full, member.data, own)


def _too_large(name: str, limit: int) -> IngestError:
    return IngestError("file_too_large", name=name, limit=limit // 1_000_000)


def record_sources(lines: Iterable[str], name: str) -> Iterator[Source]:
    """One source for each line {"url", "title", "lang"?, "text" | "html" | "markdown"}; a broken one says so."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        record = _record(line)
        if record is None:
            broken = IngestError("record_broken", name=name, line=number)
            yield Source(place, "", "import", broken=broken)
        else:
            yield Source(str(record["url"]), str(record["url"]), "import", record=record)


def _record(line: str) -> Mapping[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("url"), str) or not record["url"].strip():
        return None
    texts = [record[key] for key in ("text", "html", "markdown") if key in record]
    named = all(isinstance(record.get(key, ""), str | None) for key in ("title", "lang"))
    return record if named and texts and all(isinstance(text, str) for text in texts) else None
