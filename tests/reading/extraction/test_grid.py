"""Tables as rows and columns: empty and spanned cells, headers of several rows, and layout tables."""

from __future__ import annotations

import time

import pytest

from rag.reading.extract import html_to_markdown

HEAD = "<tr><th>Pier</th><th>Day</th><th>Night</th></tr>"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("<tr><td>A<td><td>7", "| A |  | 7 |"),
        ("<tr><td>A<td>4", "| A | 4 |  |"),
        ("<tr><td rowspan=2>A<td>4<td>7<tr><td>5<td>8", "| A | 4 | 7 |\n| A | 5 | 8 |"),
        ("<tr><td>A<td>4<td rowspan=2>7<tr><td>B<td>5", "| A | 4 | 7 |\n| B | 5 | 7 |"),
        ("<tr><td>A<td colspan=2>closed", "| A | closed | closed |"),
        ("<tr><td colspan=2>Both piers<td>7<tr><td>A<td>4<td>9", "| Both piers |  | 7 |\n| A | 4 | 9 |"),
        ("<tr><td colspan=3>East<tr><td>A<td>4<td>7", "| East |  |  |\n| A | 4 | 7 |"),
        ("<tr><td><td><td><tr><td>A<td>4<td>7", "| A | 4 | 7 |"),
    ],
)
def test_cells(rows: str, text: str) -> None:
    assert html_to_markdown(f"<table>{HEAD}{rows}</table>") == f"| Pier | Day | Night |\n|---|---|---|\n{text}"


COLUMN = "<table><tr><th><tr><td>Ruth<tr><td>Vik</table>"
SCROLLED = "<table><tr><th>Won<th>Lost<tr><td>4<td>7<tr><td>5<td>8</table>"


def test_a_frozen_column_is_part_of_the_table_beside_it() -> None:
    joined = "|  | Won | Lost |\n|---|---|---|\n| Ruth | 4 | 7 |\n| Vik | 5 | 8 |"
    assert html_to_markdown(f"<div>{COLUMN}<div>\n{SCROLLED}</div></div>") == joined
    assert html_to_markdown(f"<div>{COLUMN}</div>2024<div>{SCROLLED}</div>") != joined
    assert "| Ruth |" not in html_to_markdown(COLUMN + SCROLLED.replace("</table>", "<tr><td>6<td>9</table>"))


@pytest.mark.parametrize(
    ("table", "first"),
    [
        ("<tr><th>Name<td>Ruth<tr><th>Age<td>90", "|  |  |\n|---|---|\n| Name | Ruth |\n| Age | 90 |"),
        ("<tr><td>Name:<td>Ruth<tr><td>Home:<td>Vik", "|  |  |\n|---|---|\n| Name: | Ruth |\n| Home: | Vik |"),
        ("<tr><td>Boat<td>Crew<tr><td>Ruth<td>2", "| Boat | Crew |\n|---|---|\n| Ruth | 2 |"),
        ("<tr><td><th>A<th>B<tr><th>x<td>1<td>2", "|  | A | B |\n|---|---|---|\n| x | 1 | 2 |"),
        (
            "<tr><th rowspan=2>Pier<th colspan=2>Fee<tr><th>Day<th>Night<tr><td>A<td>4<td>7",
            "| Pier | Fee Day | Fee Night |\n|---|---|---|\n| A | 4 | 7 |",
        ),
        ("<tr><th colspan=2>Fees<tr><th>Pier<th>Day<tr><td>A<td>4", "Fees\n\n| Pier | Day |\n|---|---|\n| A | 4 |"),
        ("<tr><th>Pier<th colspan=2>Fee<tr><td>A<td colspan=2>4", "| Pier | Fee |\n|---|---|\n| A | 4 |"),
    ],
)
def test_headers(table: str, first: str) -> None:
    assert html_to_markdown(f"<table>{table}</table>") == first


@pytest.mark.parametrize(
    "html",
    [
        "<table role=presentation><tr><td>one<td>two<tr><td>three<td>four</table>",
        "<table><tr><td>one<tr><td>two<tr><td>three<tr><td>four</table>",
        f"<table><tr><td>one<td>two<tr><td>three<td>{'four ' * 100}</table>",
        "<table><tr><td><table><tr><td>one<td>two</table><td>three<tr><td>four<td>five</table>",
    ],
)
def test_layout(html: str) -> None:
    text = html_to_markdown(html)
    assert text.count("|---|") <= 1
    assert "three |" not in text and "| three" not in text


def test_a_table_within_a_cell_of_one_that_names_its_columns() -> None:
    inner = "<table><tr><td>4<td>crowns<tr><td>7<td>crowns</table>"
    text = html_to_markdown(f"<table>{HEAD}<tr><td>A<td>{inner}<td>9</table>")
    assert text.endswith("| A | 4 crowns; 7 crowns | 9 |")


def test_spans_that_would_fill_the_memory() -> None:
    cells = "<td colspan=1000 rowspan=60000>x" * 2000
    began = time.process_time()
    text = html_to_markdown(f"<table>{HEAD}<tr>{cells}<tr>{cells}</table>")
    assert text.count("x") >= 4000 and len(text) < 100_000
    assert time.process_time() - began < 5
