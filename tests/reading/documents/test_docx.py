"""Word documents: headings, lists, tables and properties, without hidden text."""

from __future__ import annotations

from datetime import datetime

import docx
import pytest
from docx.document import Document

from rag.reading.documents.docx import read_docx
from tests.support import office


def text_of(document: Document) -> str:
    return read_docx(office.saved(document), "x.docx").text


def test_headings_paragraphs_and_lists() -> None:
    document = docx.Document()
    document.add_heading("The handbook", 0)
    document.add_heading("Leave", 1)
    document.add_paragraph("Twenty days a year.")
    document.add_paragraph("in spring", style="List Bullet")
    document.add_paragraph("in autumn", style="List Bullet")
    document.add_heading("How to ask", 2)
    document.add_paragraph("write", style="List Number")
    document.add_paragraph("wait", style="List Number")
    assert text_of(document) == (
        "# The handbook\n\n## Leave\n\nTwenty days a year.\n\n- in spring\n- in autumn\n\n"
        "### How to ask\n\n1. write\n2. wait"
    )


def test_tables_with_merged_cells() -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall | one"
    assert text_of(document) == (
        "| wide | wide | 02 |\n|---|---|---|\n| 10 | 11 | tall \\| one |\n| 20 | 21 | tall \\| one |"
    )


def test_properties() -> None:
    document = docx.Document()
    document.add_paragraph("Twenty days a year.")
    about = document.core_properties
    about.title, about.author = "Leave", "Anna Berg"
    about.created, about.modified = datetime(2024, 3, 5), datetime(2024, 4, 1)
    found = read_docx(office.saved(document), "leave.docx")
    stated = found.title, found.author, found.published, found.modified
    assert stated == ("Leave", "Anna Berg", "2024-03-05", "2024-04-01")
    about.title, about.author = "Document1", "python-docx"
    found = read_docx(office.saved(document), "https://example.com/leave.docx")
    assert "leave" in found.title and found.author == ""


def paragraph(*runs: str, properties: str = "") -> str:
    return f"<w:p>{properties and f'<w:pPr>{properties}</w:pPr>'}{''.join(runs)}</w:p>"


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def text_in(body: str, **parts: str) -> str:
    return read_docx(office.docx(body, **parts), "x.docx").text


def test_deleted_text_is_dropped_and_inserted_text_kept() -> None:
    control = f"<w:sdt><w:sdtContent>{paragraph(run('Control'))}</w:sdtContent></w:sdt>"
    deleted = "<w:del><w:r><w:delText> deleted</w:delText></w:r></w:del>"
    assert text_in(control + paragraph(run("Seen"), deleted, f"<w:ins>{run(' inserted')}</w:ins>")) == (
        "Control\n\nSeen inserted"
    )


def test_notes_follow_the_paragraph_that_refers_to_them() -> None:
    body = paragraph(run("A fee of 45"), "<w:r><w:footnoteReference w:id='7'/></w:r>", run(" crowns is due."))
    body += paragraph(run("It is paid."), "<w:r><w:endnoteReference w:id='1'/></w:r>") + paragraph(run("The end."))
    assert text_in(
        body,
        footnotes=f"<w:footnote w:type='separator' w:id='-1'>{paragraph(run('rule'))}</w:footnote>"
        f"<w:footnote w:id='7'>{paragraph(run('In winter'))}{paragraph(run('half of it.'))}</w:footnote>",
        endnotes=f"<w:endnote w:id='1'>{paragraph(run('Since 1931.'))}</w:endnote>",
    ) == (
        "A fee of 45[^1] crowns is due.\n\n[^1]: In winter half of it.\n\n"
        "It is paid.[^i]\n\n[^i]: Since 1931.\n\nThe end."
    )


def test_notes_in_lists_and_tables_follow_them() -> None:
    reference = "<w:r><w:footnoteReference w:id='{}'/></w:r>"
    listed = "".join(
        paragraph(run(text), mark, properties="<w:pStyle w:val='ListBullet'/>")
        for text, mark in (("oil", reference.format(1)), ("wicks", ""))
    )
    cells = "".join(
        f"<w:tc>{paragraph(run(text), mark)}</w:tc>" for text, mark in (("a", reference.format(2)), ("b", ""))
    )
    notes = "".join(f"<w:footnote w:id='{n}'>{paragraph(run(f'Note {n}.'))}</w:footnote>" for n in (1, 2))
    styles = "<w:style w:styleId='ListBullet'><w:name w:val='List Bullet'/></w:style>"
    body = f"{listed}<w:tbl><w:tr>{cells}</w:tr></w:tbl>{paragraph(run('End.'))}"
    text = text_in(body, footnotes=notes, styles=styles)
    assert text == "- oil[^1]\n\n[^1]: Note 1.\n\n- wicks\n\n| a[^2] | b |\n|---|---|\n\n[^2]: Note 2.\n\nEnd."


