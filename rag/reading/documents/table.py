"""Readers for tables (.csv, .tsv) and workbooks (.xlsx): Markdown tables, or one list per row if rows are too long.

Each sheet of a workbook is under its name. Formulas are shown as their stored values, if there are any.
"""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from functools import partial
from html import escape
from itertools import groupby, repeat, zip_longest
from statistics import median
from typing import Any

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.documents.office import normalize_package, read_meta, report_broken
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.metadata import build_extracted, title_from_url, too_long_error
from rag.reading.extraction.render import format_table
from rag.reading.parser import ExtractedDocument
from rag.text import clean_text, collapse_spaces, lazy_regex
from rag.web.guard import printable
from rag.web.media import MAX_CHARACTERS

_MAX_COLUMNS = 500
_MAX_CELL = 200_000
_DELIMITERS = ",\t;|"
_SAMPLE_LINES = 60
_MAX_ROW_LENGTH = 500
"""Max. median length of rows; longer ones are written as lists, each value after its column's name."""
_NUMBER = lazy_regex(r"[-+]?[\d.,\s%]+|\d{4}-\d{2}-\d{2}.*")
# A year, a span of two years, a month or a day: numbers that may be column names.
_PERIOD = lazy_regex(r"(?:1[5-9]|2[01])\d\d(?:[-/–]\d{2,4})?(?:-\d{2})?|\d{1,2}\.\d{1,2}\.\d{2,4}")

Row = list[str]


def read_table(body: bytes, charset: str | None, url: str) -> ExtractedDocument:
    """Return a table's rows under its header.

    Raises IngestError: "table_broken", "table_too_wide", "document_too_long", "document_no_text".
    """
    rows = _read_rows(clean_text(decode(body, charset, url)), url)
    return build_extracted("\n\n".join(_write_tables(rows, url)), url, own_title=title_from_url(url))


def _write_tables(rows: Sequence[Row], url: str) -> Iterator[str]:
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
        if len(columns) > _MAX_COLUMNS:
            raise IngestError("table_too_wide", url=printable(url), columns=len(columns), limit=_MAX_COLUMNS)
        if block:
            names, rest = _split_header([[row[i] if i < len(row) else "" for i in columns] for row in block])
            is_long = rest and median(sum(map(len, row)) for row in rest[:2000]) > _MAX_ROW_LENGTH
            yield "\n".join(_write_lists(names, rest)) if is_long else format_table(names, rest)


def _columns(*rows: Row) -> list[int]:
    """Return the indexes of non-empty columns."""
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
    return max(_DELIMITERS, key=partial(_score_delimiter, sample))


def _score_delimiter(sample: str, delimiter: str) -> float:
    try:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if any(row)]
    except csv.Error:
        return 0.0
    usual = max(set(widths), key=widths.count, default=1)
    return widths.count(usual) / len(widths) * min(usual, 20) if usual > 1 else 0.0


def _read_rows(source: str, url: str) -> list[Row]:
    """Parse the rows; each cell becomes one line."""
    before = csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(source, newline=""), delimiter=find_delimiter(source))
    try:
        return [[collapse_spaces(cell) for cell in row] for row in reader]
    except csv.Error as error:
        raise IngestError("table_broken", url=printable(url), line=reader.line_num, limit=_MAX_CELL) from error
    finally:
        csv.field_size_limit(before)


def _split_header(rows: list[Row]) -> tuple[Row, list[Row]]:
    """Return the column names and the rows below them."""
    if len(rows) < 2 or not _is_header(rows[0], rows[1:]):
        return [str(i) for i in range(1, len(rows[0]) + 1)], rows
    names, below = rows[0], rows[1:]
    if len(below) > 1 and _is_subheader(names, below[0]):
        pairs = zip(names, below[0], strict=True)
        names, below = [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs], below[1:]
    return [name or str(i) for i, name in enumerate(names, 1)], below


def _is_subheader(names: Row, row: Row) -> bool:
    """Return whether a row subdivides columns that share a name above, as under a merged cell."""
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


