"""Uploaded rows and files as they occur in practice, each under a unique address."""

from __future__ import annotations

import json
import os
import tracemalloc
import unicodedata
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import pytest

from rag.ingest.sources import (
    RecordBounds,
    Source,
    file_sources,
    path_sources,
    record_lines,
    record_sources,
    text_lines,
    unique_sources,
)
from rag.text import strip_controls

URL = "https://example.com/a"
SMALL = RecordBounds(size=1000, records=5)


def rows(*records: object) -> list[Source]:
    return list(record_sources([one if isinstance(one, str) else json.dumps(one) for one in records], "rows"))


def codes(sources: Iterable[Source]) -> list[str]:
    return [source.broken.code if source.broken else "" for source in sources]


class TestFilesOfOneName:
    def test_each_has_its_own_address(self) -> None:
        given = [(b"<p>one", ""), (b"<p>two", "?2"), (b"<p>one", ""), (b"<p>three", "?3"), (b"<p>two", "?2")]
        found = list(unique_sources([source for data, _ in given for source in file_sources("index.html", data)]))
        assert [source.url for source in found] == [f"file:///index.html{number}" for _, number in given]
        assert {source.name for source in found} == {"index.html"}

    def test_a_mark_in_a_name_is_something_else(self) -> None:
        found = list(
            unique_sources([*file_sources("a.md?2", b"x"), *file_sources("a?2.md", b"1"), *file_sources("a.md", b"2")])
        )
        assert [source.url for source in found][1:] == ["file:///a%3F2.md", "file:///a.md"]

    def test_other_sources_keep_theirs(self) -> None:
        samples = [*file_sources("a.md", b"1", URL), *file_sources("b.md", b"2", URL)]
        broken = [*file_sources("a.gif", b"1"), *file_sources("a.gif", b"2")]
        given = [*samples, *broken, *rows(*({"url": URL, "text": text} for text in "AB"))]
        assert list(unique_sources(given)) == given


class TestNamesOfMacos:
    """macOS decomposes a letter and its accent."""

    @pytest.mark.parametrize("name", ["Übung.md", "가격표.csv", "tarifs été/Größe.txt", "ガイド.md"])
    def test_an_upload_has_one_address_and_name(self, name: str) -> None:
        apart_written = unicodedata.normalize("NFD", name)
        assert apart_written != name
        (ours,), (theirs,) = file_sources(name, b"x"), file_sources(apart_written, b"x")
        assert (ours.url, ours.name) == (theirs.url, theirs.name)

    def test_a_file_of_a_folder_has_the_address_that_is_typed(self, tmp_path: Path) -> None:
        folder = tmp_path / unicodedata.normalize("NFD", "Gebühren")
        folder.mkdir()
        (folder / unicodedata.normalize("NFD", "Fähre.md")).write_text("# Ferry", encoding="utf-8")
        (source,) = path_sources(str(folder))
        assert source.data == b"# Ferry"
        assert source.url == (tmp_path / "Gebühren" / "Fähre.md").as_uri()
        assert path_sources(str(folder / unicodedata.normalize("NFD", "Fähre.md")))[0].url == source.url

    def test_blanks_around_a_name_are_no_part_of_it(self) -> None:
        (source,) = file_sources("notes.MD ", b"x")
        assert (source.name, source.broken) == ("notes.MD", None)


