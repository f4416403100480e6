"""Archives and folders: many sources under their paths, and nothing unpacked that should not be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rag.ingest import archives
from rag.ingest.archives import total_limit
from rag.ingest.sources import Source, file_sources, path_sources
from tests.ingest.test_sources import codes
from tests.support.hostile import HOSTILE, make_zip


def outcomes(sources: Iterable[Source]) -> dict[str, str | bytes]:
    return {source.name: source.broken.code if source.broken else source.data or b"" for source in sources}


def test_the_files_of_an_archive() -> None:
    entries = {
        "guide/a.md": b"# A",
        "guide/b.txt": b"B",
        "__MACOSX/guide/._a.md": b"x",
        ".git/c.md": b"x",
        "guide/picture.png": b"x",
        "rows.jsonl": b'{"url": "https://example.com/r", "text": "R"}',
    }
    sources = [*file_sources("docs.zip", make_zip(entries))]
    assert [(source.name, source.url, source.data) for source in sources[:2]] == [
        ("docs.zip/guide/a.md", "file:///docs.zip/guide/a.md", b"# A"),
        ("docs.zip/guide/b.txt", "file:///docs.zip/guide/b.txt", b"B"),
    ]
    assert sources[2].url == "https://example.com/r"
    assert (sources[3].name, codes(sources[3:])) == ("docs.zip/guide/picture.png", ["other_kind"])


@pytest.mark.parametrize("name", ["../a.txt", "/etc/a.txt", "a/../../b.txt", "..\\a.txt", "C:\\a.txt"])
def test_names_that_lead_out(name: str) -> None:
    assert codes(file_sources("x.zip", make_zip({name: b"text"}))) == ["archive_unsafe_name"]


def test_one_refused_entry_does_not_stop_the_others() -> None:
    inner = make_zip({"d.txt": b"text"})
    sources = file_sources("x.zip", make_zip({"a.txt": b"text", "b.zip": inner, "c.txt": b"more"}))
    assert outcomes(sources) == {"x.zip/a.txt": b"text", "x.zip/b.zip": "archive_nested", "x.zip/c.txt": b"more"}


def test_an_entry_with_a_password() -> None:
    data = bytearray(make_zip({"a.txt": b"text"}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    assert codes(file_sources("x.zip", bytes(data))) == ["archive_encrypted"]


@pytest.mark.parametrize(
    ("case", "scale", "code"),
    [
        ("zip: 10 x 50 MB of zeros", 0.1, "archive_bomb"),
        ("zip: sizes that lie", 0.1, "archive_broken"),
        ("zip: 200 000 files", 0.2, "archive_too_many"),
        ("zip: 200 MB in one bzip2 step", 0.02, "archive_packing"),
    ],
)
def test_bombs(case: str, scale: float, code: str) -> None:
    sources = file_sources(*HOSTILE[case](scale))
    assert {source.broken.code if source.broken else "read" for source in sources} == {code}


def test_all_files_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_SPARE_BYTES", 2_000_000)
    name, data = HOSTILE["zip: 60 x 5 MB at 100 to 1"](0.1)
    sources = [*file_sources(name, data)]
    assert sum(len(source.data or b"") for source in sources) <= total_limit(len(data))
    assert {source.broken.code for source in sources if source.broken} == {"archive_over_budget"}


def test_not_an_archive() -> None:
    assert outcomes(file_sources("x.zip", b"PK\x03\x04")) == {"x.zip": "archive_broken"}
    assert codes(file_sources("x.zip", make_zip({"a.png": b"x"}))) == ["other_kind", "archive_empty"]


def test_a_folder(tmp_path: Path) -> None:
    for name in ("b.md", "a/c.txt", ".hidden/d.md", "a/.e.md", "a/f.bin"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(name, encoding="utf-8")
    (tmp_path / "link.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "loop").symlink_to(tmp_path)
    sources = path_sources(str(tmp_path))
    assert [source.name for source in sources[:2]] == [f"{tmp_path}/a/c.txt", f"{tmp_path}/b.md"]
    assert sources[0].url == (tmp_path / "a" / "c.txt").as_uri()
    assert [source.name for source in sources[2:]] == [f"{tmp_path}/a/f.bin"]
    assert codes(sources[2:]) == ["other_kind"]


def test_many_unsupported_files_are_counted_and_the_first_are_named() -> None:
    found = codes(file_sources("x.zip", make_zip({"a.txt": b"text", **{f"{n:03}.png": b"x" for n in range(205)}})))
    assert found == ["", *["other_kind"] * 200, "archive_left_out"]


def test_large_files_are_refused_by_kind() -> None:
    assert outcomes(file_sources("a.txt", b"x" * 5_000_001)) == {"a.txt": "file_too_large"}
    assert codes(file_sources("a.pdf", b"%PDF-" + b"x" * 5_000_001)) == [""]


@pytest.mark.parametrize(
    ("mark", "offset", "bad"),
    [
        (b"PK\x03\x04", 30, b"\xff"),  # a name in no charset, in the file's own header
        (b"PK\x03\x04", 30, b"b"),
        (b"PK\x03\x04", 26, b"\xff\xff"),
        (b"PK\x03\x04", 0, b"XX"),
        (b"PK\x01\x02", 42, b"\xff\xff\xff\x7f"),
    ],
)
def test_a_damaged_entry_does_not_stop_the_others(mark: bytes, offset: int, bad: bytes) -> None:
    data = bytearray(make_zip({"文a.txt": b"text", "c.txt": b"more"}))
    place = data.index(mark) + offset
    data[place : place + len(bad)] = bad
    assert outcomes(file_sources("x.zip", bytes(data))) == {"x.zip/文a.txt": "archive_broken", "x.zip/c.txt": b"more"}


def test_damage_of_any_kind_is_told() -> None:
    """Set each byte of an archive in turn to the values that break most."""
    whole = make_zip({"文a.txt": b"text" * 20, "c.md": b"# More"})
    for place in range(len(whole)):
        for value in (0, 0x7F, 0xFF):
            data = bytearray(whole)
            data[place] = value
            assert [*file_sources("x.zip", bytes(data))]
