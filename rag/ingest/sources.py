"""What a person can hand in: an address, a file, or a page that is already text (a row of a JSONL file)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag.errors import IngestError
from rag.types import PageSource

MAX_FILE_BYTES = 5_000_000
FILE_TYPES = (".html", ".htm", ".xhtml", ".md", ".markdown", ".txt", ".jsonl")


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
    """The sources in an uploaded or local file: the rows of a .jsonl file, else the file itself.

    `url` is where the file came from; without one it is known by its name, as `file:///name`.
    """
    if name.lower().endswith(".jsonl"):
        return list(record_sources(data.decode("utf-8", "replace").splitlines(), name))
    address = url or f"file:///{quote(name.replace(chr(92), '/').lstrip('/'))}"
    if not name.lower().endswith(FILE_TYPES):
        broken = IngestError("file_type", name=name, types=", ".join(FILE_TYPES))
        return [Source(name, address, "file", broken=broken)]
    if len(data) > MAX_FILE_BYTES:
        broken = IngestError("file_too_large", name=name, limit=MAX_FILE_BYTES // 1_000_000)
        return [Source(name, address, "file", broken=broken)]
    return [Source(name, address, "file", data=data)]


def path_sources(path: str) -> list[Source]:
    """The sources in a file on this machine, known by its full path."""
    full = Path(path).expanduser().absolute()
    try:
        return file_sources(path, full.read_bytes(), "" if path.endswith(".jsonl") else full.as_uri())
    except OSError:
        return [Source(path, full.as_uri(), "file", broken=IngestError("file_unreadable", name=path))]


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
