"""Functions that run in the app's own process take time in proportion to the length of any text.

A backtracking expression blocks every other thread, for minutes or for ever. Times are those of this thread, and the
bounds are generous: each of these should take a tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from rag.ingest.chunking import get_chunker
from rag.ingest.diff import page_diff
from rag.reading.charset import decode
from rag.reading.quality import find_mojibake
from rag.text import detect_language, split_sentences, terms
from rag.web.fetch import retry_after
from rag.web.media import media_type, parse_content_type
from rag.web.robots import parse_rules
from rag.web.url_finder import find_urls
from rag.web.urls import is_trap, page_address

SECONDS = 4.0


def in_time(work: Callable[[], object], seconds: float = SECONDS) -> None:
    began = time.thread_time()
    work()
    assert time.thread_time() - began < seconds


@pytest.mark.parametrize("essence", ["", "application/xml", "application/octet-stream"])
@pytest.mark.parametrize(
    "piece",
    [
        b"<!---->",
        b"<!-- a -->\n",
        b"<!--",
        b" ",
        b"\r\n\t",
        b"<?xml a?>",
        b"<?xml ",
        b"<!----> <?xml?>",
        b"-->",
        b"<a:",
        b"a",
        b"<",
    ],
)
def test_sniffing(piece: bytes, essence: str) -> None:
    for end in (b"hello", b"<", b"<!--", b""):
        in_time(lambda end=end: media_type(piece * (100_000 // len(piece)) + end, essence, "https://a.example/x"))


HOSTILE = [
    "# a" + " " * 100_000 + "x",
    "# a" + "\t " * 50_000 + "# x",
    "# " + "#" * 100_000 + "x",
    "# a\n" * 15_000,
    "." * 150_000 + "x",
    "…" * 50_000 + "x",
    "……." * 37_500 + "x",
    ".……" * 37_500 + "x",
    '."' * 50_000 + "x",
    "." + '"' * 150_000 + "x",
    "!?" * 50_000 + "x",
    "a. " * 30_000,
    "1. " * 30_000,
    "e.g. " * 20_000,
    "。" * 100_000 + "x",
    "？”" * 30_000,
    " " * 150_000 + "x",
    "\n" * 50_000 + "x",
    "a\n" * 30_000,
    "| a " * 25_000,
    "|" * 100_000 + "x",
    "|\n" * 25_000,
    "- " * 50_000 + "x",
    "```\n" * 20_000,
    "`" * 100_000,
    "x" * 250_000,
    "好" * 150_000,
    "a好" * 50_000,
    "[" * 100_000,
    "\\|" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[f"{text[:3]!a} {len(text)}" for text in HOSTILE])
def test_texts_of_pages(text: str) -> None:
    def vectors(sentences: object) -> np.ndarray:
        return np.zeros((len(sentences), 2), np.float32)  # type: ignore[arg-type]

    in_time(lambda: split_sentences(text), SECONDS / 2)
    in_time(lambda: get_chunker("recursive").split(f"Before.\n\n{text}\n\nAfter.", vectors))
    in_time(lambda: (detect_language(text), terms(text), find_mojibake(text)), SECONDS / 2)
    in_time(lambda: page_diff(text, text[1:] + "y"))


@pytest.mark.parametrize(
    "piece", ["|", ",", ",;|", "=,", "a中", "/wiki/", "a.com,", "http://a,", "([{", "www.", "?", "&amp;"]
)
@pytest.mark.parametrize("start", ["", "http://x/"])
def test_pasted_text(start: str, piece: str) -> None:
    in_time(lambda: find_urls((start + piece * (4000 // len(piece)) + " ") * 25))


@pytest.mark.parametrize(
    "piece", [b"a", b"a ", b"\xe9a", b"\xe9", b"<meta ", b"<meta charset=", b"<?xml ", b"\x80\x30"]
)
def test_bytes_of_unknown_charset(piece: bytes) -> None:
    in_time(lambda: decode(b"\xe9" + piece * (200_000 // len(piece)) + b" \xff"), 2 * SECONDS)


@pytest.mark.parametrize("piece", [" ", "\t", ";", "; ", "a", "a/", ";charset", ";charset=", "0", ",", "+", ":", "("])
def test_headers(piece: str) -> None:
    value = piece * (60_000 // len(piece))
    in_time(lambda: [parse_content_type(start + value + "x") for start in ("", "text/html", "text/html;")])
    in_time(lambda: retry_after([(b"Retry-After", b"Mon, 01 Jan " + value.encode())]))


@pytest.mark.parametrize("piece", ["*a", "user ", " ", "user-agent", "Disallow: /*\n", "%2", "/"])
def test_rules_of_sites(piece: str) -> None:
    body = f"User-agent: *\nDisallow: /{piece * (20_000 // len(piece))}*b$\n".encode()
    in_time(lambda: parse_rules(body).can_fetch("https://a.example/" + "a" * 2000, "Pagelight"))


@pytest.mark.parametrize("piece", ["/", "a/", "../", "&", "a=&", ";sid=", "%", "%2", "1999/", "#", "中", "."])
def test_addresses(piece: str) -> None:
    url = "https://a.example/" + piece * (60_000 // len(piece))
    in_time(lambda: (page_address(url), is_trap(url)))
