"""Workbooks: sheets by name, cells in their columns, values as displayed."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from typing import Any

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles import Font

from rag.reading.documents.table import read_xlsx
from tests.support import office


def book_of(*rows: list[Any]) -> Any:
    book = openpyxl.Workbook()
    book.active.title = "Fees"
    for row in rows:
        book.active.append(row)
    return book


def text_of(book: Any) -> str:
    return read_xlsx(office.saved(book), "x.xlsx").text


def cell_of(value: object, form: str = "General") -> str:
    """Return the text of a cell with this value and number format."""
    book = book_of(["Pier", "Value"], ["North", value])
    book.active["B2"].number_format = form
    return text_of(book).rpartition("| North | ")[2].removesuffix(" |")


def test_sheets_and_empty_cells() -> None:
    book = book_of(["Pier", 2022, 2023], ["North", None, 3.5], ["South", 4])
    book.create_sheet("Notes")["C7"] = "Closed in winter."
    book.create_sheet("Empty")
    secret = book.create_sheet("Secret")
    secret["A1"], secret.sheet_state = "not shown", "veryHidden"
    book.properties.title, book.properties.creator = "Berths", "Anna Berg"
    found = read_xlsx(office.saved(book), "x.xlsx")
    assert (found.title, found.author) == ("Berths", "Anna Berg")
    assert found.text == (
        "## Fees\n\n| Pier | 2022 | 2023 |\n| --- | --- | --- |\n| North |  | 3.5 |\n| South | 4 |  |\n\n"
        "## Notes\n\nClosed in winter."
    )


def test_titles_and_blank_rows_part_tables() -> None:
    book = book_of(
        ["Fees of 2024"],
        ["in crowns"],
        [None, "Pier", "May"],
        [None, "North", 3],
        [],
        ["Boat", "Crew"],
        ["Tern", "two"],
    )
    assert text_of(book) == (
        "## Fees\n\nFees of 2024\n\nin crowns\n\n| Pier | May |\n| --- | --- |\n| North | 3 |\n\n"
        "| Boat | Crew |\n| --- | --- |\n| Tern | two |"
    )


def test_merged_cells_are_said_in_each_row_and_column() -> None:
    book = book_of(["Fees", None, None], ["Coast", 2022, None], ["North", 3, 4], [None, 5, 6])
    for merged in ("A1:C1", "B2:C2", "A3:A4"):
        book.active.merge_cells(merged)
    assert text_of(book) == (
        "## Fees\n\nFees\n\n| Coast | 2022 | 2022 |\n| --- | --- | --- |\n| North | 3 | 4 |\n| North | 5 | 6 |"
    )


def test_a_second_row_of_headers_divides_what_the_first_spans() -> None:
    book = book_of(["Coast", 2022, None], [None, "Q1", "Q2"], ["North", 3, 4])
    for merged in ("A1:A2", "B1:C1"):
        book.active.merge_cells(merged)
    assert text_of(book) == "## Fees\n\n| Coast | 2022 Q1 | 2022 Q2 |\n| --- | --- | --- |\n| North | 3 | 4 |"


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.1 + 0.2, "General", "0.3"),
        (1234567, "#,##0", "1234567"),
        (0.125, "0.0%", "12.5%"),
        (45, '"€"#,##0.00;[Red]-"€"#,##0.00', "€45"),
        (45, "_-* #,##0.00\\ [$€-407]_-;-* #,##0.00\\ [$€-407]_-", "45 €"),
        (7, '0 "m2"', "7 m2"),
        (True, "General", "TRUE"),
        ("007", "@", "007"),
        ("#N/A", "General", "#N/A"),
        ("two\nlines | bar", "General", "two lines \\| bar"),
        (date(2024, 3, 5), "dd/mm/yyyy", "2024-03-05"),
        (date(2024, 3, 1), "mmm yy", "2024-03"),
        (date(2024, 1, 1), "yyyy", "2024"),
        (datetime(2024, 3, 5, 14, 30), "dd/mm/yy hh:mm", "2024-03-05 14:30"),
        (time(9, 5), "hh:mm", "09:05"),
    ],
)
def test_values(value: object, form: str, text: str) -> None:
    assert cell_of(value, form) == text


def test_formats_of_and_within_a_cell() -> None:
    raised, struck = InlineFont(vertAlign="superscript"), InlineFont(strike=True)
    assert (
        cell_of(CellRichText("10", TextBlock(raised, "6"), " or ", TextBlock(struck, "88"), " 64"))
        == "10^6 or ~~88~~ 64"
    )
    book = book_of(["Pier", "Fee"], ["North", 88])
    book.active["B2"].font = Font(strike=True)
    assert text_of(book).endswith("| North | ~~88~~ |")


def test_a_formula_by_its_value_or_as_it_is_without_one() -> None:
    book = book_of(["Pier", "Fee"], ["North", "=2*3"], ["South", 7])
    assert "| North | =2*3 |\n| South | 7 |" in text_of(book)
    sheet = "xl/worksheets/sheet1.xml"
    calculated = re.sub(rb"(</f>)<v ?/?>(?:</v>)?", rb"\1<v>6</v>", office.part(office.saved(book), sheet))
    solved = office.with_part(office.saved(book), sheet, calculated)
    assert "| North | 6 |\n| South | 7 |" in read_xlsx(solved, "x.xlsx").text


def test_cells_in_the_farthest_corner() -> None:
    book = book_of(["Pier", "Fee"], ["North", 3])
    book.active["XFD1048576"] = "corner"
    assert text_of(book) == "## Fees\n\n| Pier | Fee |\n| --- | --- |\n| North | 3 |\n\ncorner"
