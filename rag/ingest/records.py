"""Pages that are text already: the rows of a JSONL file, each a source, read within bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, BinaryIO, Final

from rag.errors import IngestError
from rag.text import plain, without_surrogates
from rag.types import PageSource
from rag.web.guard import MAX_LENGTH, shown
from rag.web.url_key import browser_url, split_url

_NAMES = ("title", "lang")
_TEXTS = ("text", "html", "markdown")
_LINE_END = re.compile(r"\r\n?|\n")
_ESCAPED = 6  # characters of a line for a byte of text: \u0041
_BESIDE = 65_536  # characters for all that is not the text


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


def record_sources(lines: Iterable[str], name: str, bounds: RecordBounds = BOUNDS) -> Iterator[Source]:
    """One source for each line {"url", "title", "lang"?, "text" | "html" | "markdown"}; a broken one says so.

    What follows the last record that is read is one broken source.
    """
    count = 0
    for number, line in enumerate(lines, 1):
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
    if not _is_web_address(record["url"]):
        return _broken("record_address", name, number, url=shown(record["url"]), longest=f"{MAX_LENGTH:,}")
    return Source(record["url"], record["url"], "import", record=record)


def _broken(code: str, name: str, number: int, **params: str) -> Source:
    return Source(f"{name}:{number}", "", "import", broken=IngestError(code, name=name, line=number, **params))


def _is_web_address(url: str) -> bool:
    parts = split_url(url)
    is_written_out = parts.scheme in ("http", "https") and bool(parts.hostname)
    return is_written_out and len(url) <= MAX_LENGTH and plain(url) == url.strip() and browser_url(url) is not None


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
