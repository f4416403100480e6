"""Files made to hang their reader or to exhaust its memory: `HOSTILE[name](scale)` returns (file name, bytes).

`scale` shrinks the slow ones for tests; the benchmark uses 1.0.
"""

from __future__ import annotations

import random
import struct
import zipfile
import zlib
from collections.abc import Callable

from tests.support import office

MEGABYTE = 1024 * 1024
NamedFile = tuple[str, bytes]

_LAUGHS = "<!DOCTYPE d [<!ENTITY l0 'ha'>{}]>".format(
    "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
)
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def make_zip(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of `entries`."""
    return office.zipped(entries, method=method)


def word(document: bytes) -> bytes:
    """Return a Word package around the XML of a document."""
    return office.with_part(office.docx(""), "word/document.xml", document)


def _word_body(xml: str, before: str = "") -> bytes:
    return word(f"{before}<w:document {_W}><w:body>{xml}</w:body></w:document>".encode())


def pdf(objects: list[bytes], trailer: bytes = b"/Root 1 0 R", *, with_table: bool = True) -> bytes:
    """Return a PDF file of `objects`, numbered from 1."""
    body, places = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    start = len(body)
    if with_table:
        body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
        body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer\n<</Size %d %s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, start)
    return bytes(body)


def stream(data: bytes, words: bytes = b"") -> bytes:
    return b"<</Length %d %s>>\nstream\n" % (len(data), words) + data + b"\nendstream"


def page_of(contents: bytes, resources: bytes = b"<</Font<</F1 5 0 R>>>>", *more: bytes) -> list[bytes]:
    """Return the objects of a PDF with one page that is drawn by the stream object `contents`."""
    return [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources" + resources + b">>",
        contents,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        *more,
    ]


def zeros(size: int) -> bytes:
    """Return `size` zero bytes in zlib's format, without holding them in memory."""
    packer = zlib.compressobj(9)
    piece = bytes(MEGABYTE)
    parts = [packer.compress(piece) for _ in range(size // MEGABYTE)]
    return b"".join([*parts, packer.flush()])


def _zip_of_modest_ratio(scale: float) -> NamedFile:
    text = "".join(random.Random(1).choices("abcdefgh \n", k=30_000)) * 160
    return "modest.zip", make_zip({f"{n}.txt": text.encode()[:4_900_000] for n in range(max(20, int(60 * scale)))})


def _zip_that_lies(scale: float) -> NamedFile:
    """Return an archive whose headers both claim 1 000 bytes for a file of 50 MB."""
    size = int(50 * scale * MEGABYTE)
    data = make_zip({"a.txt": bytes(size)})
    return "lies.zip", data.replace(struct.pack("<I", size), struct.pack("<I", 1000))


def _pdf_nested_bomb(scale: float) -> NamedFile:
    twice = zlib.compress(zeros(int(4000 * scale) * MEGABYTE), 9)
    return "nested.pdf", pdf(page_of(stream(twice, b"/Filter[/FlateDecode/FlateDecode]")))


def _pdf_many_operators(scale: float) -> NamedFile:
    drawn = zlib.compress(b"BT /F1 9 Tf " + b"(ab) Tj 0 -9 Td " * int(1_500_000 * scale) + b"ET", 9)
    return "operators.pdf", pdf(page_of(stream(drawn, b"/Filter/FlateDecode")))


def _pdf_circle(scale: float) -> NamedFile:
    return "circle.pdf", pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R/Outlines 3 0 R>>",
            b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2/Parent 2 0 R>>",
            b"<</First 4 0 R/Last 4 0 R>>",
            b"<</Title(a)/Next 4 0 R/First 4 0 R/Parent 3 0 R>>",
        ]
    )


def _pdf_forms(scale: float) -> NamedFile:
    """Return a PDF of ten forms, each of which draws the next one ten times."""
    resources = b"<</XObject<</X0 6 0 R>>/Font<</F1 5 0 R>>>>"
    forms = []
    for n in range(10):
        inner = b"<</XObject<</X%d %d 0 R>>>>" % (n + 1, 7 + n if n < 9 else 6)
        drawn = b"/X%d Do " % (n + 1) * 10 + b"BT /F1 9 Tf (deep) Tj ET"
        forms.append(stream(drawn, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources" + inner))
    return "forms.pdf", pdf(page_of(stream(b"/X0 Do"), resources, *forms))


def _pdf_one_page_often(scale: float) -> NamedFile:
    kids = b"3 0 R " * int(90_000 * scale)
    objects = page_of(stream(b"BT /F1 9 Tf (again and again) Tj ET"))
    objects[1] = b"<</Type/Pages/Kids[" + kids + b"]/Count %d>>" % int(90_000 * scale)
    return "often.pdf", pdf(objects)


def _pdf_cut(scale: float) -> NamedFile:
    whole = pdf(page_of(stream(b"BT /F1 9 Tf (cut off) Tj ET")))
    return "cut.pdf", whole[: len(whole) // 3]


def _docx_laughs(scale: float) -> NamedFile:
    return "laughs.docx", _word_body("<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>", _LAUGHS)


def _docx_outside(scale: float) -> NamedFile:
    entity = '<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    return "outside.docx", _word_body("<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", entity)


def _docx_paragraphs(scale: float) -> NamedFile:
    return "paragraphs.docx", _word_body("<w:p/>" * int(15_000_000 * scale))


def _docx_depth(scale: float) -> NamedFile:
    deep = int(1_000_000 * scale)
    return "depth.docx", _word_body("<w:sdt>" * deep + "</w:sdt>" * deep)


def _docx_tables(scale: float) -> NamedFile:
    """Return tables nested sixty deep, whose cells all claim to span 99 999 columns."""
    body = "<w:p/>"
    for _ in range(60):
        cell = f"<w:tc><w:tcPr><w:gridSpan w:val='99999'/></w:tcPr>{body}</w:tc>"
        body = f"<w:tbl><w:tr>{cell * 2 if len(body) < 300_000 * scale else cell}</w:tr></w:tbl><w:p/>"
    return "tables.docx", office.docx(body)


def _docx_numbers(scale: float) -> NamedFile:
    """Return styles that are based on each other in a circle, and list numbers of 10 000 letters."""
    style = "<w:style w:type='paragraph' w:styleId='{}'><w:name w:val='x'/><w:basedOn w:val='{}'/></w:style>"
    levels = (
        "<w:lvl w:ilvl='0'><w:start w:val='99999'/><w:numFmt w:val='lowerLetter'/><w:lvlText w:val='%1%1%1'/></w:lvl>"
    )
    mark = "<w:pStyle w:val='A'/><w:numPr><w:ilvl w:val='0'/><w:numId w:val='1'/></w:numPr>"
    return "numbers.docx", office.docx(
        f"<w:p><w:pPr>{mark}</w:pPr><w:r><w:t>x</w:t></w:r></w:p>" * int(20_000 * scale),
        styles=style.format("A", "B") + style.format("B", "A"),
        numbering=f"<w:abstractNum w:abstractNumId='0'>{levels}</w:abstractNum>"
        "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>",
    )


def _pptx_bomb(scale: float) -> NamedFile:
    package = office.pptx(office.shape("<a:p/>"))
    return "bomb.pptx", office.with_part(package, "ppt/slides/slide1.xml", b" " * int(1000 * scale * MEGABYTE))


def _pptx_laughs(scale: float) -> NamedFile:
    package = office.pptx(office.shape("<a:p><a:r><a:t>LAUGH</a:t></a:r></a:p>"))
    slide = office.part(package, "ppt/slides/slide1.xml").decode().partition("?>")[2].replace("LAUGH", "&l9;")
    return "laughs.pptx", office.with_part(package, "ppt/slides/slide1.xml", (_LAUGHS + slide).encode())


def _sheet(rows: str, after: str = "") -> bytes:
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f"<worksheet {names}><sheetData>{rows}</sheetData>{after}</worksheet>"
    return office.with_part(office.xlsx([["x"]]), "xl/worksheets/sheet1.xml", sheet.encode())


def _xlsx_corners(scale: float) -> NamedFile:
    rows = (f'<row r="{r}"><c r="XFD{r}"><v>1</v></c></row>' for r in range(1, int(1_000_000 * scale), 5))
    return "corners.xlsx", _sheet("".join(rows))


def _xlsx_merged(scale: float) -> NamedFile:
    merged = '<mergeCell ref="A1:XFD1048576"/>' * int(200_000 * scale)
    row = '<row r="{0}"><c r="A{0}"><v>1</v></c><c r="B{0}"><v>2</v></c></row>'
    rows = "".join(map(row.format, range(1, int(20_000 * scale))))
    return "merged.xlsx", _sheet(rows, f"<mergeCells>{merged}</mergeCells>")


def _odt_repeated(scale: float) -> NamedFile:
    """Return nested tables whose cells and rows all claim to repeat 99 999 times."""
    body = "<text:p>x</text:p>"
    for _ in range(6):
        cell = f"<table:table-cell table:number-columns-repeated='99999'>{body}</table:table-cell>"
        body = (
            f"<table:table><table:table-row table:number-rows-repeated='99999'>{cell}</table:table-row></table:table>"
        )
    return "repeated.odt", office.odt(body)


def _epub_chapters(scale: float) -> NamedFile:
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><head/><body><p>x</p></body></html>"
    return "chapters.epub", office.epub({"a.xhtml": page}, ["a.xhtml"] * int(200_000 * scale))


def _eml_depth(scale: float) -> NamedFile:
    deep = int(20_000 * scale)
    parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(deep))
    return "depth.eml", f"Subject: deep\n{parts}\ntext".encode()


def _eml_parts(scale: float) -> NamedFile:
    parts = "--b\nContent-Type: text/plain\n\nx\n" * int(300_000 * scale)
    return "parts.eml", f"Subject: many\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n".encode()


def _ipynb_depth(scale: float) -> NamedFile:
    deep = int(1_000_000 * scale)
    return "depth.ipynb", b'{"cells": ' + b"[" * deep + b"]" * deep + b"}"


HOSTILE: dict[str, Callable[[float], NamedFile]] = {
    "zip: 10 x 50 MB of zeros": lambda scale: (
        "bomb.zip",
        make_zip({f"{n}.txt": bytes(int(50 * scale * MEGABYTE)) for n in range(10)}),
    ),
    "zip: 60 x 5 MB at 100 to 1": _zip_of_modest_ratio,
    "zip: sizes that lie": _zip_that_lies,
    "zip: 200 000 files": lambda scale: (
        "many.zip",
        make_zip({f"{n}.txt": b"" for n in range(int(200_000 * scale))}, zipfile.ZIP_STORED),
    ),
    "zip: 200 MB in one bzip2 step": lambda scale: (
        "bzip2.zip",
        make_zip({"a.txt": bytes(int(200 * scale * MEGABYTE))}, zipfile.ZIP_BZIP2),
    ),
    "pdf: 1 GB in a gzipped stream": lambda scale: (
        "stream.pdf",
        pdf(page_of(stream(zeros(int(1000 * scale) * MEGABYTE), b"/Filter/FlateDecode"))),
    ),
    "pdf: 4 GB, gzipped twice": _pdf_nested_bomb,
    "pdf: a million objects, no table": lambda scale: (
        "objects.pdf",
        pdf([b"<</Type/Catalog/Pages 2 0 R>>"] + [b"1"] * int(1_000_000 * scale), with_table=False),
    ),
    "pdf: 3 million operators": _pdf_many_operators,
    "pdf: pages that hold themselves": _pdf_circle,
    "pdf: forms in forms, 10 to the 10": _pdf_forms,
    "pdf: one page 90 000 times": _pdf_one_page_often,
    "pdf: 10 MB of noise": lambda scale: (
        "noise.pdf",
        b"%PDF-1.4\n" + random.Random(2).randbytes(int(10 * scale * MEGABYTE)),
    ),
    "pdf: cut off": _pdf_cut,
    "docx: a billion laughs": _docx_laughs,
    "docx: an entity from outside": _docx_outside,
    "docx: 1 GB of spaces": lambda scale: ("bomb.docx", word(b"<w:document>" + b" " * int(1000 * scale * MEGABYTE))),
    "docx: 15 million paragraphs": _docx_paragraphs,
    "docx: a million levels": _docx_depth,
    "docx: tables in tables": _docx_tables,
    "docx: numbers of 10 000 letters": _docx_numbers,
    "pptx: 1 GB of spaces": _pptx_bomb,
    "pptx: a billion laughs": _pptx_laughs,
    "xlsx: 1 GB of spaces": lambda scale: ("bomb.xlsx", _sheet(" " * int(1000 * scale * MEGABYTE))),
    "xlsx: 8 million cells": lambda scale: (
        "cells.xlsx",
        _sheet(f"<row>{'<c><v>1</v></c>' * 20}</row>" * int(400_000 * scale)),
    ),
    "xlsx: cells in the last column": _xlsx_corners,
    "xlsx: 200 000 merged ranges": _xlsx_merged,
    "odt: cells repeated 10 to the 30": _odt_repeated,
    "epub: a chapter 200 000 times": _epub_chapters,
    "eml: 20 000 levels": _eml_depth,
    "eml: 300 000 parts": _eml_parts,
    "ipynb: a million levels": _ipynb_depth,
    "srt: 150 000 cues": lambda scale: ("cues.srt", b"00:00:01,000 --> 00:00:02,000\n\n" * int(150_000 * scale)),
    "csv: one line of 50 MB": lambda scale: ("line.csv", b"x" * int(50 * scale * MEGABYTE)),
    "csv: 5 million cells": lambda scale: ("cells.csv", b"," * int(4_900_000 * scale)),
    "csv: a quote without end": lambda scale: ("quote.csv", b'a,b\n"' + b"never ends\n" * int(440_000 * scale)),
    "html: 100 000 paragraphs": lambda scale: ("paragraphs.html", b"<p>text" * int(100_000 * scale)),
    "html: 650 000 open tags": lambda scale: ("open.html", b"<p>" * int(650_000 * scale)),
    "html: 380 000 levels": lambda scale: ("depth.html", b"<div>" * int(380_000 * scale) + b"text"),
    "md: 5 million brackets": lambda scale: ("brackets.md", b"[" * int(4_900_000 * scale)),
    "txt: 2 million accents": lambda scale: ("accents.txt", b"a" + "\u0301".encode() * int(2_400_000 * scale)),
}
