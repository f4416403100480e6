"""OpenDocument texts: the visible text, in reading order."""

from __future__ import annotations

from rag.reading.documents.odt import read_odt
from tests.support import office


def text_of(body: str, styles: str = "", **parts: str) -> str:
    return read_odt(office.odt(body, styles, **parts), "x.odt").text


def style(name: str, properties: str = "", parent: str = "") -> str:
    return (
        f"<style:style style:name='{name}' style:parent-style-name='{parent}'>"
        f"<style:text-properties {properties}/></style:style>"
    )


def cell(text: str, properties: str = "") -> str:
    return f"<table:table-cell {properties}><text:p>{text}</text:p></table:table-cell>"


def test_headings_paragraphs_and_lists() -> None:
    body = (
        "<text:h text:outline-level='1'>Fees</text:h><text:section><text:p>By<text:s text:c='3'/>day<text:line-break/>"
        "or <text:a>night</text:a>.</text:p></text:section><text:section text:display='none'><text:p>x</text:p>"
        "</text:section><text:list text:style-name='L'><text:list-item><text:p>open</text:p><text:list><text:list-item>"
        "<text:p>slowly</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>close</text:p>"
        "</text:list-item></text:list>"
    )
    numbered = "<text:list-level-style-number text:level='1' style:num-format='a'/>"
    styles = f"<text:list-style style:name='L'>{numbered}</text:list-style>"
    assert text_of(body, styles) == "## Fees\n\nBy day\nor night.\n\n- a. open\n  - slowly\n- b. close"


def test_runs_by_their_styles_and_those_above() -> None:
    styles = style("Old", "style:text-line-through-style='solid'") + style("Older", "fo:color='#000'", "Old")
    styles += style("Up", "style:text-position='super 58%'") + style("No", "text:display='none'") + style("A", "", "A")
    spans = (("Older", "88"), ("A", " 64 at 10"), ("Up", "6"), ("No", "unseen"))
    body = "".join(f"<text:span text:style-name='{name}'>{text}</text:span>" for name, text in spans)
    assert (
        text_of(f"<text:p>{body} litres &amp; &lt;more&gt;.</text:p>", styles) == "~~88~~ 64 at 10^6 litres & <more>."
    )


def test_notes_comments_and_boxes_follow_their_paragraph() -> None:
    note = (
        "<text:note><text:note-citation>ii</text:note-citation><text:note-body><text:p>In winter half.</text:p>"
        "</text:note-body></text:note>"
    )
    comment = "<office:annotation><dc:creator>Bo</dc:creator><text:p>Sure?</text:p></office:annotation>"
    box = "<draw:frame><draw:text-box><text:p>Bring a lamp.</text:p></draw:text-box></draw:frame>"
    assert text_of(f"<text:p>The fee{note} is{comment} {box}due.</text:p><text:p>End.</text:p>") == (
        "The fee[^ii] is[^c1] due.\n\n[^ii]: In winter half.\n\n[^c1]: Comment by Bo: Sure?\n\nBring a lamp.\n\nEnd."
    )


def test_tables_keep_their_columns() -> None:
    rows = (
        cell("Coast") + cell("2022", "table:number-columns-spanned='2'") + "<table:covered-table-cell/>",
        cell("North", "table:number-rows-spanned='2'") + "<table:table-cell/>" + cell("3"),
        "<table:covered-table-cell/>" + cell("7", "table:number-columns-repeated='2'"),
    )
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    endless = "<table:table-row table:number-rows-repeated='99999'><table:table-cell/></table:table-row>"
    assert text_of(f"<table:table>{table}{endless}</table:table>") == (
        "| Coast | 2022 | 2022 |\n|---|---|---|\n| North |  | 3 |\n| North | 7 | 7 |"
    )


def test_rows_of_headers() -> None:
    rows = [f"<table:table-row>{cell(one)}{cell(two)}</table:table-row>" for one, two in (("9", "8"), ("7", "6"))]
    table = f"<table:table><table:table-header-rows>{rows[0]}</table:table-header-rows>{rows[1]}</table:table>"
    assert text_of(table) == "| 9 | 8 |\n|---|---|\n| 7 | 6 |"


def test_a_formula_is_latex() -> None:
    math = "<math xmlns='http://www.w3.org/1998/Math/MathML'><mfrac><mi>s</mi><mi>t</mi></mfrac></math>"
    body = "<text:p>So <draw:frame><draw:object xlink:href='./Object 1'/></draw:frame> holds.</text:p>"
    assert text_of(body, **{"Object 1/content.xml": math}) == r"So \frac{s}{t} holds."


def test_deleted_text_is_left_out() -> None:
    deleted = "<text:changed-region><text:deletion><text:p>30</text:p></text:deletion></text:changed-region>"
    assert text_of(f"<text:tracked-changes>{deleted}</text:tracked-changes><text:p>It is 45.</text:p>") == "It is 45."


def test_properties() -> None:
    about = office.odt_properties(
        "<dc:title>Rules</dc:title><meta:initial-creator>Ana</meta:initial-creator>"
        "<meta:creation-date>2021-05-06T10:00:00</meta:creation-date><dc:date>2022-01-02T00:00:00</dc:date>"
    )
    found = read_odt(office.odt("<text:p>Pay.</text:p>", **{"meta.xml": about}), "x.odt")
    assert (found.title, found.author, found.published, found.modified) == ("Rules", "Ana", "2021-05-06", "2022-01-02")
