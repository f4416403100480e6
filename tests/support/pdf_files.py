"""PDF files as programs write them, with a few lines of text each."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.hostile import pdf, stream

HELVETICA = "/Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding"
PICTURE = stream(
    bytes([200] * 12), b"/Type/XObject/Subtype/Image/Width 2/Height 2/ColorSpace/DeviceRGB/BitsPerComponent 8"
)
OBJECTS = 4
"""The number of the first object in `objects`; those before it are the catalog, the pages and the font."""


def make_pdf(
    *pages: str | bytes,
    font: str = HELVETICA,
    catalog: str = "",
    page: str = "",
    objects: Sequence[bytes] = (),
    resources: str = "",
    info: str = "",
) -> bytes:
    """Return a PDF file whose pages are drawn by operators, in the font /F1; the options are dictionary entries."""
    first = OBJECTS + len(objects)
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    contents = [
        f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode("latin-1"),
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        f"<<{font}>>".encode("latin-1"),
        *objects,
    ]
    for n, content in enumerate(pages):
        contents += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {first + 2 * n + 1} 0 R"
            f"/Resources<</Font<</F1 3 0 R>>{resources}>>{page}>>".encode("latin-1"),
            stream(content if isinstance(content, bytes) else content.encode("cp1252")),
        ]
    contents.append(f"<<{info}>>".encode("latin-1"))
    return pdf(contents, b"/Root 1 0 R/Info %d 0 R" % len(contents))


def text(x: float, y: float, words: str, size: float = 10, turn: str = "1 0 0 1") -> str:
    """Return a line of text; parentheses are escaped, hexadecimal strings in <> are used verbatim."""
    shown = words if words.startswith("<") else "({})".format(words.replace("(", "\\(").replace(")", "\\)"))
    return f"BT /F1 {size} Tf {turn} {x} {y} Tm {shown} Tj ET\n"


def lines(x: float, y: float, *words: str, size: float = 10, pitch: float = 12) -> str:
    return "".join(text(x, y - pitch * n, line, size) for n, line in enumerate(words))


def rows(y: float, places: Sequence[float], *cells: Sequence[str], pitch: float = 14) -> str:
    """Return rows of cells, drawn one after the other; an empty cell draws nothing."""
    return "".join(
        text(x, y - pitch * n, cell) for n, row in enumerate(cells) for x, cell in zip(places, row, strict=True) if cell
    )


def rules(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return thin horizontal and vertical lines from the first to the last of these coordinates."""
    level = "".join(f"{xs[0]} {y} m {xs[-1]} {y} l S\n" for y in ys)
    return "0.5 w\n" + level + "".join(f"{x} {ys[0]} m {x} {ys[-1]} l S\n" for x in xs)


def unicode_map(codes: dict[str, str]) -> bytes:
    """Return a ToUnicode map: the characters that the codes of a simple font stand for."""
    pairs = " ".join(f"<{ord(code):02X}> <{meant.encode('utf-16-be').hex()}>" for code, meant in codes.items())
    return stream(
        b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        + f"{len(codes)} beginbfchar {pairs} endbfchar endcmap end".encode()
    )
