"""Inputs of an import (URLs, files, and rows of a JSONL file), and reading them ahead.

Groups take turns in reading and in returning results, so that a long one does not delay the others.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, TypeVar
from unicodedata import normalize
from urllib.parse import quote

from rag.errors import IngestError, RagError, StoreUnavailableError
from rag.ingest.archives import FILE_TYPES, Member, file_limit, folder_members, make_size_error, zip_members
from rag.reading.parser import READING_VERSION, ExtractedDocument, Parser
from rag.store.values import NewChunks, now, text_hash
from rag.text import detect_language, lazy_regex, replace_surrogates, to_plain_line
from rag.types import Decision, Notice, Page, PageSource, Stage
from rag.web.fetch import Fetcher
from rag.web.guard import MAX_LENGTH, is_web_address, printable
from rag.web.media import MEGABYTE, media_type, parse_content_type
from rag.web.urls import split_url, strip_tracking

MAX_ARCHIVE_BYTES = 100 * MEGABYTE
_ARCHIVE = ".zip"
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


def file_sources(name: str, data: bytes, url: str = "", bounds: RecordBounds = BOUNDS) -> Iterator[Source]:
    """Yield the sources in an uploaded or local file: the files of a .zip, the rows of a .jsonl, or the file itself.

    `url` is the file's origin; without it, the file is identified by its name, as `file:///name`.
    """
    name = normalize("NFC", replace_surrogates(name)).strip()  # macOS decomposes letters in its file names
    address = url or f"file:///{quote(name.replace(chr(92), '/').lstrip('/'))}"
    for source in _sources_at(address, name, data, bounds):
        yield replace(source, is_upload=not url) if source.kind == "file" else source


def _sources_at(address: str, name: str, data: bytes, bounds: RecordBounds) -> Iterator[Source]:
    lower = name.lower()
    if not lower.endswith((*FILE_TYPES, _ARCHIVE)):
        types = ", ".join((*FILE_TYPES, _ARCHIVE))
        yield Source(name, address, "file", broken=IngestError("file_type", name=name, types=types))
    elif len(data) > (limit := _input_limit(name)):
        yield Source(name, address, "file", broken=make_size_error(name, limit))
    elif lower.endswith(_ARCHIVE):
        try:
            for member in zip_members(name, data):
                yield from _member_sources(member, name, address, bounds)
        except IngestError as error:
            yield Source(name, address, "file", broken=error)
    elif lower.endswith(".jsonl"):
        yield from record_sources(record_lines(BytesIO(data), bounds), name, bounds)
    else:
        yield Source(name, address, "file", data=data)


def path_sources(path: str, bounds: RecordBounds = BOUNDS) -> list[Source]:
    """Return the sources in a file or folder on this machine, identified by their full paths."""
    full, path = full_path(path).absolute(), replace_surrogates(path)
    address = Path(normalize("NFC", str(full))).as_uri()
    try:
        if full.is_dir():
            return [
                source for member in folder_members(full) for source in _member_sources(member, path, address, bounds)
            ]
        if full.exists() and not full.is_file():
            raise IngestError("file_irregular", name=path)  # opening a pipe would wait for its writer
        if full.stat().st_size > (limit := _input_limit(path)):
            return [Source(path, address, "file", broken=make_size_error(path, limit))]
        return [*file_sources(path, full.read_bytes(), "" if path.endswith(".jsonl") else address, bounds)]
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


def _input_limit(name: str) -> int:
    """Return the maximum size in bytes of a given file; a .jsonl has many pages and no limit."""
    if name.lower().endswith(".jsonl"):
        return sys.maxsize
    return MAX_ARCHIVE_BYTES if name.lower().endswith(_ARCHIVE) else file_limit(name)


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


OnStage = Callable[[Stage], object]


def ignore_stage(stage: Stage) -> None:
    """Ignore the progress."""


_SPARSE_BYTES = 8_000  # approximate size of a chunk's terms


@dataclass(frozen=True, slots=True)
class PreparedChunks:
    """A page's chunks, and the inputs that determine them: title, hash of the text, recipe."""

    inputs: tuple[str, str, str]
    new: NewChunks

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self.new.dense.nbytes + len(self.new.chunks) * _SPARSE_BYTES


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A stored page that a new one repeats. `is_alias` means that the new page's URL leads to it."""

    reason: str
    page: Page
    is_alias: bool
    similarity: float = 1.0

    @property
    def notice(self) -> Notice:
        params: dict[str, Any] = {"title": self.page.title, "other": self.page.url, "url_hash": self.page.url_hash}
        return Notice(self.reason, {**params, "percent": min(99, round(100 * self.similarity))})

    @property
    def is_replaceable(self) -> bool:
        """True if the new page has the canonical URL of the stored one, which was added under another URL."""
        return self.reason == "canonical_first"

    @property
    def choices(self) -> tuple[Decision, ...]:
        return ("skip", "keep_both") if self.reason == "same_text" else ("skip", "refresh", "keep_both")


