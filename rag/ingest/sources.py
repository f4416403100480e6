"""What a person can hand in: an address, a file, or a page that is already text (a row of a JSONL file)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag.errors import IngestError
from rag.ingest.archives import Member, folder_members, zip_members
from rag.ingest.charset import without_surrogates
from rag.ingest.guard import shown
from rag.ingest.url_key import split_url
from rag.types import PageSource

MAX_FILE_BYTES = 5_000_000
MAX_DOCUMENT_BYTES = 25_000_000
MAX_ARCHIVE_BYTES = 100_000_000
_DOCUMENTS = (".pdf", ".docx")
FILE_TYPES = (".html", ".htm", ".xhtml", ".md", ".markdown", ".txt", ".csv", ".tsv", *_DOCUMENTS, ".jsonl")
_ARCHIVE = ".zip"
_NAMES = ("title", "lang")
_TEXTS = ("text", "html", "markdown")
_LINE_END = re.compile(r"\r\n?|\n")
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
    name = without_surrogates(name)
    address = url or f"file:///{quote(name.replace(chr(92), '/').lstrip('/'))}"
    lower = name.lower()
    if lower.endswith(_ARCHIVE):
        return _archive_sources(name, data, address)
    if lower.endswith(".jsonl"):
        return list(record_sources(text_lines(data.decode("utf-8-sig", "replace")), name))
    if not lower.endswith(FILE_TYPES):
        types = ", ".join((*FILE_TYPES, _ARCHIVE))
        return [Source(name, address, "file", broken=IngestError("file_type", name=name, types=types))]
    if len(data) > (limit := file_limit(name)):
        return [Source(name, address, "file", broken=_too_large(name, limit))]
    return [Source(name, address, "file", data=data)]


def path_sources(path: str) -> list[Source]:
    """The sources in a file or folder on this machine, known by their full paths."""
    full, path = full_path(path).absolute(), without_surrogates(path)
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
    except (OSError, ValueError):  # ValueError for a name that no file can have
        return [Source(path, full.as_uri(), "file", broken=IngestError("file_unreadable", name=path))]
    except IngestError as error:
        return [Source(path, full.as_uri(), "file", broken=error)]


def full_path(path: str) -> Path:
    """`path` with the home folder that it may begin with; a name that begins like one is left as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def apart(sources: Sequence[Source]) -> list[Source]:
    """The same sources, but each with an address of its own where files of one name differ in what they hold.

    The second is `file:///name?2`, and so on in their order; the same file given twice keeps one address.
    """
    given: dict[str, list[bytes]] = {}
    found = []
    for source in sources:
        if source.data is not None and source.url.startswith("file:"):
            texts = given.setdefault(source.url, [])
            if source.data not in texts:
                texts.append(source.data)
            number = texts.index(source.data) + 1
            source = replace(source, url=source.url if number == 1 else f"{source.url}?{number}")
        found.append(source)
    return found


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
    full = f"{name.rstrip('/')}/{without_surrogates(member.path)}"
    own = f"{address}/{quote(member.path, errors='surrogateescape')}"
    if member.broken:
        return [Source(full, own, "file", broken=member.broken)]
    return file_sources(full, member.data, own)


def _too_large(name: str, limit: int) -> IngestError:
    return IngestError("file_too_large", name=name, limit=limit // 1_000_000)


def text_lines(text: str) -> list[str]:
    """The lines of a text. Unlike `str.splitlines` this leaves U+2028 and its like, which JSON may hold, in place."""
    return _LINE_END.split(text)


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
        elif not any(split_url(record["url"])):
            broken = IngestError("record_address", name=name, line=number, url=shown(record["url"]))
            yield Source(place, "", "import", broken=broken)
        else:
            yield Source(record["url"], record["url"], "import", record=record)


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
