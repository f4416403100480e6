"""Hostile files in the parsing process: refused in time and within limits, and the next page is read.

`python -m benchmarks.hostile` also measures the peaks of memory.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from benchmarks.hostile import ProcessMonitor
from rag.errors import IngestError
from rag.reading.parser import Parser
from rag.web.media import media_type
from tests.support.hostile import HOSTILE

LIMIT = 15.0  # seconds for a file; the slowest of these takes two on an idle machine


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser(seconds=LIMIT, file_seconds=LIMIT) as running:
        yield running


def outcome(parser: Parser, case: str, scale: float) -> str:
    name, data = HOSTILE[case](scale)
    try:
        parser.parse(data, media_type(data, "", name), None, name)
    except IngestError as error:
        return error.code
    return "read"


@pytest.mark.parametrize(
    ("case", "scale", "codes"),
    [
        ("pdf: 1 GB in a gzipped stream", 0.1, {"pdf_no_text"}),
        ("pdf: 4 GB, gzipped twice", 0.1, {"unreadable"}),
        ("pdf: a million objects, no table", 0.1, {"pdf_broken"}),
        ("pdf: pages that hold themselves", 1.0, {"pdf_broken"}),
        ("pdf: forms in forms, 10 to the 10", 1.0, {"pdf_broken", "pdf_unmapped", "pdf_no_text", "unreadable"}),
        ("pdf: one page 90 000 times", 0.1, {"pdf_too_many_pages"}),
        ("pdf: 10 MB of noise", 0.1, {"pdf_broken"}),
        ("docx: a million levels", 0.2, {"docx_broken"}),
        ("docx: tables in tables", 0.1, {"document_no_text"}),
        ("docx: numbers of 10 000 letters", 0.1, {"read"}),
        ("pptx: a billion laughs", 1.0, {"office_broken"}),
        ("xlsx: cells in the last column", 0.2, {"unreadable"}),
        ("xlsx: 200 000 merged ranges", 0.1, {"read"}),
        ("odt: cells repeated 10 to the 30", 1.0, {"unreadable"}),
        ("epub: a chapter 200 000 times", 0.1, {"read"}),
        ("eml: 20 000 levels", 0.1, {"office_broken"}),
        ("ipynb: a million levels", 0.1, {"unreadable"}),
        ("csv: 5 million cells", 0.2, {"document_no_text"}),
        ("csv: a quote without end", 0.2, {"table_broken"}),
        ("html: 650 000 open tags", 0.6, {"unreadable", "empty"}),
        ("html: 380 000 levels", 1.0, {"empty", "read"}),
        ("md: 5 million brackets", 0.5, {"read", "unreadable", "empty"}),
    ],
)
def test_refused_in_time(parser: Parser, case: str, scale: float, codes: set[str]) -> None:
    assert outcome(parser, case, scale) in codes
    assert parser.parse(b"<p>The next page.</p>", "text/html", None, "x").text == "The next page."


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_in_the_child(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    with ProcessMonitor(parser) as watch:
        outcome(parser, "pdf: 1 GB in a gzipped stream", 0.3)
    assert watch.app_mb < 20
    assert 40 < watch.child_mb <= 512


def test_files_do_not_hold_pages_up(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    outcome(parser, "pdf: pages that hold themselves", 1.0)
    _, files = parser.process_ids
    os.kill(files, signal.SIGSTOP)  # a file that takes for ever to read
    slow = threading.Thread(target=outcome, args=(parser, "pdf: pages that hold themselves", 1.0))
    slow.start()
    assert parser.parse(b"<p>Two.</p>", "text/html", None, "x").text == "Two."
    assert slow.is_alive()
    os.kill(files, signal.SIGCONT)
    slow.join()