@dataclass(frozen=True, slots=True)
class StorageCheck:
    """The objection to storing a page, if any, given a user's decision and the library's `change_token`."""

    objection: Notice | Duplicate | None
    decision: Decision
    change_token: object | None


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """The result of reading a source. `known` is the stored page in a re-check.

    `page` is the page with its text; it is `known` if the site reported no change (`not_modified`) or did not return
    the page (`error`). `links` are its links, if requested. `final_url` is its URL after redirects; `moved_to`
    and `canonical` are other URLs of the page. `prepared` has its chunks and vectors once they are made, and
    `storage_check` the objection to it at that time.
    """

    source: Source
    page: Page
    known: Page | None = None
    extracted: ExtractedDocument | None = None
    not_modified: bool = False
    error: IngestError | None = None
    links: tuple[str, ...] = ()
    final_url: str = ""
    moved_to: str = ""
    http_status: int = 200
    prepared: PreparedChunks | None = None
    storage_check: StorageCheck | None = None

    @property
    def canonical(self) -> str:
        return self.extracted.canonical if self.extracted else ""


class Reader:
    """A reader of sources. Safe to share between threads."""

    def __init__(self, fetcher: Fetcher, parser: Parser) -> None:
        self._fetcher = fetcher
        self._parser = parser

    def read(self, source: Source, key: str, on_stage: OnStage, known: Page | None, links: bool) -> LoadedPage:
        """Read a source as described in `rag.ingest.pipeline.Ingestor.read`; `key` is its url_hash."""
        record = source.record
        if not record and source.data is None:
            try:
                return self._read_web(source, key, on_stage, known, links)
            except IngestError as error:
                if known is None:
                    raise
                return LoadedPage(source, known, known, error=error)
        if isinstance(record.get("text"), str):
            extracted = ExtractedDocument("", "", "", "", record["text"])
        elif record:
            kind = "html" if "html" in record else "markdown"
            on_stage("reading")
            extracted = self._parser.parse(record[kind].encode("utf-8", "replace"), f"text/{kind}", "utf-8", source.url)
        else:
            on_stage("reading")
            data = source.data or b""
            essence, charset = parse_content_type(source.content_type)
            kind = media_type(data, essence, source.name, charset)
            extracted = self._parser.parse(data, kind, charset, source.url)
        return LoadedPage(source, _build_page(source, key, extracted), known, extracted)

    def _read_web(self, source: Source, key: str, on_stage: OnStage, known: Page | None, links: bool) -> LoadedPage:
        on_stage("fetching")
        # "Not modified" only helps if the stored text can be reused.
        is_reusable = known is not None and known.reading >= READING_VERSION and not links
        etag, last_modified = (known.etag, known.last_modified) if known and is_reusable else ("", "")
        fetched = self._fetcher.fetch(source.url, etag=etag, last_modified=last_modified)
        if fetched.status == 304 and known is not None:
            return LoadedPage(source, known, known, not_modified=True, final_url=fetched.final_url, http_status=304)
        on_stage("reading")
        extracted = self._parser.parse(fetched.body, fetched.content_type, fetched.charset, fetched.final_url)
        addresses: list[str] = []
        if links and "html" in fetched.content_type:
            addresses = self._parser.run("links", fetched.body, charset=fetched.charset, url=fetched.final_url)["links"]
        page = _build_page(source, key, extracted)
        return LoadedPage(
            source,
            replace(page, etag=fetched.etag, last_modified=fetched.last_modified, checked_at=now()),
            known,
            extracted,
            links=tuple(addresses),
            final_url=fetched.final_url,
            moved_to=fetched.moved_to,
            http_status=fetched.status,
        )


