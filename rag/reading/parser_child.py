"""The child process of the parser (`python -m rag.reading.parser_child`): frames in on stdin, frames out on stdout.

It parses one document at a time until stdin is closed. An unexpected error ends it with a traceback on stderr; its
parent then starts another one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rag.errors import IngestError
from rag.reading.documents import read_document
from rag.reading.extraction.features import load_forest
from rag.reading.links import feed_task, links_task, sitemap_task
from rag.reading.ocr import load_engine, recognize_task
from rag.reading.parser import read_frame, write_frame
from rag.types import because
from rag.web.guard import printable
from rag.web.media import GZIP, XML

Task = Callable[[bytes, dict[str, Any]], dict[str, Any]]


def main() -> None:
    """Serve requests until stdin closes. Arguments: address space in bytes, wall time in seconds, pages or scans."""
    memory, seconds = int(sys.argv[1]), float(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    (load_engine if sys.argv[3] == "scans" else _load)()
    if sys.platform.startswith("linux"):  # other systems refuse or ignore the limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    write_frame(answers, {"ready": True})
    while frame := read_frame(sys.stdin.buffer):
        _limit_time(seconds)
        answer = _run_task(*frame)
        del frame
        _limit_time(0)
        write_frame(answers, answer)


def _run_task(header: dict[str, Any], body: bytes) -> dict[str, Any]:
    try:
        return {"made": TASKS[header["task"]](body, header["header"])}
    except IngestError as error:
        return {"error": error.code, "params": dict(error.notice.params)}
    except (MemoryError, RecursionError):
        return {"exhausted": True}


def _load() -> None:
    """Import what the first page needs before the memory and time limits apply."""
    import bs4  # noqa: F401
    import chardetng_py  # noqa: F401
    import trafilatura

    load_forest()
    trafilatura.extract("<html><body><article><p>one</p></article></body></html>", output_format="markdown")


def _limit_time(seconds: float) -> None:
    """Kill this process after `seconds`, in case its parent has died; 0 removes the limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _extract(body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `ExtractedDocument`; arguments: content_type, charset, url, with OCR also `recognized`."""
    kind, charset, url = header["content_type"], header["charset"], header["url"]
    if kind in (XML, GZIP):
        raise IngestError("content_type", url=printable(url), **because("feed" if kind == XML else "binary"))
    return asdict(read_document(body, kind, charset, url, header.get("recognized")))


# A task takes a body and its arguments and returns JSON values. It imports its libraries on first use, and raises
# IngestError for an unreadable body.
TASKS: dict[str, Task] = {
    "extract": _extract,
    "links": links_task,
    "feed": feed_task,
    "sitemap": sitemap_task,
    "recognize": recognize_task,
}


if __name__ == "__main__":
    main()
