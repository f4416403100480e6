"""Parsing in child processes, which are reused between pages and killed if a page takes too long.

Trafilatura takes quadratic time on hostile pages, and a parsing thread cannot be stopped. The child is a module run as
a subprocess; multiprocessing would rerun a Streamlit page's script in it. Pipes carry frames: a JSON header and a body,
preceded by their lengths.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Self

from rag.errors import IngestError
from rag.types import because
from rag.web.guard import printable
from rag.web.media import PICTURE, SLOW_TYPES

logger = logging.getLogger(__name__)


_LENGTHS = struct.Struct(">II")
_MAX_SIZE = 64 * 1024 * 1024
"""Max. bytes of a header, and of a body."""


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """The text and metadata of a document of any type.

    `language` is a primary BCP 47 tag or empty; `canonical` is a URL on the page's own host, or empty; `published` and
    `modified` are ISO 8601 or empty. `signals` are for `rag.reading.quality.check_quality`. `unreadable_pages` has
    the numbers of pages without readable text.
    """

    title: str
    language: str
    site: str
    canonical: str
    text: str
    author: str = ""
    published: str = ""
    modified: str = ""
    signals: tuple[str, ...] = ()
    unreadable_pages: tuple[int, ...] = ()


def write_frame(stream: IO[bytes], header: dict[str, Any], body: bytes = b"") -> None:
    """Send one frame. Raises OSError if the other process has ended."""
    data = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
    stream.write(_LENGTHS.pack(len(data), len(body)) + data)
    stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame, or None at the end of the stream. Raises ValueError for a truncated or malformed one."""
    lengths = stream.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size or max(sizes := _LENGTHS.unpack(lengths)) > _MAX_SIZE:
        raise ValueError("lengths of a frame")
    data, body = map(stream.read, sizes)
    header = json.loads(data)
    if not isinstance(header, dict) or len(body) < sizes[1]:
        raise ValueError("contents of a frame")
    return header, body


READING_VERSION: Final = 1
"""The version of the extraction rules. Increase it when their results change: the next re-check then re-reads pages
of older versions, even if their site reports no change."""

MEMORY_BYTES = 512 * 1024 * 1024
PAGE_SECONDS = 20.0
FILE_SECONDS = 60.0
SCAN_MEMORY_BYTES = 1536 * 1024 * 1024
SCAN_SECONDS = 60.0
MAX_SCANS = 100
"""Max. pages per file for text recognition; each takes seconds."""
_START_SECONDS = 120.0
_PAGES_PER_CHILD = 2000
# No keys or proxies: a compromised parser must find nothing in its environment.
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_ROOT = Path(__file__).resolve().parents[2]


