"""Hostile files and HTTP responses, one at a time: the outcome, the time and the memory of each.

    python -m benchmarks.hostile [--only WORD] [--json]

Each case is read as the app reads it, in a separate process that reads a good page before and after it. Prints the
outcome, the seconds, the process's peak memory above its baseline (the file included), and the parsing children's
peak. The limits: a refusal within the deadline, 100 MB in the app's process, 512 MB in a child. Linux only, since it
reads /proc.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine import describe

ROOT = Path(__file__).resolve().parents[1]
MEGABYTE = 1024 * 1024
APP_LIMIT = 100.0
CHILD_LIMIT = 512.0
SECONDS_LIMIT = 65.0
ANSWERS = ("/gzip-bomb", "/gzip-in-gzip", "/double-gzip-bomb", "/huge", "/drip", "/never")
_GOOD_PAGE = (
    b"<!doctype html><html><head><title>Good</title></head><body><article><h1>Good</h1>"
    b"<p>The next page goes on as if nothing was.</p></article></body></html>"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One case: seconds, megabytes of the app's process above its baseline, and in total of the largest child."""

    case: str
    outcome: str
    seconds: float
    app_mb: float
    child_mb: float
    next_page: str

    @property
    def is_within_limits(self) -> bool:
        fits = self.app_mb < APP_LIMIT and self.child_mb <= CHILD_LIMIT and self.seconds < SECONDS_LIMIT
        return fits and self.next_page == "read"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this word")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "WHERE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(measure(*options.one))))
        return 0
    rows = list(run(options.only, quiet=options.json))
    if options.json:
        print(json.dumps({"machine": describe(), "rows": [asdict(row) for row in rows]}, indent=1))
    return 0 if rows and all(row.is_within_limits for row in rows) else 1


def run(only: str, *, quiet: bool) -> Iterator[Row]:
    """Yield every case whose name contains `only`, printed as it completes."""
    if not quiet:
        print(f"{'case':36} {'outcome':44} {'s':>6} {'app MB':>7} {'child MB':>8}  next page")
    for case, where in _cases(only):
        command = [sys.executable, "-m", "benchmarks.hostile", "--one", case, where]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if process.returncode:
            row = Row(case, f"the harness ended: {process.stderr.strip()[-200:]}", 0.0, 0.0, 0.0, "not read")
        else:
            row = Row(**json.loads(process.stdout))
        if not quiet:
            mark = "" if row.is_within_limits else "  TOO MUCH"
            cost = f"{row.seconds:6.1f} {row.app_mb:7.1f} {row.child_mb:8.0f}"
            print(f"{row.case:36} {row.outcome[:44]:44} {cost}  {row.next_page}{mark}", flush=True)
        yield row


def _cases(only: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each case with its file, which another process writes, or its address."""
    from tests.support.hostile import HOSTILE
    from tests.support.page_server import PageServer

    with tempfile.TemporaryDirectory() as folder:
        for case in (name for name in HOSTILE if only in name):
            code = (
                "import sys; from pathlib import Path; from tests.support.hostile import HOSTILE; "
                "name, data = HOSTILE[sys.argv[1]](1.0); Path(sys.argv[2], name).write_bytes(data); print(name)"
            )
            command = [sys.executable, "-c", code, case, folder]
            file_name = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            yield case, str(Path(folder, file_name))
            Path(folder, file_name).unlink()
    with PageServer() as server:
        for path in (path for path in ANSWERS if only in f"http: {path}"):
            yield f"http: {path}", server.url(path)


def measure(case: str, where: str) -> Row:
    """Read one case in this process, after a good page as warm-up."""
    from rag.reading.parser import Parser
    from rag.web.fetch import Fetcher
    from rag.web.guard import check_url

    is_address = where.startswith("http")
    pair = [tuple(where.split("/")[2].split(":"))] if is_address else []
    allowed = [(host, int(port)) for host, port in pair]
    with Parser() as parser, Fetcher(allow=allowed, deadline=10.0) as fetcher:
        check_url("https://example.com/")
        _read_good(parser)
        with ProcessMonitor(parser) as watch:
            began = time.monotonic()
            outcome = _read_address(fetcher, parser, where) if is_address else _read_file(parser, where)
            seconds = time.monotonic() - began
        return Row(case, outcome, round(seconds, 2), watch.app_mb, watch.child_mb, _read_good(parser))


def _read_good(parser: object) -> str:
    from rag.errors import IngestError
    from rag.reading.parser import Parser

    assert isinstance(parser, Parser)
    try:
        text = parser.parse(_GOOD_PAGE, "text/html", "utf-8", "https://example.com/good").text
    except IngestError as error:
        return str(error)
    return "read" if "as if nothing was" in text else "lost its text"


def _read_file(parser: object, path: str) -> str:
    """Return the outcome of a file: the size of its text, or the reasons for refusal or review."""
    from rag.errors import IngestError
    from rag.ingest.sources import path_sources
    from rag.reading.parser import Parser
    from rag.reading.quality import check_quality
    from rag.web.media import media_type

    assert isinstance(parser, Parser)
    outcomes: dict[str, int] = {}
    for source in path_sources(path):
        try:
            if source.broken:
                raise source.broken
            data = source.data or b""
            extracted = parser.parse(data, media_type(data, "", source.name), None, source.name)
            notice = check_quality(extracted, can_read=lambda text: True)
            outcome = f"needs review: {notice.code}" if notice else f"read: {len(extracted.text)} characters"
        except IngestError as error:
            outcome = "refused: " + " ".join(filter(None, [error.code, error.notice.cause]))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return ", ".join(f"{text} x {count}" if count > 1 else text for text, count in outcomes.items())


def _read_address(fetcher: object, parser: object, url: str) -> str:
    from rag.errors import IngestError
    from rag.reading.parser import Parser
    from rag.web.fetch import Fetcher

    assert isinstance(fetcher, Fetcher) and isinstance(parser, Parser)
    try:
        answer = fetcher.fetch(url)
        extracted = parser.parse(answer.body, answer.content_type, answer.charset, answer.final_url)
    except IngestError as error:
        return "refused: " + " ".join(filter(None, [error.code, error.notice.cause]))
    return f"read: {len(extracted.text)} characters"


class ProcessMonitor:
    """Peak memory during a block: the growth of this process, and the total of its largest parsing child."""

    def __init__(self, parser: object) -> None:
        self._parser = parser
        self._stop = threading.Event()
        self._children = 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._before = 0
        self._peak = 0

    def __enter__(self) -> ProcessMonitor:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the high-water mark
        self._before = _status("self", "VmRSS")
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._peak = _status("self", "VmHWM")
        self._stop.set()
        self._thread.join()

    @property
    def app_mb(self) -> float:
        return round((self._peak - self._before) / MEGABYTE, 1)

    @property
    def child_mb(self) -> float:
        return round(self._children / MEGABYTE, 1)

    def _look(self) -> None:
        while not self._stop.wait(0.01):
            for number in self._parser.process_ids:  # type: ignore[attr-defined]
                self._children = max(self._children, _status(str(number), "VmHWM"))


def _status(process: str, field: str) -> int:
    """Return a field of a process's status in bytes; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), 0)


if __name__ == "__main__":
    sys.exit(main())
