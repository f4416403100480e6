"""Office files, books, mail, notebooks and captions: the fragments of office.toml, and files that libraries write."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import date
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.fidelity.case import Case
from rag.web.media import DOCX, EML, EPUB, IPYNB, ODT, PPTX, SRT, VTT, XLSX
from tests.support import office

_FILE = Path(__file__).with_name("office.toml")
_PARTS = ("styles", "numbering", "footnotes", "endnotes", "comments")
_SHORTHAND = (
    (re.compile(r"\[p:([^\[\]]*)\]"), r"<w:p>[t:\1]</w:p>"),
    (re.compile(r"\[t:([^\[\]]*)\]"), r"<w:r><w:t xml:space='preserve'>\1</w:t></w:r>"),
    (re.compile(r"\[n:(\d):(\d)\]"), r"<w:pPr><w:numPr><w:ilvl w:val='\2'/><w:numId w:val='\1'/></w:numPr></w:pPr>"),
)


def cases() -> Iterator[Case]:
    for construct, rows in tomllib.loads(_FILE.read_text("utf-8")).items():
        for row in rows:
            body, kind, name = _file(row)
            must = tuple(fact if isinstance(fact, str) else tuple(fact) for fact in row.get("must", ()))
            must_not, once = tuple(row.get("not", ())), tuple(row.get("once", ()))
            yield Case(construct, row["is"], body, kind, must, must_not, once, name=name)
    yield from _strict()
    yield from _sheets()
    yield from _mails()
    yield from _others()


def _xml(short: str) -> str:
    for pattern, replacement in _SHORTHAND:
        short = pattern.sub(replacement, short)
    return short


def _file(row: dict[str, Any]) -> tuple[bytes, str, str]:
    if "word" in row:
        prose = "[p:The keepers of the coast write up their logs each day.]"
        parts = {name: _xml(row[name]) for name in _PARTS if name in row}
        return office.docx(_xml(prose + row["word"]), **parts), DOCX, "logs.docx"
    if "text" in row:
        return office.odt(row["text"], row.get("styles", "")), ODT, "logs.odt"
    data = f"<a:graphic><a:graphicData>{row.get('slide_frame')}</a:graphicData></a:graphic>"
    frame = f"<p:graphicFrame>{data}</p:graphicFrame>"
    shapes = office.shape(row["slide"]) if "slide" in row else row.get("slide_shapes", frame)
    return office.pptx(shapes, notes=row.get("notes", "")), PPTX, "logs.pptx"


def _strict() -> Iterator[Case]:
    word, slides = (
        office.docx(_xml("[p:The lamp is lit.]")),
        office.pptx(office.shape("<a:p><a:r><a:t>The lamp is lit.</a:t></a:r></a:p>")),
    )
    yield Case("Strict dialect", "of Word", office.strict(word), DOCX, ("The lamp is lit.",), name="logs.docx")
    yield Case("Strict dialect", "of slides", office.strict(slides), PPTX, ("The lamp is lit.",), name="logs.pptx")
    yield Case(
        "Strict dialect",
        "of a sheet",
        office.strict(_book([["The lamp is lit."]])),
        XLSX,
        ("The lamp is lit.",),
        name="logs.xlsx",
    )


def _book(rows: list[list[Any]], merged: str = "", **formats: str) -> bytes:
    """Return a workbook with one sheet; `formats` are number formats by cell name."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Lamps"
    for row in rows:
        book.active.append(row)
    for cell, form in formats.items():
        book.active[cell].number_format = form
    if merged:
        book.active.merge_cells(merged)
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def _sheets() -> Iterator[Case]:
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    def case(spelling: str, body: bytes, *must: str, must_not: tuple[str, ...] = ()) -> Case:
        return Case("sheet", spelling, body, XLSX, must, must_not, name="lamps.xlsx")

    head = ["Lamp", 2021, 2022]
    yield case(
        "empty cells",
        _book([head, ["Skerry", None, 310], ["Holm", 140]]),
        "## Lamps",
        "| Lamp | 2021 | 2022 |",
        "| Skerry | | 310 |",
        "| Holm | 140 | |",
    )
    yield case(
        "a title and a blank row above the header",
        _book([["Ranges in miles"], [], head, ["Skerry", 9, 8]]),
        "Ranges in miles",
        "| Lamp | 2021 | 2022 |",
        "| Skerry | 9 | 8 |",
        must_not=("| Ranges",),
    )
    yield case(
        "merged down", _book([["Coast", "Lamp"], ["North", "Skerry"], [None, "Holm"]], "A2:A3"), "| North | Holm |"
    )
    yield case(
        "percent, currency and unit",
        _book([["Share", "Fee", "Oil"], [0.125, 45, 3.5]], A2="0.0%", B2="[$€-407]#,##0.00", C2='0.0 "kg"'),
        "| 12.5% | €45 | 3.5 kg |",
    )
    yield case(
        "dates",
        _book([["Lit", "Since"], [date(1931, 3, 5), date(2020, 1, 1)]], A2="dd/mm/yyyy", B2="yyyy"),
        "| 1931-03-05 | 2020 |",
    )
    yield case("figures as they are shown", _book([["Sum", "Code"], [0.1 + 0.2, "007"]]), "| 0.3 | 007 |")
    yield case(
        "a formula without a stored value",
        _book([["Lamp", "Range"], ["Skerry", 9], ["All", "=SUM(B2:B2)"]]),
        "| All | =SUM(B2:B2) |",
    )
    rich = CellRichText(
        "10",
        TextBlock(InlineFont(vertAlign="superscript"), "5"),
        " or ",
        TextBlock(InlineFont(strike=True), "88"),
        " 64",
    )
    yield case(
        "formats within a cell", _book([["Light", "Lamp"], [rich, "Skerry"]]), "10^5", "~~88~~ 64", must_not=("105",)
    )