def _build_page(source: Source, key: str, extracted: ExtractedDocument) -> Page:
    record: Any = source.record
    text = extracted.text
    if not text.strip():
        raise IngestError("no_text", url=source.url)
    subtag = str(record.get("lang") or extracted.language).replace("_", "-").partition("-")[0].strip().lower()
    is_language = subtag.isascii() and subtag.isalpha() and 2 <= len(subtag) <= 8  # as in BCP 47
    url = strip_tracking(source.url)
    title = str(record.get("title") or extracted.title or url).strip()
    return Page(
        url=url,
        url_hash=key,
        title=to_plain_line(title)[:300],
        language=subtag if is_language else detect_language(text),
        site=extracted.site or (split_url(url).hostname or ""),
        text=text,
        text_hash=text_hash(text),
        source=source.kind,
        author=to_plain_line(extracted.author),
        published=extracted.published,
        modified=extracted.modified,
        reading=READING_VERSION,
    )


T = TypeVar("T")
V = TypeVar("V")

READERS = 12


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on read-ahead: `readers` threads, and `ahead` items begun and not returned yet.

    Of these, up to `per_host` wait for one host, and no more begin while ready items take `megabytes` or more.
    """

    readers: int = READERS
    ahead: int = 24
    per_host: int = 4
    megabytes: int = 32


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[V]):
    """An item read for `group`, or the error raised instead; `began` is a value of time.monotonic."""

    group: str
    position: int
    began: float
    value: V | None
    error: Exception | None

    def result(self) -> V:
        """Return the value. Raises the error if there is one."""
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


@dataclass(frozen=True, slots=True)
class _Task(Generic[V]):
    group: str
    position: int
    host: str
    read: Callable[[], V]


class FairQueue(Generic[T]):
    """Queues by group, served round-robin."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, group: str, item: T) -> None:
        self._queues.setdefault(group, deque()).append(item)

    def pop(self) -> T:
        """Return the next item of the group whose turn it is. Raises StopIteration if all queues are empty."""
        group = next(iter(self._queues))
        queue = self._queues.pop(group)
        item = queue.popleft()
        if queue:  # the group is last now
            self._queues[group] = queue
        return item

    def drop(self, group: str) -> list[T]:
        return list(self._queues.pop(group, ()))