class TestPaths:
    def test_names_that_are_not_utf8(self, tmp_path: Path) -> None:
        for name in (b"caf\xe9.txt", b"caf\xe8.txt", "茶.txt".encode()):
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
        sources = path_sources(str(tmp_path))
        ends = {source.url.rpartition("/")[2]: source.name.rpartition("/")[2] for source in sources}
        assert ends == {"caf%E9.txt": "caf\ufffd.txt", "caf%E8.txt": "caf\ufffd.txt", "%E8%8C%B6.txt": "茶.txt"}
        assert len(path_sources(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))) == 1

    def test_a_pipe_is_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.md")
        (tmp_path / "page.md").write_text("# A page", encoding="utf-8")
        assert codes(path_sources(str(tmp_path / "pipe.md"))) == ["file_irregular"]
        assert codes(path_sources("/dev/null")) == ["file_irregular"]
        assert [source.name for source in path_sources(str(tmp_path))] == [str(tmp_path / "page.md")]

    @pytest.mark.parametrize("name", ["~nosuchuser1/x", "x" * 300, "a\x00b", "nowhere/at/all.md"])
    def test_names_of_nothing(self, name: str) -> None:
        assert codes(path_sources(name)) == ["file_unreadable"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_a_row_ends_at_a_line_end_only(mark: str) -> None:
    row = json.dumps({"url": URL, "text": f"One{mark}two."}, ensure_ascii=False)
    data = f"{row}\r\n{row}\n\n{row}".encode()
    for sources in (file_sources("rows.jsonl", data), record_sources(text_lines(data.decode()), "rows")):
        assert [source.record["text"] for source in sources] == [f"One{mark}two."] * 3


def test_line_ends() -> None:
    assert text_lines("a\nb\r\nc\rd\u2028e\n") == ["a", "b", "c", "d\u2028e", ""]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_part_of_the_first_row(encoding: str) -> None:
    data = "\n".join(json.dumps({"url": f"{URL}/{n}", "text": "中文"}) for n in range(2)).encode(encoding)
    assert codes(file_sources("rows.jsonl", data)) == ["", ""]


@pytest.mark.parametrize("key", ["text", "html", "markdown"])
def test_half_a_character_becomes_a_replacement(key: str) -> None:
    (source,) = rows(f'{{"url": "{URL}/\\udc00", "title": "a\\ud83d", "{key}": "x \\ud83d y \\ud83d\\ude00"}}')
    assert dict(source.record) == {"url": f"{URL}/\ufffd", "title": "a\ufffd", key: "x \ufffd y 😀"}
    assert (source.name, source.url) == (f"{URL}/\ufffd", f"{URL}/\ufffd")


def test_what_is_not_read_of_a_row_is_not_kept() -> None:
    (source,) = rows({"url": URL, "text": "Text.", "lang": None, "more": {"deep": ["\ud83d"]}})
    assert dict(source.record) == {"url": URL, "text": "Text."}


@pytest.mark.parametrize("url", ["http://[::1/x", "https://a\u2100b.com/", "http://[abc]/", "//[x", "http://a]b/"])
def test_a_row_whose_address_cannot_be_one(url: str) -> None:
    good = {"url": URL, "text": "Text."}
    found = rows({"url": url, "text": "Text."}, good)
    assert codes(found) == ["record_address", ""]
    assert found[0].broken is not None and url in str(found[0].broken)


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "javascript:alert(1)", "urn:isbn:1", "note 7", "https:///x", "ftp://a.example/x"),
        *(
            "http://a.example/\x1b[2J",
            "https://a.example/\u202egpj.exe",
            "https://a.example/\n/b",
            "HTTPſ://a.example/",
            "https://a b.example/",
            f"https://a.example/{'y' * 2048}",
        ),
    ],
)
def test_only_addresses_of_the_web(url: str) -> None:
    (source,) = rows({"url": url, "text": "Text."})
    assert codes([source]) == ["record_address"]
    assert strip_controls(str(source.broken)) == str(source.broken)


@pytest.mark.parametrize(
    "url", ["HTTPS://A.example", "http://[::1]/x", "https://例子.中国/路", "http://a.example:99/?q"]
)
def test_addresses_of_rows_that_are_fine(url: str) -> None:
    assert codes(rows({"url": url, "text": "Text."})) == [""]


class TestBounds:
    def test_a_text_may_have_so_many_bytes(self) -> None:
        texts = ["x" * 1000, "x" * 1001, "中" * 333, "中" * 334]
        lines = [json.dumps({"url": f"{URL}/{n}", "text": text}) for n, text in enumerate(texts)]
        found = list(record_sources(lines, "rows", SMALL))
        assert codes(found) == ["", "record_too_large", "", "record_too_large"]
        assert found[3].name == "rows:4"

    @pytest.mark.parametrize("key", ["html", "markdown"])
    def test_whatever_its_kind(self, key: str) -> None:
        line = json.dumps({"url": URL, "text": "x", key: "x" * 1001})
        assert codes(list(record_sources([line], "rows", SMALL))) == ["record_too_large"]

    def test_what_follows_the_last_record_is_said_once(self) -> None:
        lines = ["", *(json.dumps({"url": f"{URL}/{n}", "text": "x"}) for n in range(9))]
        found = list(record_sources(lines, "rows", SMALL))
        assert codes(found) == ["", "", "", "", "", "records_left_out"]
        assert "line 7 and later" in str(found[-1].broken)

    def test_a_line_without_an_end_is_not_kept_in_memory(self) -> None:
        endless = b'{"url": "' + b"x" * 30_000_000
        file = BytesIO(endless + b'\n{"url": "https://a.example/", "text": "A"}\r\n')
        tracemalloc.start()
        found = [*record_sources(record_lines(file, SMALL), "rows", SMALL)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert codes(found) == ["record_too_large", ""]
        assert found[1].url == "https://a.example/"
        assert peak < 2_000_000

    def test_a_million_short_lines_cost_what_the_bound_allows(self) -> None:
        """The rest is not read, and rows are generated one at a time."""
        data = b"[]\n" * 1_000_000
        tracemalloc.start()
        count = sum(1 for _ in file_sources("rows.jsonl", data, bounds=SMALL))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == SMALL.records + 1
        assert peak < 1_000_000
