"""E-books by chapter, notebooks by cell, captions as paragraphs; formats that an optional package reads."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from rag.errors import IngestError
from rag.reading.documents.other_formats import read_captions, read_epub, read_notebook, read_office
from rag.web.media import MSG, ODP, ODS, RTF, XLS
from tests.support import office


def chapter(body: str, title: str = "") -> str:
    head = f"<title>{title}</title>" if title else "<title/>"
    return (
        f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'
    )


def test_chapters_in_their_order() -> None:
    chapters = {
        "two.xhtml": chapter('<h2><a id="x"/>The lamp</h2><p>About 10<sup>6</sup> candelas.</p>', "Book"),
        "a%20first.xhtml": chapter("<p>Nobody came.</p><p hidden='hidden'>unseen</p>", "The tower"),
        "plate.xhtml": chapter('<img src="x.png"/>'),
    }
    book = office.epub(
        chapters,
        ["a%20first.xhtml", "plate.xhtml", "two.xhtml"],
        "<dc:title>Lamps</dc:title><dc:creator>Ines Holm</dc:creator><dc:date>1931-03-05</dc:date>",
    )
    found = read_epub(book, "x.epub")
    assert (found.title, found.author, found.published) == ("Lamps", "Ines Holm", "1931-03-05")
    assert found.text == "# The tower\n\nNobody came.\n\n## The lamp\n\nAbout 10^6 candelas."


def notebook_text(*cells: dict[str, Any], **more: Any) -> str:
    return read_notebook(json.dumps({"cells": cells, **more}).encode(), "x.ipynb").text


def code(source: object, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": outputs}


def test_texts_and_code() -> None:
    cells = ({"cell_type": "markdown", "source": ["# Depth\n", "See [x](y)."]}, code(["a = 1\n", "a"]), code(" "))
    text = notebook_text(*cells, metadata={"language_info": {"name": "julia"}})
    assert text == "# Depth\nSee x.\n\n```julia\na = 1\na\n```"


FRAME = ["<table><tr><th></th><th>a</th></tr>", "<tr><td>0</td><td></td></tr></table>"]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"output_type": "stream", "text": ["1\n", "2\n"]}, "```\n1\n2\n```"),
        ({"data": {"text/plain": "7", "image/png": "iVBO"}}, "```\n7\n```"),
        ({"data": {"text/plain": "x", "text/markdown": "**7** [m](u)"}}, "**7** m"),
        ({"data": {"text/plain": "x", "text/latex": "$x^2$"}}, "$x^2$"),
        ({"data": {"text/plain": "x", "text/html": FRAME}}, "|  | a |\n|---|---|\n| 0 |  |"),
        ({"data": {"text/plain": "<Plot>", "text/html": "<div id=plot></div>"}}, "```\n<Plot>\n```"),
        ({"ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31m"]}, "```\nValueError: no\n```"),
    ],
)
def test_what_code_printed(output: dict[str, Any], text: str) -> None:
    assert notebook_text(code("f()", output)) == f"```\nf()\n```\n\n{text}"


def test_format_3() -> None:
    sheet = {"cells": [{"cell_type": "heading", "level": 2, "source": "Depth"}, {"cell_type": "code", "input": "1"}]}
    assert notebook_text(worksheets=[sheet]) == "## Depth\n\n```\n1\n```"


def captions_text(source: str) -> str:
    return read_captions(source.encode(), None, "talks/lamp.vtt").text


def test_cues_make_paragraphs() -> None:
    cues = "".join(
        f"\n00:{n:02}.000 --> 00:{n:02}.900\nSentence {n} says where the lamp stands on the coast.\n" for n in range(9)
    )
    text = captions_text(f"WEBVTT - Talk\nKind: captions\n\nSTYLE\n::cue {{}}\n\nNOTE by hand\n{cues}")
    assert text.startswith("[00:00] Sentence 0 says where the lamp stands on the coast. Sentence 1 says")
    assert text.count("\n\n[00:0") == 1 and "hand" not in text and "-->" not in text


def test_markup_settings_and_voices() -> None:
    first = "1\n01:00:01.000 --> 01:00:03.000 align:start line:0\n<v.loud Ines>The lamp &amp; its <i>oil</i>\n\n"
    second = "01:00:03.000 --> 01:00:05.000\n<v Ines>burn.\n\n01:00:06.000 --> 01:00:08.000\n<v Bo>Not &lt;here&gt;.\n"
    text = captions_text(f"WEBVTT\n\n{first}{second}")
    assert text == "[01:00:01] Ines: The lamp & its oil burn.\n\n[01:00:06] Bo: Not <here>."


def test_lines_that_scroll_are_said_once() -> None:
    first = "00:01.000 --> 00:02.000\n \nthe lamp<00:01.500><c> is</c>\n\n"
    second = "00:02.000 --> 00:02.010\nthe lamp is\n \n\n00:02.010 --> 00:04.000\nthe lamp is\nlit at six\n\n"
    last = "00:04.000 --> 00:04.010\nlit at six\n \n\n00:09.000 --> 00:10.000\nthe lamp is\n"
    assert captions_text(f"WEBVTT\n\n{first}{second}{last}") == "[00:01] the lamp is lit at six the lamp is"


def test_subrip_in_an_older_charset() -> None:
    first = "1\r\n00:00:01,000 --> 00:00:03,000\r\n{\\an8}<i>灯塔每晚六点亮灯，</i>\r\n\r\n"
    second = "2\r\n00:00:03,500 --> 00:00:05,000\r\n直到天明。\r\n"
    found = read_captions((first + second).encode("gbk"), None, "lamp.srt")
    assert (found.title, found.text) == ("lamp", "[00:00:01] 灯塔每晚六点亮灯， 直到天明。")


def text_of(body: bytes, kind: str) -> str:
    return read_office(body, "x", kind).text


def test_sheets() -> None:
    assert text_of(office.xls(["Pier", "2022", "2023"], ["North", "", 3.5]), XLS) == (
        "## Fees\n\n| Pier | 2022 | 2023 |\n|---|---|---|\n| North |  | 3.5 |"
    )
    cell = "<table:table-cell office:value-type='string'><text:p>{}</text:p></table:table-cell>"
    row = "<table:table-row>{}{}</table:table-row>"
    texts = (("Pier", "2022"), ("North", "7"))
    rows = "".join(row.format(*map(cell.format, two)) for two in texts)
    table = f"<office:spreadsheet><table:table table:name='Fees'>{rows}</table:table></office:spreadsheet>"
    assert text_of(office.opendocument(ODS, table), ODS) == "## Fees\n\n| Pier | 2022 |\n|---|---|\n| North | 7 |"


def test_slides() -> None:
    box = "<draw:frame><draw:text-box><text:p>The tower opens at six.</text:p></draw:text-box></draw:frame>"
    page = f"<office:presentation><draw:page draw:name='Hours'>{box}</draw:page></office:presentation>"
    assert text_of(office.opendocument(ODP, page), ODP) == "## Hours\n\nThe tower opens at six."


def test_rich_text() -> None:
    rtf = rb"{\rtf1\ansi {\b The lamp} gives 4.1\'d710{\super 5} candelas, the 3{\super rd}; {\strike nine} ten."
    assert text_of(rtf + rb"\par Caf\'e9.}", RTF) == "The lamp gives 4.1×10^5 candelas, the 3rd; ~~nine~~ ten.\n\nCafé."


def test_a_mail_has_its_subject_as_heading() -> None:
    found = read_office(office.msg("Berth fees", "Anna Berg", "The ferry leaves at seven."), "x.msg", MSG)
    assert (found.title, found.author) == ("Berth fees", "Anna Berg")
    assert found.text == "# Berth fees\n\nFrom: Anna Berg\n\nThe ferry leaves at seven."


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xberg", None)
    with pytest.raises(IngestError, match="make install-office"):
        read_office(b"{\\rtf1 text}", "notes.rtf", RTF)
