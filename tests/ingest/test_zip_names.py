"""Names in archives: from Windows in several countries, from macOS, and from programs that state their charset."""

from __future__ import annotations

import struct
import unicodedata
import zipfile
import zlib
from io import BytesIO

import pytest

from rag.ingest.archives import read_names
from rag.ingest.sources import file_sources


class Unstated(zipfile.ZipInfo):
    """An entry with these bytes as its name, in an unstated charset."""

    def __init__(self, raw: bytes, extra: bytes = b"") -> None:
        super().__init__(f"entry {raw.hex()}")
        self.raw, self.extra = raw, extra

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self.raw, self.flag_bits


def packed(*names: bytes, extra: bytes = b"") -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(Unstated(name, extra), "The text.")
    return stream.getvalue()


def read(*names: bytes) -> list[str]:
    with zipfile.ZipFile(BytesIO(packed(*names))) as archive:
        return read_names(archive.infolist())


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        ("gbk", ["港口收费标准.md"]),
        ("gbk", ["资料.md"]),
        ("gbk", ["说明/读我.txt", "说明/测试ABC.md", "plan.md"]),
        ("big5", ["港口收費標準.md"]),
        ("big5", ["說明.md"]),
        ("big5", ["碼頭/時刻表.md", "碼頭/票價.txt"]),
        ("shift_jis", ["料金表一覧.md"]),
        ("shift_jis", ["データ.csv"]),
        ("shift_jis", ["資料.md"]),
        ("shift_jis", ["時刻表/冬ダイヤ.md", "時刻表/夏ダイヤ.md"]),
        ("euc-kr", ["항구요금표.md"]),
        ("cp949", ["안내문/시간표.md", "안내문/똠방각하.txt"]),
        ("cp850", ["Gebühren.md"]),
        ("cp850", ["Größe.txt"]),
        ("cp850", ["ÜBERSICHT.md"]),
        ("cp850", ["Résumé.md", "tarifs été.csv"]),
        ("cp850", ["Año.md"]),
        ("cp850", ["São Paulo.md", "Região Norte/preços.csv"]),
        ("cp437", ["Gebühren.md", "Fähre nach Süden.txt"]),
        ("cp852", ["Ceník přístavu.md", "Jízdní řád.md", "Žádost.txt"]),
        ("cp852", ["Zmiana hasła użytkownika.md", "Włączanie sieci.md", "Rozkład jazdy.md"]),
        ("cp866", ["Тарифы.md"]),
        ("utf-8", ["渡轮时刻.md", "Gebühren.md"]),
    ],
)
def test_names_without_their_charset(codec: str, names: list[str]) -> None:
    assert read(*(name.encode(codec) for name in names)) == names


def test_a_name_that_an_extra_field_states() -> None:
    raw = "港口.md".encode("big5")
    for known, expected in ((zlib.crc32(raw), "码头.md"), (0, "港口.md")):
        field = b"\x01" + struct.pack("<I", known) + "码头.md".encode()
        extra = struct.pack("<HH", 0x5455, 1) + b"x" + struct.pack("<HH", 0x7075, len(field)) + field
        (source,) = file_sources("x.zip", packed(raw, extra=extra))
        assert (source.name, source.data) == (f"x.zip/{expected}", b"The text.")


def test_a_name_of_macos_is_that_of_windows() -> None:
    apart = unicodedata.normalize("NFD", "Gebühren/가격.md")
    (source,) = file_sources("x.zip", packed(apart.encode()))
    (other,) = file_sources("x.zip", packed("Gebühren/가격.md".encode()))
    assert (source.name, source.url) == (other.name, other.url)


@pytest.mark.parametrize("raw", [b"\xff\xfe.md", b"\x80\x81\x82.md", bytes(range(0x80, 0x100)) + b".md"])
def test_bytes_that_are_no_name_are_read_somehow(raw: bytes) -> None:
    (source,) = file_sources("x.zip", packed(raw))
    assert source.data is not None and source.name.endswith(".md")
