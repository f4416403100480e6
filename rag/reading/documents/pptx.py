"""Reader for slides (.pptx): each under its number and title, with its texts, tables, charts and speaker notes.

python-pptx opens the package and orders the slides. Shapes are walked as XML, because python-pptx's list omits those
with a fallback for old programs, such as all shapes with equations.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from html import escape
from typing import Any

from rag.reading.documents.office import (
    HtmlBlock,
    Walker,
    get_attr,
    get_tag,
    normalize_package,
    parse_xml,
    read_meta,
    report_broken,
    to_int,
    unwrap,
)
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.metadata import build_extracted
from rag.reading.parser import ExtractedDocument
from rag.text import lazy_regex

_FOOTER_ROLES = frozenset(["dt", "ftr", "sldNum"])
_FIGURE = lazy_regex(r"-?\d+\.\d+(?:E[-+]\d+)?")
_BULLETS = frozenset(["buChar", "buBlip"])


def read_pptx(body: bytes, url: str) -> ExtractedDocument:
    """Return the slides of a presentation.

    Raises IngestError: "office_broken", "office_too_large", "document_too_long", "document_no_text".
    """
    import pptx
    from pptx.exc import PythonPptxError

    with report_broken(url, "office_broken", PythonPptxError):
        file = normalize_package(body, url)
        slides = enumerate(pptx.Presentation(file).slides, 1)
        text = html_to_markdown("".join(part for count, slide in slides for part in _Slide(slide).write(count)))
        about = read_meta(zipfile.ZipFile(file))
    return build_extracted(text, url, own_title=text.partition("\n")[0].partition(" · ")[2], **about)


class _Slide(Walker):
    """A single-use converter from the shapes of a slide to HTML, in the reading order of screen readers."""

    def __init__(self, slide: Any) -> None:
        super().__init__()
        self._slide = slide
        self._title = ""
        self._is_list = False
        self._counts: dict[int, int] = {}

    def write(self, count: int) -> Iterator[str]:
        shapes = "".join(self._write_shapes(self._slide.shapes._spTree))
        hidden = " (hidden)" if self._slide._element.get("show") in ("0", "false") else ""
        yield f"<h2>Slide {count}{hidden}{' · ' if self._title else ''}{self._title}</h2>{shapes}"
        notes = self._slide.notes_slide.notes_text_frame if self._slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            yield f"<p>Notes: {' '.join(map(self.write_line, notes._txBody.findall('{*}p')))}</p>"

    def _write_shapes(self, tree: Any) -> Iterator[str]:
        for shape in unwrap(tree):
            place, text = shape.find("{*}nvSpPr/{*}nvPr/{*}ph"), shape.find("{*}txBody")
            role = "" if place is None else place.get("type", "obj")
            if get_tag(shape) == "grpSp":
                yield from self._write_shapes(shape)
            elif get_tag(shape) == "graphicFrame":
                yield from self._write_graphic(shape)
            elif text is not None and role in ("title", "ctrTitle") and not self._title:
                lines = " ".join(map(self.write_line, text.findall("{*}p")))
                self._title = " ".join(lines.replace("<br>", " ").split())
            elif text is not None and role not in _FOOTER_ROLES:
                self._is_list, self._counts = role in ("body", "obj") and len(text.findall("{*}p")) > 1, {}
                yield from self.write_blocks(text)

    def write_paragraph(self, node: Any) -> Iterator[HtmlBlock]:
        text, properties = self.write_line(node).strip(), node.find("{*}pPr")
        own = {} if properties is None else {get_tag(child): child for child in properties}
        depth = 0 if properties is None else to_int(properties.get("lvl"), 0)
        deepest = depth if "buAutoNum" in own else depth - 1
        self._counts = {level: count for level, count in self._counts.items() if level <= deepest}
        if text and "buAutoNum" in own:
            before = self._counts.get(depth, to_int(own["buAutoNum"].get("startAt"), 1) - 1)
            self._counts[depth] = before + 1
            yield HtmlBlock(f"<li value={before + 1}>{text}</li>", "ol", depth)
        elif text and (_BULLETS & own.keys() or (self._is_list and "buNone" not in own)):
            yield HtmlBlock(f"<li>{text}</li>", "ul", depth)
        elif text:
            yield HtmlBlock(f"<p>{text}</p>")

    def _write_graphic(self, frame: Any) -> Iterator[str]:
        """Yield a table, the figures of a chart, or the texts of a diagram."""
        for child in frame.findall(".//{*}graphicData/*"):
            part = self._slide.part.rels.get(get_attr(child, "id") or get_attr(child, "dm"))
            if get_tag(child) == "tbl":
                yield self.write_table(child)
            elif get_tag(child) == "chart" and part is not None:
                yield _write_chart(parse_xml(part.target_part.blob))
            elif get_tag(child) == "relIds" and part is not None:
                yield from (f"<p>{self.write_line(line)}</p>" for line in parse_xml(part.target_part.blob).iter("{*}p"))


def _write_chart(chart: Any) -> str:
    """Return a chart as a table of its categories and the values of each series."""
    title = "".join(text.text or "" for text in chart.findall("{*}chart/{*}title//{*}t"))
    series = list(chart.iter("{*}ser"))
    columns = [_read_points(item, "val", "yVal") for item in series]
    labels = _read_points(series[0], "cat", "xVal") if series else {}
    places = sorted({place for column in columns for place in column})
    rows = [["", *("".join(text for tx in item.findall("{*}tx") for text in tx.itertext("{*}v")) for item in series)]]
    rows += [[labels.get(place, str(place + 1)), *(column.get(place, "") for column in columns)] for place in places]
    html_rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<p>{escape(title)}</p><table>{''.join(f'<tr>{row}</tr>' for row in html_rows)}</table>"


def _read_points(series: Any, *names: str) -> dict[int, str]:
    """Return the text at each index of a series, with numbers free of binary rounding errors."""
    points = (point for name in names for point in series.iterfind(f"{{*}}{name}//{{*}}pt"))
    texts = {to_int(point.get("idx"), 0): point.findtext("{*}v", "") for point in points}
    return {place: f"{float(text):.15g}" if _FIGURE.fullmatch(text) else text for place, text in texts.items()}
