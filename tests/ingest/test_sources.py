"""What people hand in: rows and files as they really come, and each under an address of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rag.ingest.records import record_sources
from rag.ingest.sources import Source, apart, file_sources, path_sources

URL = "https://example.com/a"


def records(*texts: str) -> list[Source]:
    return list(record_sources([json.dumps({"url": URL, "text": text}) for text in texts], "rows"))


def codes(sources: list[Source]) -> list[str]:
    return [source.broken.code if source.broken else "" for source in sources]


class TestFilesOfOneName:
    def test_each_has_its_own_address(self) -> None:
        given = [(b"<p>one", ""), (b"<p>two", "?2"), (b"<p>one", ""), (b"<p>three", "?3"), (b"<p>two", "?2")]
        found = list(apart([source for data, _ in given for source in file_sources("index.html", data)]))
        assert [source.url for source in found] == [f"file:///index.html{number}" for _, number in given]
        assert {source.name for source in found} == {"index.html"}

    def test_a_mark_in_a_name_is_something_else(self) -> None:
        found = list(apart([*file_sources("a.md?2", b"x"), *file_sources("a?2.md", b"1"), *file_sources("a.md", b"2")]))
        assert [source.url for source in found][1:] == ["file:///a%3F2.md", "file:///a.md"]

    def test_other_sources_keep_theirs(self) -> None:
        samples = [*file_sources("a.md", b"1", URL), *file_sources("b.md", b"2", URL)]
        broken = [*file_sources("a.png", b"1"), *file_sources("a.png", b"2")]
        given = [*samples, *broken, *records("A", "B")]
        assert list(apart(given)) == given


class TestPaths:
    def test_names_that_are_not_utf8(self, tmp_path: Path) -> None:
        for name in (b"caf\xe9.txt", b"caf\xe8.txt", "茶.txt".encode()):
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
        sources = path_sources(str(tmp_path))
        ends = {source.url.rpartition("/")[2]: source.name.rpartition("/")[2] for source in sources}
        assert ends == {"caf%E9.txt": "caf\ufffd.txt", "caf%E8.txt": "caf\ufffd.txt", "%E8%8C%B6.txt": "茶.txt"}
        assert len(path_sources(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))) == 1

    @pytest.mark.parametrize("name", ["~nosuchuser1/x", "x" * 300, "a\x00b", "nowhere/at/all.md"])
    def test_names_of_nothing(self, name: str) -> None:
        assert codes(path_sources(name)) == ["file_unreadable"]
