"""Delimited tables: the delimiter is detected, the header stays with the rows, and limits apply."""

from __future__ import annotations

import pytest

from rag.ingest.chunking import get_chunker
from rag.reading.documents.table import find_delimiter, read_table


def text_of(source: str | bytes) -> str:
    return read_table(source.encode() if isinstance(source, str) else source, None, "prices.csv").text


def test_a_table() -> None:
    assert text_of('name,price,place\nTea,3.5,"Vik, harbour"\n"a|b","two\nlines"\n') == (
        "| name | price | place |\n| --- | --- | --- |\n| Tea | 3.5 | Vik, harbour |\n| a\\|b | two lines |  |"
    )


@pytest.mark.parametrize(
    ("source", "delimiter"),
    [
        ("a;b;c\n1,5;2,5;3", ";"),
        ("a\tb\n1, 2\t3", "\t"),
        ("a|b|c\n1|2|3", "|"),
        ('"x;y",b\n"1;2",c', ","),
        ("one column\nonly", ","),
    ],
)
def test_delimiters(source: str, delimiter: str) -> None:
    assert find_delimiter(source) == delimiter


@pytest.mark.parametrize(
    "header",
    [
        "Pier,2022,2023",
        ",2022,2023",
        "2021,2022,2023",
        "Pier,2022/23,2023/24",
        "Pier,2024-01,2024-02",
        "Pier,2023,note",
    ],
)
def test_periods_name_columns(header: str) -> None:
    names = [name or "1" for name in header.split(",")]
    assert text_of(f"{header}\nNorth,3,4\nSouth,5,6").startswith(f"| {' | '.join(names)} |\n| --- |")


@pytest.mark.parametrize(
    "rows", ["Jane,1985\nTom,1990\nAnn,2001", "2001,2002\n2003,2004", "1,2,3\n4,5,6", "a,1999.5\nb,2"]
)
def test_years_in_every_row_name_no_column(rows: str) -> None:
    assert text_of(rows).startswith("| 1 | 2 |")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "Fees of 2024,,\n,,\nPier,May,June\nNorth,3,4\nSouth,,6\n",
            "Fees of 2024\n\n| Pier | May | June |\n| --- | --- | --- |\n| North | 3 | 4 |\n| South |  | 6 |",
        ),
        ("Pier,May\nNorth,3\n,\nSouth,4\n", "| Pier | May |\n| --- | --- |\n| North | 3 |\n| South | 4 |"),
        (
            "Pier,May\nNorth,3\n,\nBoat,Crew\nTern,two\n",
            "| Pier | May |\n| --- | --- |\n| North | 3 |\n\n| Boat | Crew |\n| --- | --- |\n| Tern | two |",
        ),
        ("name,price", "| 1 | 2 |\n| --- | --- |\n| name | price |"),
        ("1,2\n3,4", "| 1 | 2 |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
    ],
    ids=["title", "blank row", "blank row, another table", "one row", "numbers"],
)
def test_where_tables_and_headers_begin(source: str, text: str) -> None:
    assert text_of(source) == text


def test_encodings() -> None:
    assert "| 茶 | 三元 |" in text_of("名称,价格\n茶,三元\n咖啡,四元\n汽水,两元\n".encode("gb18030"))


def test_long_rows_become_lists() -> None:
    rows = "".join(f'{n},"{"long text " * 80}"\n' for n in range(3))
    text = text_of(f"id,review\n{rows}")
    assert text.startswith("- id: 0\n- review: long text")
    assert "| ---" not in text


def test_the_header_goes_with_each_chunk() -> None:
    rows = "".join(f"Harbour {n},{n * 3},open in summer only\n" for n in range(200))
    chunks = get_chunker("recursive").split(
        text_of(f"name,berths,note\n{rows}"), lambda texts: pytest.fail("not needed")
    )
    assert len(chunks) > 3
    assert all("| name | berths | note |" in chunk.context + chunk.text for chunk in chunks)
