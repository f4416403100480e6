"""Tables (.csv, .tsv) as Markdown: one table, or one list a row where the rows are too long for one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from statistics import median

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.extraction.clean import clean_text
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.parser import Extracted
from rag.text import detect_language
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

MAX_COLUMNS = 500
_MAX_CELL = 200_000
_DELIMITERS = ",\t;|"
_SAMPLE_LINES = 60
_MAX_ROW = 500
"""Rows that are longer than this on average are written as lists, each value beside its column's name."""
_NUMBER = re.compile(r"[-+]?[\d.,\s%]+|\d{4}-\d{2}-\d{2}.*")

Row = list[str]


def read_table(body: bytes, charset: str | None, url: str) -> Extracted:
    """A table's rows under its header.

    Raises IngestError: "table_broken", "table_too_wide", "document_too_long", "document_no_text".
    """
    source = clean_text(decode(body, charset))
    rows = _rows(source, url)
    if not any(cell for row in rows for cell in row):
        raise IngestError("document_no_text", url=shown(url))
    width = max(len(row) for row in rows)
    if width > MAX_COLUMNS:
        raise IngestError("table_too_wide", url=shown(url), columns=width, limit=MAX_COLUMNS)
    header, rows = _header(rows, width)
    text = "\n".join(_lists(header, rows) if _are_long(rows) else _table(header, rows))
    if len(text) > MAX_CHARACTERS:
        raise IngestError("document_too_long", url=shown(url), limit=MAX_CHARACTERS // 1_000_000)
    return Extracted(name_of(url), detect_language(text), site_of(url), "", text)


def find_delimiter(source: str) -> str:
    """The character that cuts the first lines into the most columns that agree; a comma when none does."""
    sample = "\n".join(source.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES])[:200_000]
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if any(row)]
        except csv.Error:
            continue
        usual = max(set(widths), key=widths.count, default=1)
        agreeing = widths.count(usual) / max(1, len(widths))
        score = agreeing * min(usual, 20) if usual > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _rows(source: str, url: str) -> list[Row]:
    """The rows that hold something, cells on one line each."""
    before = csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(source, newline=""), delimiter=find_delimiter(source))
    rows: list[Row] = []
    try:
        for row in reader:
            cells = [" ".join(cell.split()) for cell in row]
            if any(cells):
                rows.append(cells)
    except csv.Error as error:
        raise IngestError("table_broken", url=shown(url), line=reader.line_num, limit=_MAX_CELL) from error
    finally:
        csv.field_size_limit(before)
    return rows


def _header(rows: list[Row], width: int) -> tuple[Row, list[Row]]:
    """The names of `width` columns and the rows below them; numbers name no column."""
    first = rows[0]
    is_header = len(rows) > 1 and not any(_NUMBER.fullmatch(cell) for cell in first if cell)
    names = first if is_header else []
    header = [(names[i] if i < len(names) else "") or str(i + 1) for i in range(width)]
    return header, rows[1:] if is_header else rows


def _are_long(rows: Sequence[Row]) -> bool:
    return bool(rows) and median(sum(map(len, row)) for row in rows[:2000]) > _MAX_ROW


def _table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    yield markdown_row(header)
    yield "| " + " | ".join("---" for _ in header) + " |"
    for row in rows:
        yield markdown_row([*row, *[""] * (len(header) - len(row))])


def _lists(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield from (f"- {name}: {cell}" for name, cell in zip(header, row, strict=False) if cell)
        yield ""


def markdown_row(cells: Sequence[str]) -> str:
    """Cells, none of them with a line break, as a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