def test_comments_are_notes_with_their_author() -> None:
    body = paragraph(run("The fee is 45 crowns."), "<w:r><w:commentReference w:id='0'/></w:r>")
    comments = f"<w:comment w:id='0' w:author='Ines Holm'>{paragraph(run('Still so?'))}</w:comment>"
    assert text_in(body, comments=comments) == ("The fee is 45 crowns.[^c1]\n\n[^c1]: Comment by Ines Holm: Still so?")


def test_a_note_that_refers_to_itself_ends() -> None:
    reference = "<w:r><w:footnoteReference w:id='1'/></w:r>"
    note = f"<w:footnote w:id='1'>{paragraph(run('Again.'), reference)}</w:footnote>"
    assert text_in(paragraph(run("One."), reference), footnotes=note) == "One.[^1]\n\n[^1]: Again."


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([run("Dogs may ", "<w:strike/>"), run("enter.", "<w:strike/><w:b/>"), run(" No.")], "~~Dogs may enter.~~ No."),
        ([run("10"), run("6", "<w:vertAlign w:val='superscript'/>"), run(" litres")], "10^6 litres"),
        ([run("10"), run("6", "<w:vertAlign w:val='baseline'/>"), run(" litres")], "106 litres"),
        ([run("seen"), run("unseen", "<w:vanish/>")], "seen"),
        ([run("seen"), run(" too", "<w:vanish w:val='0'/>")], "seen too"),
        (["<w:r><w:t>A</w:t><w:noBreakHyphen/><w:t>7</w:t><w:softHyphen/><w:t>B</w:t></w:r>"], "A-7B"),
        (["<w:r><w:sym w:font='Wingdings' w:char='F0FE'/></w:r>", run(" lit")], "☑ lit"),
        (["<w:r><w:sym w:font='Symbol' w:char='00B1'/></w:r>", run("5")], "±5"),
        ([run("\uf064m", "<w:rFonts w:ascii='Symbol'/>")], "δμ"),
        ([run("5 < 7 & 9 > 8".replace("&", "&amp;").replace("<", "&lt;"))], "5 < 7 & 9 > 8"),
    ],
)
def test_runs(runs: list[str], text: str) -> None:
    assert text_in(paragraph(*runs)) == text


def test_what_runs_and_paragraphs_have_by_their_styles() -> None:
    styles = (
        "<w:style w:type='character' w:styleId='Old'><w:rPr><w:strike/></w:rPr></w:style>"
        "<w:style w:type='character' w:styleId='Older'><w:basedOn w:val='Old'/></w:style>"
        "<w:style w:type='paragraph' w:styleId='H'><w:name w:val='Clause'/><w:basedOn w:val='Base'/></w:style>"
        "<w:style w:type='paragraph' w:styleId='Base'><w:name w:val='B'/><w:basedOn w:val='H'/>"
        "<w:pPr><w:outlineLvl w:val='1'/></w:pPr></w:style>"
    )
    body = paragraph(run("Fees"), properties="<w:pStyle w:val='H'/>") + paragraph(
        run("88", "<w:rStyle w:val='Older'/>"), run(" 64 crowns")
    )
    assert text_in(body, styles=styles) == "### Fees\n\n~~88~~ 64 crowns"


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def test_numbers_in_the_cells_of_a_table() -> None:
    numbering = f"<w:abstractNum w:abstractNumId='0'>{level(0, 'decimal', '%1.')}</w:abstractNum>"
    numbering += "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"
    rows = [[numbered(1, 0, ""), paragraph(run(text))] for text in ("open", "close")]
    text = text_in(table([paragraph(run("No.")), paragraph(run("Step"))], *rows), numbering=numbering)
    assert text == "| No. | Step |\n|---|---|\n| 1. | open |\n| 2. | close |"


def test_tables_of_long_texts_and_of_tables_stay_tables() -> None:
    head = [paragraph(run("Lamp")), paragraph(run("Text"))]
    long = "The keeper says at length what the tower needs. " * 12
    assert text_in(table(head, [paragraph(run("Holm")), paragraph(run(long))])).endswith(f"| Holm | {long.strip()} |")
    inner = table([paragraph(run("2021")), paragraph(run("310"))], [paragraph(run("2022")), paragraph(run("95"))])
    text = text_in(table(head, [paragraph(run("Skerry")), f"{inner}<w:p/>"]))
    assert text == "| Lamp | Text |\n|---|---|\n| Skerry | 2021 310; 2022 95 |"


