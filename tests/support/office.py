"""Office files, e-books and mail built part by part, to write each construct as programs do."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from rag.web.media import ODT

_OOXML = "http://schemas.openxmlformats.org"
_NAMESPACES = {
    "w": f"{_OOXML}/wordprocessingml/2006/main",
    "a": f"{_OOXML}/drawingml/2006/main",
    "p": f"{_OOXML}/presentationml/2006/main",
    "m": f"{_OOXML}/officeDocument/2006/math",
    "r": f"{_OOXML}/officeDocument/2006/relationships",
    "mc": f"{_OOXML}/markup-compatibility/2006",
    "wp": f"{_OOXML}/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
    "v": "urn:schemas-microsoft-com:vml",
}
NAMESPACES = " ".join(f'xmlns:{name}="{address}"' for name, address in _NAMESPACES.items())
_RELATIONS = f"{_OOXML}/officeDocument/2006/relationships"
_ODF = {
    **{name: name for name in ("office", "text", "table", "style")},
    "draw": "drawing",
    "fo": "xsl-fo-compatible",
    "meta": "meta",
    "svg": "svg-compatible",
}
_ODF_NAMESPACES = " ".join(
    (
        *(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{own}:1.0"' for name, own in _ODF.items()),
        'xmlns:dc="http://purl.org/dc/elements/1.1/"',
        'xmlns:xlink="http://www.w3.org/1999/xlink"',
    )
)


def zipped(parts: Mapping[str, str | bytes], mimetype: str = "", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip package; its `mimetype`, if any, comes first and uncompressed."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", method, compresslevel=9) as package:
        if mimetype:
            package.writestr(zipfile.ZipInfo("mimetype"), mimetype)
        for name, content in parts.items():
            package.writestr(name, content)
    return stream.getvalue()


def saved(document: Any) -> bytes:
    """Return the file of a document that python-docx, python-pptx or openpyxl made."""
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def docx(body: str, **parts: str) -> bytes:
    """Return a Word file with the XML of its body and of `parts`: styles, numbering, footnotes, endnotes, comments."""
    kinds = f"{_OOXML}/package/2006/content-types"
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{word}.{kind}+xml"/>'
        for name, kind in (("document", "document.main"), *((name, name) for name in parts))
    )
    relations = "".join(
        f'<Relationship Id="r{name}" Type="{_RELATIONS}/{name}" Target="{name}.xml"/>' for name in parts
    )
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{kinds}"><Default Extension="rels" ContentType='
            f'"application/vnd.openxmlformats-package.relationships+xml"/>{overrides}</Types>',
            "_rels/.rels": _relations(
                f'<Relationship Id="r" Type="{_RELATIONS}/officeDocument" Target="word/document.xml"/>'
            ),
            "word/_rels/document.xml.rels": _relations(relations),
            "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}<w:sectPr/></w:body></w:document>",
            **{f"word/{name}.xml": f"<w:{name} {NAMESPACES}>{xml}</w:{name}>" for name, xml in parts.items()},
        }
    )


def _relations(inside: str) -> str:
    return f'<Relationships xmlns="{_OOXML}/package/2006/relationships">{inside}</Relationships>'


def strict(package: bytes) -> bytes:
    """Convert a package to Strict Office Open XML: other namespaces for the same names."""
    source = zipfile.ZipFile(BytesIO(package))
    pattern = re.compile(rb"http://schemas\.openxmlformats\.org/(?!package)(\w+)/2006/")
    return zipped(
        {name: pattern.sub(rb"http://purl.oclc.org/ooxml/\1/", source.read(name)) for name in source.namelist()}
    )


def with_part(package: bytes, name: str, content: bytes) -> bytes:
    """Return the package with one of its parts replaced."""
    source = zipfile.ZipFile(BytesIO(package))
    return zipped({**{one: source.read(one) for one in source.namelist()}, name: content})


def part(package: bytes, name: str) -> bytes:
    return zipfile.ZipFile(BytesIO(package)).read(name)


def pptx(*slides: str, notes: str = "") -> bytes:
    """Return slides with the XML of their shapes; `notes` are those of the last slide."""
    import pptx as library
    from pptx.oxml import parse_xml

    presentation = library.Presentation()
    for shapes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        slide.shapes._spTree.extend(parse_xml(f"<p:spTree {NAMESPACES}>{shapes}</p:spTree>"))
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    return saved(presentation)


def shape(paragraphs: str, role: str = "") -> str:
    """Return a slide's shape with the XML of its paragraphs; `role` is the type of a placeholder."""
    place = f'<p:nvPr><p:ph type="{role}"/></p:nvPr>' if role else "<p:nvPr/>"
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="9" name="x"/><p:cNvSpPr/>{place}</p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
    )


