"""Text recognition with the real models: images, scanned pages, and rotated text."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from rag.errors import IngestError
from rag.reading.ocr import decode_image
from rag.reading.parser import ExtractedDocument, Parser, is_ocr_installed
from rag.web.media import PDF, media_type
from tests.support.hostile import stream
from tests.support.pdf_files import lines, make_pdf, rows, rules

pytestmark = pytest.mark.skipif(not is_ocr_installed(), reason="text recognition is not installed: make install-ocr")

LEFT = (
    "The keeper of the light writes",
    "up the log of every night and",
    "hands it to the harbour office",
    "before noon on each day.",
)
RIGHT = (
    "Boats for the island leave the",
    "old pier at six on working days",
    "and at ten on Sundays; in a gale",
    "they all stay at home.",
)
COLUMNS = lines(60, 700, *LEFT, size=12, pitch=16) + lines(330, 703, *RIGHT, size=12, pitch=16)
IN_ORDER = ("writes up the log of every night", "before noon on each day", "leave the old pier at six")


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    with Parser(ocr=True) as running:
        yield running


def picture(content: str, turn: int = 0) -> Image.Image:
    """Return a page as a scanner sees it, rotated by some degrees."""
    from pypdfium2 import PdfDocument

    return (
        PdfDocument(make_pdf(content))[0].render(scale=150 / 72).to_pil().rotate(turn, expand=True, fillcolor="white")
    )


def written(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(parser: Parser, body: bytes, name: str = "scan.png") -> ExtractedDocument:
    return parser.parse(body, media_type(body, "", name), None, name)


@pytest.mark.parametrize("turn", [2, 90, 180])
def test_columns_of_a_picture_however_it_lies(parser: Parser, turn: int) -> None:
    found = read(parser, written(picture(COLUMNS, turn)))
    assert all(part in found.text for part in IN_ORDER)
    assert found.text.startswith("## Page 1 · read by OCR (") and " sure)\n" in found.text
    assert "ocr" in found.signals and not found.unreadable_pages


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_transparent_pictures_are_rotated_by_their_exif_like_others(kind: str, orientation: int) -> None:
    image = Image.new("RGBA", (30, 20), (0, 0, 0, 0))
    image.paste((0, 0, 255, 255), (0, 0, 10, 5))
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"exif": exif.tobytes() if kind != "TIFF" else exif, "lossless": True}
    on_white = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    transparent, opaque = (decode_image(written(one, kind, **options), "scan") for one in (image, on_white))
    assert transparent.shape == opaque.shape == ((20, 30, 3) if orientation < 5 else (30, 20, 3))
    assert (transparent == opaque).all()


def test_a_ruled_table(parser: Parser) -> None:
    table = rows(600, (60, 200, 300), ("Lamp", "2022", "2023"), ("Skerry", "140", "95"), ("Holm", "", "310"), pitch=24)
    frame = rules((50, 190, 290, 380), (618, 592, 568, 544))
    found = read(parser, written(picture(lines(60, 700, *LEFT) + table + frame), "JPEG"), "scan.jpg")
    assert "| Lamp | 2022 | 2023 |" in found.text and "| Skerry | 140 | 95 |" in found.text
    assert "| Holm |  | 310 |" in found.text


def test_a_scanned_page_among_others(parser: Parser) -> None:
    image = picture(COLUMNS).convert("L")
    words = (
        b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/FlateDecode"
    )
    scan = stream(zlib.compress(image.tobytes()), words % image.size + b"/Filter/FlateDecode")
    text = lines(60, 700, "This page has a text of its own.")
    body = make_pdf(text, "q 612 0 0 792 0 0 cm /P1 Do Q", objects=[scan], resources="/XObject<</P1 4 0 R>>")
    found = parser.parse(body, PDF, None, "log.pdf")
    assert "## Page 1\n\nThis page has a text of its own." in found.text
    assert "## Page 2 · read by OCR (" in found.text
    assert all(part in found.text for part in IN_ORDER)
    assert found.unreadable_pages == ()


def test_a_long_strip_is_read_in_bands_without_gap_or_repetition(parser: Parser) -> None:
    entries = [f"Entry number {n:03} of the log" for n in range(21)]
    pages = [picture(lines(60, 760, *entries[start : start + 7], size=12, pitch=112)) for start in (0, 7, 14)]
    strip = Image.new("RGB", (pages[0].width, sum(page.height for page in pages)), "white")
    for n, page in enumerate(pages):
        strip.paste(page, (0, n * page.height))
    text = read(parser, written(strip)).text
    assert [text.count(entry) for entry in entries] == [1] * len(entries)


def test_pictures_without_text_and_what_is_no_picture(parser: Parser) -> None:
    blank = written(Image.new("RGB", (400, 300), "white"))
    for body, code in ((blank, "picture_no_text"), (b"\x89PNG\r\n\x1a\nx", "picture_broken")):
        with pytest.raises(IngestError) as raised:
            read(parser, body)
        assert raised.value.code == code


def test_a_picture_that_grows_ends_in_the_child(parser: Parser) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    side = 30_000
    pixels = zlib.compress(bytes(side // 8 + 1) * side, 9)
    body = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
        + chunk(b"IDAT", pixels)
    )
    with pytest.raises(IngestError) as raised:
        read(parser, body + chunk(b"IEND", b""))
    assert raised.value.code in ("picture_broken", "picture_no_text", "unreadable")
    assert parser.parse(b"<p>The next page.</p>", "text/html", None, "x").text == "The next page."