def test_code_keeps_its_lines_and_indentation() -> None:
    styles = "<w:style w:styleId='C'><w:name w:val='Source Code'/></w:style>"
    lines = (paragraph(run(line), properties="<w:pStyle w:val='C'/>") for line in ("if lit:", "    wait()"))
    assert text_in("".join(lines), styles=styles) == "```\nif lit:\n    wait()\n```"


def test_a_text_box_is_a_paragraph_of_its_own() -> None:
    box = f"<w:txbxContent>{paragraph(run('Bring a lamp.'))}</w:txbxContent>"
    both = f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
    drawn = f"<w:r><mc:AlternateContent>{both}</mc:AlternateContent></w:r>"
    assert text_in(paragraph(run("Opens "), drawn, run("at six."))) == "Opens at six.\n\nBring a lamp."


def test_a_content_control_shows_what_was_filled_in() -> None:
    asked = "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    filled = f"<w:sdt><w:sdtContent>{run('Holm')}</w:sdtContent></w:sdt>"
    body = paragraph(run("Keeper: "), filled, asked.format(run("Click here"))) + asked.format(
        paragraph(run("Enter text"))
    )
    assert text_in(body) == "Keeper: Holm"


def numbered(name: int, level: int, text: str) -> str:
    return paragraph(run(text), properties=f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{name}'/></w:numPr>")


def level(depth: int, form: str, text: str) -> str:
    start = f"<w:lvl w:ilvl='{depth}'><w:start w:val='1'/>"
    return f"{start}<w:numFmt w:val='{form}'/><w:lvlText w:val='{text}'/></w:lvl>"


def test_numbers_are_counted_as_word_counts_them() -> None:
    levels = level(0, "decimal", "%1.") + level(1, "lowerRoman", "%1.%2") + level(2, "bullet", "x")
    numbering = (
        f"<w:abstractNum w:abstractNumId='0'>{levels}</w:abstractNum>"
        "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='0'/>"
        "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='7'/></w:lvlOverride></w:num>"
    )
    items = [(1, 0, "a"), (1, 1, "b"), (1, 1, "c"), (1, 2, "d"), (1, 0, "e"), (1, 1, "f"), (2, 0, "g"), (1, 0, "h")]
    assert text_in("".join(numbered(*item) for item in items), numbering=numbering) == (
        "1. a\n  - 1.i b\n  - 1.ii c\n    - d\n2. e\n  - 2.i f\n7. g\n8. h"
    )


def test_deleted_paragraph_marks_rows_and_cells() -> None:
    deleted = "<w:rPr><w:del w:id='1'/></w:rPr>"
    cell = "<w:tc><w:tcPr>{}</w:tcPr>{}</w:tc>".format
    row = "<w:tr><w:trPr>{}</w:trPr>{}</w:tr>".format
    cells = [cell("", paragraph(run(text))) for text in ("Lamp", "Range", "Skerry", "9")]
    table = row("", "".join(cells[:2])) + row("<w:del w:id='2'/>", cell("", paragraph(run("Old"))) + cells[3])
    table += row("", cells[2] + cell("<w:cellDel w:id='3'/>", paragraph(run("gone"))) + cells[3])
    body = paragraph(run("The limit "), properties=deleted) + paragraph(run("is 45.")) + f"<w:tbl>{table}</w:tbl>"
    assert text_in(body + paragraph(run("End"), properties=deleted)) == (
        "The limit is 45.\n\n| Lamp | Range |\n|---|---|\n| Skerry | 9 |\n\nEnd"
    )


def test_equations_are_latex() -> None:
    letter = "<m:r><m:t>{}</m:t></m:r>".format
    fraction = f"<m:f><m:num>{letter('s')}</m:num><m:den>{letter('t')}</m:den></m:f>"
    root = f"<m:rad><m:deg>{letter('3')}</m:deg><m:e>{letter('g')}</m:e></m:rad>"
    power = f"<m:sSup><m:e>{letter('x')}</m:e><m:sup>{letter('2')}</m:sup></m:sSup>"
    fenced = f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{power}</m:e></m:d>"
    body = paragraph(
        run("So "), f"<m:oMath>{letter('v=')}{fraction}{letter('+')}{root}{fenced}</m:oMath>", run(" holds.")
    )
    assert text_in(body) == r"So v=\frac{s}{t}+\sqrt[3]{g}[x^2] holds."