def xlsx(rows: Sequence[Sequence[object]]) -> bytes:
    """Return a workbook with one sheet, `Lamps`."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Lamps"
    for row in rows:
        book.active.append(row)
    return saved(book)


def odt(body: str, styles: str = "", **parts: str) -> bytes:
    """Return an OpenDocument text with the XML of its body and automatic styles; `parts` are other files in it."""
    return opendocument(ODT, f"<office:text>{body}</office:text>", styles, **parts)


def opendocument(kind: str, body: str, styles: str = "", **parts: str) -> bytes:
    content = (
        f"<office:document-content {_ODF_NAMESPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body>{body}</office:body></office:document-content>"
    )
    return zipped({"content.xml": content, "META-INF/manifest.xml": "<manifest/>", **parts}, kind)


def odt_properties(inside: str) -> str:
    return f"<office:document-meta {_ODF_NAMESPACES}><office:meta>{inside}</office:meta></office:document-meta>"


def epub(chapters: Mapping[str, str], spine: Sequence[str] = (), about: str = "", **parts: str) -> bytes:
    """Return an EPUB of XHTML files by name, in the order of `spine`; `about` is the XML of its metadata."""
    items = "".join(
        f'<item id="{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    order = "".join(f'<itemref idref="{list(chapters).index(name)}"/>' for name in spine or chapters)
    return zipped(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<metadata>{about}</metadata><manifest>{items}</manifest>"
            f"<spine>{order}</spine></package>",
            **{f"OEBPS/{name.replace('%20', ' ')}": text for name, text in chapters.items()},
            **parts,
        },
        "application/epub+zip",
    )


def compound(streams: Mapping[str, bytes]) -> bytes:
    """Return a compound file, as old Office programs and Outlook write them, with streams in its root."""
    sector = 512
    streams = dict(sorted(streams.items(), key=lambda item: (len(item[0]), item[0])))  # the directory's order
    sizes = {name: max(len(data), 4096) for name, data in streams.items()}  # smaller ones would need a mini FAT
    counts = [-(-size // sector) for size in sizes.values()]
    tables = -(-(sum(counts) + 2 + len(streams)) // 128) + 1
    fat = [0xFFFFFFFD] * tables
    names = ["Root Entry", *streams]
    directory_sectors = -(-len(names) // 4)
    starts, data = [], b""
    fat += [len(fat) + i + 1 for i in range(directory_sectors - 1)] + [0xFFFFFFFE]
    for (name, content), count in zip(streams.items(), counts, strict=True):
        starts.append(len(fat))
        fat += [len(fat) + i + 1 for i in range(count - 1)] + [0xFFFFFFFE]
        data += content.ljust(sizes[name], b"\0").ljust(count * sector, b"\0")
    rows = b""
    for i, name in enumerate(names):
        wide = name.encode("utf-16-le")
        following = i + 1 if 0 < i < len(streams) else 0xFFFFFFFF
        head = wide.ljust(64, b"\0") + struct.pack("<HBB", len(wide) + 2, 5 if i == 0 else 2, 1)
        links = struct.pack("<III", 0xFFFFFFFF, following, 1 if i == 0 and streams else 0xFFFFFFFF)
        place = struct.pack("<IQ", 0xFFFFFFFE if i == 0 else starts[i - 1], 0 if i == 0 else sizes[names[i]])
        rows += head + links + bytes(36) + place
    rows = rows.ljust(directory_sectors * sector, b"\0")
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(tables * sector, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, tables, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += struct.pack(f"<{tables}I", *range(tables)).ljust(436, b"\xff")
    return header + table + rows + data


def xls(*rows: Sequence[str | float]) -> bytes:
    """Return a workbook of Excel 5 with one sheet, `Fees`."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    cells = b""
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            if isinstance(value, str):
                text = value.encode("cp1252")
                cells += record(0x204, struct.pack("<HHHH", y, x, 0, len(text)) + text) if text else b""
            else:
                cells += record(0x203, struct.pack("<HHHd", y, x, 0, value))
    begin = record(0x809, struct.pack("<HHHH", 0x500, 5, 0, 0))
    place = len(begin) + 4 + 11 + 4
    book = begin + record(0x85, struct.pack("<IHB", place, 0, 4) + b"Fees") + record(0x0A, b"")
    sheet = record(0x809, struct.pack("<HHHH", 0x500, 0x10, 0, 0)) + cells + record(0x0A, b"")
    return compound({"Book": book + sheet})


def msg(subject: str, sender: str, text: str) -> bytes:
    """Return an Outlook message."""
    wide = {"0037": subject, "0C1A": sender, "1000": text}
    streams = {f"__substg1.0_{name}001F": value.encode("utf-16-le") for name, value in wide.items()}
    rows = b"".join(
        struct.pack("<IIQ", int(name, 16) << 16 | 0x1F, 6, len(value) * 2 + 2) for name, value in wide.items()
    )
    return compound({"__properties_version1.0": bytes(32) + rows, **streams})