def _write_lists(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield from (f"- {name}: {cell}" for name, cell in zip(header, row, strict=False) if cell)
        yield ""


_MAX_UNPACKED = 150_000_000
_UNCALCULATED = lazy_regex(rb"<f\b[^<>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>|</c>)")
# A number format: words around the digits, hidden parts, and after `;` the format of negative numbers.
_FORM = lazy_regex(
    r'"(?P<quoted>[^"]*)"|\[\$(?P<unit>[^\[\]-]*+)[^\[\]]*+\]|[_*].|\[[^\[\]]*\]'
    r"|\\?(?P<sign>[$€£¥₩₹% ])|(?P<digits>[0#?])|(?P<end>;)"
)
_TAGS = {"superscript": "sup", "subscript": "sub"}
_EMPTY_CELL: Any = {"value": None}
_MAX_FILLED = 200_000


def read_xlsx(body: bytes, url: str) -> ExtractedDocument:
    """Return the sheets of a workbook.

    Raises IngestError: "office_broken", "office_too_large", "table_too_wide", "document_too_long", "document_no_text".
    """
    with report_broken(url), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions, irrelevant here
        file = normalize_package(body, url, _MAX_UNPACKED)
        text = "\n\n".join(_write_sheets(file, url))
        about = read_meta(zipfile.ZipFile(file))
    return build_extracted(text, url, **about)


def _write_sheets(file: Any, url: str) -> Iterator[str]:
    import openpyxl

    book, budget = openpyxl.load_workbook(file, read_only=True, data_only=True, rich_text=True), MAX_CHARACTERS
    for sheet in (sheet for sheet in book.worksheets if sheet.sheet_state != "veryHidden"):  # not even listed in menus
        rows: dict[int, Row] = {}
        values = _create_parser(sheet)
        for number, row in _read_sheet(sheet, values):
            rows[number] = row
            budget -= sum(map(len, row))
            if budget < 0:
                raise too_long_error(url)
        _repeat_merged(rows, values.merged_cells.mergeCell if values.merged_cells else ())
        if rows:
            separated = [row for number in rows for row in ([], rows[number])[number - 1 in rows :]]
            yield "\n\n".join([f"## {' '.join(sheet.title.split())}", *_write_tables(separated, url)])


def _read_sheet(sheet: Any, values: Any) -> Iterator[tuple[int, Row]]:
    """Yield non-empty rows, up to their last non-empty cell, with their numbers."""
    from openpyxl.cell.read_only import ReadOnlyCell

    is_unsolved = _UNCALCULATED.search(sheet._get_source().read())
    formulas = _create_parser(sheet, values=False).parse() if is_unsolved else repeat((0, []))
    for (number, cells), (_, unsolved) in zip(values.parse(), formulas, strict=False):
        row: Row = []
        for cell, formula in zip_longest(cells, unsolved, fillvalue=_EMPTY_CELL):
            text = _show(ReadOnlyCell(sheet, **cell)) or _to_line(getattr(formula["value"], "text", formula["value"]))
            if text:
                row += [""] * (cell["column"] - 1 - len(row)) + [text]
        if row:
            yield number, row


def _create_parser(sheet: Any, *, values: bool = True) -> Any:
    """Create openpyxl's parser of a sheet's XML; its row reader drops rich text formats and merged cells."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    strings, source = sheet._shared_strings, sheet._get_source()
    return WorkSheetParser(source, strings, data_only=values, epoch=book.epoch, rich_text=True, **formats)


def _show(cell: Any) -> str:
    """Return a cell as displayed, but with all its digits."""
    value = cell.value
    if isinstance(value, list):  # rich text
        text = _to_line(html_to_markdown(f"<p>{''.join(map(_write_run, value))}</p>"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = _format_number(value, cell.number_format)
    elif isinstance(value, date | time):
        text = _format_moment(value, cell.number_format.lower())
    else:
        text = _to_line(str(value).upper() if isinstance(value, bool) else value)
    return f"~~{text}~~" if text and cell.font and cell.font.strike else text


def _to_line(value: object) -> str:
    return "" if value is None else collapse_spaces(str(value))


def _write_run(run: Any) -> str:
    font, text = getattr(run, "font", None), escape(str(run), quote=False)
    tags = (_TAGS.get(getattr(font, "vertAlign", None) or ""), "s" if getattr(font, "strike", None) else None)
    for tag in filter(None, tags):
        text = f"<{tag}>{text}</{tag}>"
    return text


def _format_number(value: float, form: str) -> str:
    """Return a number with the unit in its format: 12.5%, €3, 40 kg."""
    prefix, suffix, is_after = "", "", False
    for match in _FORM.finditer(form):
        is_after = is_after or match["digits"] is not None
        word = next(filter(None, match.group("quoted", "unit", "sign")), "")
        prefix, suffix = (prefix, suffix + word) if is_after else (prefix + word, suffix)
        if match["end"]:
            break
    value = value * 100 if "%" in prefix + suffix else value
    return f"{prefix}{value if isinstance(value, int) else format(value, '.15g')}{suffix}".strip()


def _format_moment(value: datetime | date | time, form: str) -> str:
    """Return a date, a time or both, as precise as its format."""
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    if isinstance(value, datetime) and value.time() != time():
        return value.isoformat(" ", "seconds" if value.second else "minutes")
    return value.strftime("%Y-%m-%d" if "d" in form else "%Y-%m" if "m" in form else "%Y")


def _repeat_merged(rows: dict[int, Row], cell_ranges: Any) -> None:
    """Copy the text of a merged cell into all cells that it spans; a title alone in its row stays in one column."""
    budget, last = _MAX_FILLED, max(rows, default=0)
    for left, top, right, bottom in (cells.bounds for cells in cell_ranges):
        first = rows.get(top, [])
        text = "".join(first[left - 1 : left])
        width = 1 if sum(map(bool, first)) == 1 else right - left + 1
        numbers = range(top, min(bottom, last) + 1)
        budget -= len(numbers) * width
        for row in [rows[number] for number in numbers if number in rows] if text and budget >= 0 else []:
            row += [""] * (left - 1 + width - len(row))
            row[left - 1 : left - 1 + width] = [text] * width