def _mails() -> Iterator[Case]:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Berth fees 停泊费", "Ines Holm <ines@example.org>", "bo@example.org"
    mail["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"
    mail.set_content("Open this mail in a browser.")
    mail.add_alternative(
        "<p>A night costs <s>88</s> 64 EUR.</p><p style='display:none'>GIVE ME MONEY</p>", subtype="html"
    )
    mail.add_attachment(b"Lamp,2021,2022\nSkerry,,310\n", maintype="text", subtype="csv", filename="lamps.csv")
    mail.add_attachment(
        office.docx(_xml("[p:Rules of the tower.]")),
        maintype="application",
        subtype="octet-stream",
        filename="rules.docx",
    )
    attached = EmailMessage()
    attached["Subject"] = "An older mail"
    attached.set_content("The tower opens at six.")
    mail.add_attachment(attached)
    must = (
        "# Berth fees 停泊费",
        "From: Ines Holm",
        "A night costs ~~88~~ 64 EUR.",
        "## Attachment: lamps.csv",
        "| Skerry | | 310 |",
        "## Attachment: rules.docx",
        "Rules of the tower.",
        "## An older mail",
        "The tower opens at six.",
    )
    yield Case(
        "mail",
        "two forms and attachments",
        mail.as_bytes(),
        EML,
        must,
        ("MONEY", "in a browser"),
        name="fees.eml",
        title="Berth fees 停泊费",
    )
    raw = "Subject: 关于停泊费\r\nContent-Type: text/plain; charset=gbk\r\n\r\n停泊费每晚六十四元，由港务局收取。\r\n"
    must = ("# 关于停泊费", "停泊费每晚六十四元")
    yield Case("mail", "GBK in the head as it is", raw.encode("gbk"), EML, must, name="fees.eml")


def _others() -> Iterator[Case]:
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><head>{}</head><body>{}</body></html>".format
    chapters = {
        "two.xhtml": page("<title/>", "<h2>Two<a id='x'/></h2><p>Holm.</p>"),
        "one%20a.xhtml": page("<title>One</title>", "<p>About 10<sup>5</sup> candelas.</p>"),
    }
    book = office.epub(chapters, ["one%20a.xhtml", "two.xhtml"], "<dc:title>Lamps</dc:title>")
    must: tuple[str, ...] = ("# One\n\nAbout 10^5 candelas.\n\n## Two\n\nHolm.",)
    yield Case("book", "chapters in the order of the spine", book, EPUB, must, name="lamps.epub", title="Lamps")
    must = ("# Ranges\nIn miles, see here.", "```python\nif lit:\n    show(table)\n```", "| Skerry | |")
    must = (*must, "ZeroDivisionError: division by zero")
    yield Case("notebook", "texts, code and prints", _notebook(), IPYNB, must, ("NO",), name="ranges.ipynb")
    must = ("Ines: The lamp & its oil burn.", "Bo: Not here.")
    absent = ("-->", "<", "NOTE", "by hand")
    vtt = "\n\n".join(["WEBVTT", "NOTE by hand", *(f"{times}\n{lines}" for times, lines in _CUES)])
    yield Case("captions", "WebVTT", vtt.encode(), VTT, must, absent, ("The lamp & its",), name="lamps.vtt")
    srt = "\r\n\r\n".join(f"{n}\r\n00:00:0{n},000 --> 00:00:0{n},900\r\n{line}" for n, line in enumerate(_LINES))
    yield Case("captions", "SubRip in GBK", srt.encode("gbk"), SRT, _TEXTS, ("-->", "an8", "<i>"), name="lamps.srt")


def _notebook() -> bytes:
    table = "<table><tr><th></th><th>9</th></tr><tr><td>Skerry</td><td></td></tr></table>"
    error = {"ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": ["NO"]}
    result = {"data": {"text/html": table, "text/plain": "NO"}}
    cells = [
        {"cell_type": "markdown", "source": ["# Ranges\n", "In miles, see [here](x)."]},
        {"cell_type": "code", "source": "if lit:\n    show(table)", "outputs": [result]},
        {"cell_type": "code", "source": ["1/0"], "outputs": [error]},
    ]
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}).encode()


_CUES = (
    ("00:01.000 --> 00:03.000 line:0", "<v Ines>The lamp &amp; its"),
    ("00:03.000 --> 00:05.000", "<v Ines>The lamp &amp; its\n<00:04.000><c>oil burn.</c>"),
    ("00:06.000 --> 00:08.000", "<v Bo>Not here."),
)
_LINES = ("{\\an8}<i>灯塔每晚六点亮灯，", "直到天明。</i>")
_TEXTS = ("灯塔每晚六点亮灯，", "直到天明。")