class ReadAhead(Generic[V]):
    """A pool of threads that run tasks and return their results. Only one caller may take results at a time."""

    def __init__(self, limits: Limits | None = None, size: Callable[[V], int] = lambda value: 0) -> None:
        """`size` returns the number of bytes of a value."""
        self._limits = limits or Limits()
        self._size = size
        self._changed = threading.Condition()
        self._waiting: FairQueue[_Task[V]] = FairQueue()
        self._ready: FairQueue[tuple[ReadResult[V], int]] = FairQueue()
        self._bytes = 0
        self._reading = 0
        self._idle = 0
        self._threads = 0
        self._hosts: Counter[str] = Counter()
        self._woken = False
        self._closed = False

    def has_capacity(self, host: str = "") -> bool:
        """Return whether another item may begin, from `host` if it is fetched."""
        with self._changed:
            count = len(self._waiting) + self._reading + len(self._ready)
            is_full = count >= self._limits.ahead or self._bytes >= self._limits.megabytes * MEGABYTE
            return not is_full and not (host and self._hosts[host] >= self._limits.per_host)

    def begin(self, group: str, position: int, host: str, read: Callable[[], V]) -> None:
        """Call `read` in a thread; `take` returns its value or error."""
        with self._changed:
            self._waiting.put(group, _Task(group, position, host, read))
            self._hosts[host] += 1
            if len(self._waiting) > self._idle and self._threads < self._limits.readers:
                self._threads += 1
                threading.Thread(target=self._work, name=f"read-{self._threads}", daemon=True).start()
            self._changed.notify_all()

    def take(self, limit: int, timeout: float | None = None) -> list[ReadResult[V]]:
        """Return up to `limit` results as soon as one is ready; none after `timeout` seconds, `wake` or `close`."""
        results: list[ReadResult[V]] = []
        with self._changed:
            self._changed.wait_for(lambda: len(self._ready) or self._woken or self._closed, timeout)
            self._woken = False
            while len(results) < limit and len(self._ready) and not self._closed:
                result, size = self._ready.pop()
                self._bytes -= size
                results.append(result)
        return results

    def wake(self) -> None:
        """Make a waiting `take` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def drop(self, group: str) -> list[int]:
        """Discard the items of `group` that are not being read right now; return their positions."""
        with self._changed:
            waiting, ready = self._waiting.drop(group), self._ready.drop(group)
            for task in waiting:
                self._hosts[task.host] -= 1
            self._bytes -= sum(size for _, size in ready)
            return [task.position for task in waiting] + [result.position for result, _ in ready]

    def close(self) -> None:
        """Begin no more items; those being read finish, but nobody waits for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: len(self._waiting) or self._closed)
                self._idle -= 1
                if self._closed:
                    return
                self._reading += 1
                task = self._waiting.pop()
            began = time.monotonic()
            value, fault = None, None
            try:
                value = task.read()
            except Exception as error:  # noqa: BLE001 - returned with the result, for the caller to raise
                fault = error
            result = ReadResult(task.group, task.position, began, value, fault)
            size = self._size(value) if value is not None else 0
            with self._changed:
                self._reading -= 1
                self._hosts[task.host] -= 1
                self._bytes += size
                self._ready.put(task.group, (result, size))
                self._changed.notify_all()


RETRIES = 2
RETRIES_AFTER_TIMEOUT = 1
"""Fewer than for other failures, since a time-out has already used its whole deadline."""
_DELAYS = (1.0, 4.0)
_STORE_DELAY = 5.0
MAX_DELAY = 60.0
_TEMPORARY_STATUS = frozenset([408, 425, 429])


def delay_before(error: RagError, tries: int) -> float | None:
    """Return the seconds to wait after failed attempt number `tries` (from 1); None for no further attempt.

    The same request may succeed a little later after time-outs, broken connections and the statuses 408, 425, 429 and
    5xx. Respects the server's Retry-After, up to MAX_DELAY. An unavailable database is always retried.
    """
    if isinstance(error, StoreUnavailableError):
        return _STORE_DELAY
    status = int(error.notice.params.get("status", 0)) if error.code == "http_error" else 0
    has_broken_off = error.code == "unreachable" and error.notice.cause == "broken_off"
    is_temporary = error.code == "timeout" or status in _TEMPORARY_STATUS or status >= 500 or has_broken_off
    retries = RETRIES_AFTER_TIMEOUT if error.code == "timeout" else RETRIES
    if tries > retries or not is_temporary:
        return None
    retry_after = float(error.notice.params.get("retry_after") or 0.0)
    return min(max(_DELAYS[tries - 1], retry_after), MAX_DELAY)
