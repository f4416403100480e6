"""The parsing process: reused, replaced if it hangs or dies, independent of the environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag.errors import IngestError
from rag.reading.extract import extract_html
from rag.reading.parser import Parser
from rag.web.media import CSV, DOCX, PDF, XML
from tests.support.hostile import word
from tests.support.page_server import ARTICLE, CHINESE, generated_page
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser() as running:
        yield running


def failure(parser: Parser, body: bytes, content_type: str = "text/html") -> IngestError:
    with pytest.raises(IngestError) as raised:
        parser.parse(body, content_type, "utf-8", "https://example.com/x")
    return raised.value


def test_same_as_without_a_process(parser: Parser) -> None:
    url = "https://example.com/x"
    assert parser.parse(ARTICLE.encode(), "text/html", "utf-8", url) == extract_html(ARTICLE, url)
    body = CHINESE.format(meta="").encode("gbk")
    assert parser.parse(body, "text/html", "gb2312", url) == extract_html(body, url)
    assert parser.parse(b"# A\n\n[b](c)", "text/markdown", None, "a.md").text == "# A\n\nb"
    assert parser.parse("字".encode(), "text/plain", None, "a.txt").text == "字"


def test_documents_have_a_process_of_their_own(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    before = parser.process_ids
    body = word(
        f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>Hello</w:t></w:r></w:p></w:body></w:document>'.encode()
    )
    assert parser.parse(body, DOCX, None, "a.docx").text == "Hello"
    assert parser.parse(b"a,b\n1,2", CSV, None, "a.csv").text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert len(parser.process_ids) == len(before) + 1
    assert failure(parser, b"%PDF-1.7 nothing", PDF).code == "pdf_broken"
    assert failure(parser, b"<rss>", XML).notice.cause == "feed"


def test_refusals_keep_their_reason_and_the_process(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    before = parser.process_ids[0]
    error = failure(parser, b"<script>1</script>")
    assert (error.code, error.notice.cause) == ("empty", "scripts_only")
    assert "https://example.com/x" in str(error)
    assert failure(parser, b"x", "image/png").code == "content_type"
    assert parser.process_ids[0] == before


def test_one_process_serves_many_pages_and_threads(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    before = parser.process_ids[0]
    pages = [generated_page(number).encode() for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        found = pool.map(lambda page: parser.parse(page, "text/html", None, "x").title, pages)
    assert list(found) == [f"Report {number}" for number in range(20)]
    assert parser.process_ids[0] == before


def test_a_page_that_takes_too_long_is_given_up() -> None:
    with Parser(seconds=3.0) as parser:
        parser.parse(b"<p>One.</p>", "text/html", None, "x")
        before = parser.process_ids[0]
        assert before
        os.kill(before, signal.SIGSTOP)  # how long a page takes depends on the machine; this takes for ever on any
        error = failure(parser, b"<p>Two.</p>")
        assert (error.code, error.notice.cause) == ("unreadable", "parse_timeout")
        assert parser.parse(b"<p>Two.</p>", "text/html", None, "x").text == "Two."
        assert parser.process_ids[0] != before


def test_a_process_that_died_is_replaced(parser: Parser) -> None:
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    before = parser.process_ids[0]
    assert before
    os.kill(before, 9)
    assert parser.parse(b"<p>Two.</p>", "text/html", None, "x").text == "Two."
    assert parser.process_ids[0] != before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux only")
def test_a_page_that_takes_too_much_memory_is_given_up() -> None:
    with Parser(memory=200 * 1024 * 1024) as parser:
        error = failure(parser, b"<p>text" * 2_000_000)
        assert (error.code, error.notice.cause) == ("unreadable", "parse_failed")
        assert parser.parse(b"<p>Two.</p>", "text/html", None, "x").text == "Two."


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Parser() as parser:
        assert failure(parser, b"<p>One.</p>").notice.cause == "reader_missing"


def test_closing_ends_the_process_which_inherits_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    parser = Parser()
    parser.parse(b"<p>One.</p>", "text/html", None, "x")
    process = parser.process_ids[0]
    if sys.platform.startswith("linux"):
        assert b"sk-very-secret" not in Path(f"/proc/{process}/environ").read_bytes()
    parser.close()
    assert not parser.process_ids
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert parser.parse(b"<p>Two.</p>", "text/html", None, "x").text == "Two."
    parser.close()


def test_closing_does_not_wait_for_pages_in_progress() -> None:
    with Parser(seconds=60.0) as parser, ThreadPoolExecutor(4) as pool:
        parser.parse(b"<p>One.</p>", "text/html", None, "x")
        process = parser.process_ids[0]
        os.kill(process, signal.SIGSTOP)
        reading = [pool.submit(parser.parse, b"<p>Two.</p>", "text/html", None, "x") for _ in range(4)]
        lane = parser._pages
        while not (lane.child and lane.child.pages > 1):
            time.sleep(0.01)
        began = time.monotonic()
        parser.close()
        codes = [getattr(one.exception(30), "code", "") for one in reading]
        assert time.monotonic() - began < 20
        assert "cancelled" in codes
        assert set(codes) <= {"cancelled", ""}  # a late one may have found a new child process
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_the_process_loads_neither_torch_nor_streamlit() -> None:
    code = (
        "import sys; import rag.reading.parser_child as child; child._load(); "
        "print([name for name in ('torch', 'streamlit', 'langchain_core', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_process_ends_with_its_parent() -> None:
    code = (
        "from rag.reading.parser import Parser; import os; parser = Parser(); "
        "parser.parse(b'<p>One.</p>', 'text/html', None, 'x'); "
        "print(parser.process_ids[0], flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    child = int(done.stdout)
    until(lambda: not _is_running(child))


def _is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    if sys.platform.startswith("linux"):
        return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
