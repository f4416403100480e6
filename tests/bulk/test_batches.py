"""Splitting dumps of any format into batches, without losing or repeating a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from rag.bulk.batches import Batch, find_batches, sources_of
from rag.errors import ConfigError, IngestError
from rag.ingest.archives import make_size_error
from rag.ingest.sources import BOUNDS, Reader, Source
from rag.reading.parser import Parser
from rag.web.fetch import Fetcher
from rag.web.media import byte_limit

Answer = tuple[str, str, str, bytes]  # address, status, type, body


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher() as one:
        yield one


def sources(inputs: Sequence[str], size: int) -> list[list[Source]]:
    return [[*sources_of(batch, BOUNDS, lambda url: [f"{url}#1"])] for batch in find_batches(inputs, size)]


def write_archive(path: Path, answers: Sequence[Answer], *, gzip: bool = True) -> str:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=gzip)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "a crawler"}))
        for url, status, kind, body in answers:
            headers = StatusAndHeaders(status, [("Content-Type", kind)], protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(url, "response", payload=BytesIO(body), http_headers=headers))
            writer.write_record(writer.create_warc_record(url, "request", payload=BytesIO(b"GET / HTTP/1.1\r\n\r\n")))
    return str(path)


def html(text: str, charset: str = "utf-8") -> bytes:
    return f"<html><head><title>T</title></head><body><p>{text}</p></body></html>".encode(charset)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_each_line_is_in_one_batch(tmp_path: Path, size: int, end: str) -> None:
    rows = [json.dumps({"url": f"https://a.example/{n}", "text": f"雨 {n}"}, ensure_ascii=False) for n in range(7)]
    rows[2] = "broken"
    (tmp_path / "dump.jsonl").write_text((end or "\n").join(rows) + end, "utf-8", newline="")
    batches = sources([str(tmp_path / "dump.jsonl")], size)
    assert all(len(batch) <= size for batch in batches)
    found = [source for batch in batches for source in batch]
    assert [source.record.get("text", "") for source in found] == [f"雨 {n}" if n != 2 else "" for n in range(7)]
    assert (found[2].name, found[2].broken is not None) == ("dump.jsonl:3", True)


@pytest.mark.parametrize("gzip", [True, False])
def test_the_pages_of_an_archive_are_read_as_their_server_sent_them(
    tmp_path: Path, gzip: bool, parser: Parser, fetcher: Fetcher
) -> None:
    answers: list[Answer] = [
        ("https://a.example/1", "200 OK", "text/html; charset=gbk", html("系统先找到段落，再回答问题。", "gbk")),
        ("https://a.example/i.png", "200 OK", "image/png", b"\x89PNG\r\n\x1a\n"),
        ("https://a.example/gone", "404 Not Found", "text/html", html("Nothing is here.")),
        ("https://a.example/2", "200 OK", "text/html", html("The ferry leaves at nine.")),
        ("https://a.example/style.css", "200 OK", "text/css", b"p { color: red }"),
        ("https://a.example/3", "200 OK", "application/xhtml+xml", html("The museum is closed on Mondays.")),
    ]
    path = write_archive(tmp_path / ("a.warc.gz" if gzip else "a.warc"), answers, gzip=gzip)
    for size in (1, 2, 9):
        batches = sources([path], size)
        assert [len(batch) for batch in batches] == [size] * (3 // size) + ([3 % size] if 3 % size else [])
        found = [source for batch in batches for source in batch]
        assert [source.url for source in found] == [f"https://a.example/{n}" for n in (1, 2, 3)]
        texts = [Reader(fetcher, parser).read(one, "", lambda stage: None, None, False).page.text for one in found]
        assert "系统先找到段落" in texts[0] and "ferry" in texts[1] and "Mondays" in texts[2]


def test_a_page_that_is_too_large_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.bulk.batches.byte_limit", lambda essence: 20)
    path = write_archive(tmp_path / "a.warc", [("https://a.example/1", "200 OK", "text/html", html("x" * 100))])
    ((source,),) = sources([path], 10)
    assert source.broken is not None and source.broken.code == "file_too_large"


@pytest.mark.parametrize(("essence", "megabytes"), [("text/html", 2), ("text/plain", 5), ("application/pdf", 25)])
def test_its_message_names_the_limit_of_a_fetched_page(essence: str, megabytes: int) -> None:
    assert make_size_error("a", byte_limit(essence)).notice.params["limit"] == megabytes


def test_patterns_lists_and_sitemaps_are_inputs(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsonl").write_text('{"url": "https://a.example/", "text": "x"}\n')
    (tmp_path / "maps.txt").write_text("# sites\nhttps://a.example/sitemap.xml\n\n")
    given = [str(tmp_path / "*.jsonl"), str(tmp_path / "maps.txt"), "https://b.example/sitemap.xml"]
    found = [*find_batches(given, 10)]
    assert [Path(one.place).name for one in found[:2]] == ["a.jsonl", "b.jsonl"]
    maps = [Batch("sitemap", f"https://{host}.example/sitemap.xml") for host in "ab"]
    assert found[2:] == maps and found[2].name == "https://a.example/sitemap.xml"
    assert sources(given, 10)[2][0].url == "https://a.example/sitemap.xml#1"


@pytest.mark.parametrize("name", ["none.jsonl", "page.html"])
def test_what_is_no_dump_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "page.html").write_text("<p>")
    with pytest.raises(ConfigError, match=name):
        list(find_batches([str(tmp_path / name)], 10))


def test_a_broken_archive_is_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00 no gzip at all, whatever it says")
    with pytest.raises(ConfigError, match=r"a\.warc\.gz"):
        list(find_batches([str(path)], 10))


def test_a_file_that_is_gone_by_then_fails_its_batch(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="gone"):
        sources_of(Batch("jsonl", str(tmp_path / "gone.jsonl"), 0, 10), BOUNDS, lambda url: [])


def test_archives_without_their_package_say_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_archive(tmp_path / "a.warc", [])
    monkeypatch.setitem(sys.modules, "warcio.archiveiterator", None)
    with pytest.raises(ConfigError, match="make install-bulk"):
        list(find_batches([path], 10))
