"""Tables (.csv, .tsv) as Markdown: one table, or one list per row if rows are too long."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.charset import decode
from rag.reading.documents.properties import build_extracted
from rag.reading.extraction.clean import clean_text
from rag.reading.extraction.metadata import name_of
from rag.reading.layout.tables import markdown_row
from rag.reading.parser import Extracted
from rag.web.guard import printable

MAX_COLUMNS = 500
_MAX_CELL = 200_000
_DELIMITERS = ",\t;|"
_SAMPLE_LINES = 60
_MAX_ROW_LENGTH = 500
"""Rows longer than this (median) are written as lists, each value after its column's name."""
_NUMBER = lazy_regex(r"[-+]?[\d.,\s%]+|\d{4}-\d{2}-\d{2}.*")
# A year, a span of two years, a month or a day: numbers that are column names.
_PERIOD = lazy_regex(r"(?:1[5-9]|2[01])\d\d(?:[-/–]\d{2,4})?(?:-\d{2})?|\d{1,2}\.\d{1,2}\.\d{2,4}")

Row = list[str]


def read_table(body: bytes, charset: str | None, url: str) -> Extracted:
    """Return a table's rows under its header.

    Raises IngestError: "table_broken", "table_too_wide", "document_too_long", "document_no_text".
    """
    rows = _read_rows(clean_text(decode(body, charset, url)), url)
    return build_extracted("\n\n".join(write_tables(rows, url)), url, own_title=name_of(url))


def write_tables(rows: Sequence[Row], url: str) -> Iterator[str]:
    """Yield rows of cells as Markdown tables, separated at blank rows; a lone cell above a header becomes a line.

    Raises IngestError("table_too_wide").
    """
    blocks: list[list[Row]] = []
    for is_blank, group in groupby(rows, key=lambda row: not any(row)):
        if is_blank:
            continue
        block = list(group)
        if blocks and _continues_table(blocks[-1][-1], block[0]):
            blocks[-1] += block
        else:
            blocks.append(block)
    for block in blocks:
        columns = _columns(*block)
        while block and _columns(block[0]) == columns[:1] and (len(block) == 1 or len(columns) > 1):
            yield "".join(block.pop(0))
        columns = _columns(*block)
        if len(columns) > MAX_COLUMNS:
            raise IngestError("table_too_wide", url=printable(url), columns=len(columns), limit=MAX_COLUMNS)
        if block:
            names, rest = _split_header([[row[i] if i < len(row) else "" for i in columns] for row in block])
            yield "\n".join(_write_lists(names, rest) if _are_long(rest) else _write_table(names, rest))


def _columns(*rows: Row) -> list[int]:
    """Return the indexes of the columns that are not empty."""
    return sorted({i for row in rows for i, cell in enumerate(row) if cell})


def _continues_table(above: Row, below: Row) -> bool:
    """Return whether a row after a blank one continues the table: it has numbers in the same columns."""
    figures = [i for i in _columns(above) if _NUMBER.fullmatch(above[i])]
    same = set(_columns(below)) <= set(_columns(above)) if figures else _columns(below) == _columns(above)
    return (
        same
        and len(_columns(below)) > 1
        and all(_NUMBER.fullmatch(cell) for i in figures for cell in below[i : i + 1] if cell)
    )


def find_delimiter(source: str) -> str:
    """Return the character that splits the first lines into the most columns consistently; a comma if none does."""
    sample = "\n".join(source.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES])[:200_000]
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if any(row)]
        except csv.Error:
            continue
        usual = max(set(widths), key=widths.count, default=1)
        agreement = widths.count(usual) / max(1, len(widths))
        score = agreement * min(usual, 20) if usual > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _read_rows(source: str, url: str) -> list[Row]:
    """Parse the rows; each cell becomes one line."""
    before = csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(source, newline=""), delimiter=find_delimiter(source))
    rows: list[Row] = []
    try:
        for row in reader:
            cells = [" ".join(cell.split()) for cell in row]
            rows.append(cells)
    except csv.Error as error:
        raise IngestError("table_broken", url=printable(url), line=reader.line_num, limit=_MAX_CELL) from error
    finally:
        csv.field_size_limit(before)
    return rows


def _split_header(rows: list[Row]) -> tuple[Row, list[Row]]:
    """Return the column names and the rows below them."""
    if len(rows) < 2 or not _is_header(rows[0], rows[1:]):
        return [str(i) for i in range(1, len(rows[0]) + 1)], rows
    names, below = rows[0], rows[1:]
    if len(below) > 1 and _is_subheader(names, below[0]):
        names, below = (
            [" ".join(dict.fromkeys(filter(None, pair))) for pair in zip(names, below[0], strict=True)],
            below[1:],
        )
    return [name or str(i) for i, name in enumerate(names, 1)], below


def _is_subheader(names: Row, row: Row) -> bool:
    """Return whether a row names the parts of columns that share one name above, as of a merged cell."""
    shared = [i for i, name in enumerate(names) if name and names.count(name) > 1]
    parts = [row[i] for i in shared]
    return len(set(parts)) > 1 and not any(not part or _NUMBER.fullmatch(part) for part in parts)


def _is_header(first: Row, below: Sequence[Row]) -> bool:
    """Return whether the first row is a header: no numbers, or periods that most rows below it do not have."""
    numbers = [place for place, cell in enumerate(first) if _NUMBER.fullmatch(cell) and cell]
    return not numbers or (
        _are_periods(first, numbers) and 2 * sum(_are_periods(row, numbers) for row in below) < len(below)
    )


def _are_periods(row: Row, places: Sequence[int]) -> bool:
    cells = [row[place] for place in places if place < len(row)]
    return len(cells) == len(places) and all(map(_PERIOD.fullmatch, cells))


def _are_long(rows: Sequence[Row]) -> bool:
    return bool(rows) and median(sum(map(len, row)) for row in rows[:2000]) > _MAX_ROW_LENGTH


def _write_table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    yield markdown_row(header)
    yield "| " + " | ".join("---" for _ in header) + " |"
    for row in rows:
        yield markdown_row([*row, *[""] * (len(header) - len(row))])


def _write_lists(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield from (f"- {name}: {cell}" for name, cell in zip(header, row, strict=False) if cell)
        yield ""