def is_ocr_installed() -> bool:
    """Return whether the optional OCR packages are installed."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


class Parser:
    """Child processes that turn documents into text. Thread-safe.

    Pages, files and text recognition have one each, so that a long PDF does not delay pages. A child parses one
    document at a time and is started on first use.
    """

    def __init__(
        self,
        *,
        seconds: float = PAGE_SECONDS,
        file_seconds: float = FILE_SECONDS,
        memory: int = MEMORY_BYTES,
        ocr: bool = False,
    ) -> None:
        """Set the time limits for a page and for a file, such as a PDF, and the `memory` limit in bytes (Linux only).

        With `ocr`, pages without readable text go to text recognition, which must be installed.
        """
        self._pages = _Worker(memory, seconds)
        self._files = _Worker(memory, file_seconds)
        self._scans = _Worker(SCAN_MEMORY_BYTES, SCAN_SECONDS, "scans")
        self._workers = self._pages, self._files, self._scans
        self._ocr = ocr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def parse(self, body: bytes, content_type: str, charset: str | None, url: str) -> ExtractedDocument:
        """Return the text of a document; arguments as for `rag.reading.extract.extract`.

        Raises IngestError as `run` does.
        """
        header = {"content_type": content_type, "charset": charset, "url": url}
        if not self._ocr:
            return self._extract(body, header)
        first = self._extract(body, {**header, "recognized": {}})
        if not first.unreadable_pages:
            return first
        recognized: dict[int, list[Any]] = {}
        for page in first.unreadable_pages[:MAX_SCANS]:
            try:
                lines = self.run("recognize", body, content_type=content_type, url=url, page=page)["lines"]
            except IngestError as error:
                if error.code != "unreadable" or content_type == PICTURE:
                    raise
                logger.warning("ocr: page %d: %s", page, error)  # after a crash or timeout, it stays unread
                lines = []
            recognized[page] = lines
        return self._extract(body, {**header, "recognized": recognized})

    def _extract(self, body: bytes, header: dict[str, Any]) -> ExtractedDocument:
        made = self.run("extract", body, **header)
        fields: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in made.items()}
        return ExtractedDocument(**fields)

    def run(self, task: str, body: bytes, **header: Any) -> dict[str, Any]:
        """Run a `task` of `rag.reading.parser_child` on `body` in the child; input and output are JSON.

        `header` has its arguments; errors name its `url`. Raises the task's IngestErrors, and "unreadable" if the child
        exceeded its time or memory limit or crashed; the next call then starts a new one.
        """
        worker = self._files if header.get("content_type") in SLOW_TYPES else self._pages
        if task == "recognize":
            worker = self._scans
        answer = worker.answer({"task": task, "header": header}, body, str(header.get("url", "")))
        if "error" in answer:
            raise IngestError(answer["error"], **answer["params"])
        result: dict[str, Any] = answer["made"]
        return result

    def close(self) -> None:
        """Kill the children at once; a running or waiting `run` raises "cancelled".

        A later `run` starts new ones.
        """
        for worker in self._workers:
            worker.close()

    @property
    def process_ids(self) -> list[int]:
        """The process ids of all running children, the one for pages first."""
        children = (worker.child for worker in self._workers)
        return [child.process.pid for child in children if child]


class _Worker:
    """A child process and the lock that queues its callers."""

    def __init__(self, memory: int, seconds: float, work: str = "pages") -> None:
        self._memory = memory
        self._seconds = seconds
        self._work = work
        self.child: _Child | None = None
        self._lock = threading.Lock()
        self._closings = 0

    def close(self) -> None:
        """Kill the child without waiting for its work or its callers."""
        self._closings += 1
        if (child := self.child) is not None:
            child.process.kill()
        with self._lock:
            self._discard()

    def answer(self, request: dict[str, Any], body: bytes, url: str) -> dict[str, Any]:
        """Return the child's answer. Raises IngestError: "unreadable" if there is none, "cancelled" after `close`."""
        closings = self._closings
        with self._lock:
            was_used = self.child is not None and self.child.pages > 0
            try:
                try:
                    answer = self._ask(request, body, closings)
                except _ChildEndedError as error:
                    # Leftovers of earlier pages may have killed a used child: retry once in a new one.
                    if error.timed_out or not was_used:
                        raise
                    answer = self._ask(request, body, closings)
                if "exhausted" in answer:
                    self._discard()
                    raise _ChildEndedError
            except _ChildEndedError as error:
                if error.starting:
                    cause = because("reader_missing")
                elif error.timed_out:
                    cause = because("parse_timeout", seconds=round(self._seconds))
                else:
                    cause = because("parse_failed")
                raise IngestError("unreadable", url=printable(url), **cause) from error
        return answer

    def _ask(self, request: dict[str, Any], body: bytes, closings: int) -> dict[str, Any]:
        """Ask the child, starting one if needed; `closings` is the number of `close` calls before the request."""
        try:
            self._check_open(closings)
            child = self.child
            if child is None or child.pages >= _PAGES_PER_CHILD or child.process.poll() is not None:
                self._discard()
                child = self.child = _Child(self._memory, self._seconds, self._work)
                self._check_open(closings)  # from here on, `close` sees the child
            child.pages += 1
            return child.exchange(request, body, self._seconds)
        except _ChildEndedError:
            self._discard()
            self._check_open(closings)
            raise

    def _check_open(self, closings: int) -> None:
        if closings != self._closings:
            self._discard()
            raise IngestError("cancelled")

    def _discard(self) -> None:
        if self.child:
            self.child.end()
        self.child = None


class _ChildEndedError(Exception):
    """The child ended without an answer."""

    def __init__(self, *, timed_out: bool = False, starting: bool = False) -> None:
        super().__init__("timed out" if timed_out else "ended")
        self.timed_out = timed_out
        self.starting = starting


class _Child:
    """A running child and the pipes to it."""

    def __init__(self, memory: int, seconds: float, work: str) -> None:
        self.pages = 0
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        # One malloc arena: more would use up the limited address space.
        own = {"PYTHONPATH": str(_ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "rag.reading.parser_child", str(memory), str(seconds + 5), work]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_ROOT,
            env={**inherited, **own, "MALLOC_ARENA_MAX": "1"},
            start_new_session=True,  # Ctrl-C in the terminal reaches only the parent, which then closes the pipe
        )
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._requests, self._answers = self.process.stdin, self.process.stdout
        self._log = threading.Thread(target=_log_lines, args=(self.process.stderr,), daemon=True)
        self._log.start()
        try:
            self.exchange(None, b"", _START_SECONDS)
        except _ChildEndedError as error:
            self.end()
            raise _ChildEndedError(timed_out=error.timed_out, starting=True) from error

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.join(1.0)
        for stream in (self._requests, self._answers, self.process.stderr):
            with suppress(OSError):  # unsent bytes for a dead child
                if stream:
                    stream.close()

    def exchange(self, request: dict[str, Any] | None, body: bytes, seconds: float) -> dict[str, Any]:
        """Send `request`, if any, and return one answer; a timer that kills the child interrupts both.

        Raises _ChildEndedError, after which the child is unusable.
        """
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self.process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                write_frame(self._requests, request, body)
            frame = read_frame(self._answers)
        except (OSError, ValueError) as error:
            raise _ChildEndedError(timed_out=expired.is_set()) from error
        finally:
            timer.cancel()
        if frame is None:
            raise _ChildEndedError(timed_out=expired.is_set())
        return frame[0]


def _log_lines(stream: IO[bytes]) -> None:
    """Log the child's stderr, so that a full pipe never blocks the child."""
    with suppress(ValueError):  # closed while reading
        for line in stream:
            logger.warning("parser: %s", line.decode("utf-8", "replace").rstrip()[:500])
