"""Workbooks (.xlsx): each sheet under its name, formulas as their stored values.

Uses openpyxl's parser row by row.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from html import escape
from itertools import repeat, zip_longest
from typing import Any

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.documents.office import DAMAGE, office_file, read_meta
from rag.reading.documents.properties import build_extracted, too_long_error
from rag.reading.documents.table import Row, write_tables
from rag.reading.extract import html_to_markdown
from rag.reading.parser import Extracted
from rag.web.guard import printable
from rag.web.media import MAX_CHARACTERS

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


def read_xlsx(body: bytes, url: str) -> Extracted:
    """Return the sheets of a workbook.

    Raises IngestError: "office_broken", "office_too_large", "table_too_wide", "document_too_long", "document_no_text".
    """
    try:
        file = office_file(body, url, _MAX_UNPACKED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, irrelevant here
            text = "\n\n".join(_write_sheets(file, url))
        about = read_meta(zipfile.ZipFile(file))
    except DAMAGE as error:
        raise IngestError("office_broken", url=printable(url)) from error
    return build_extracted(text, url, **about)


def _write_sheets(file: Any, url: str) -> Iterator[str]:
    import openpyxl

    book, budget = openpyxl.load_workbook(file, read_only=True, data_only=True, rich_text=True), MAX_CHARACTERS
    for sheet in (sheet for sheet in book.worksheets if sheet.sheet_state != "veryHidden"):  # not even listed in menus
        rows: dict[int, Row] = {}
        values = _create_parser(sheet)
        for number, row in _read_rows(sheet, values):
            rows[number] = row
            budget -= sum(map(len, row))
            if budget < 0:
                raise too_long_error(url)
        _repeat_merged(rows, values.merged_cells.mergeCell if values.merged_cells else ())
        if rows:
            separated = [row for number in rows for row in ([], rows[number])[number - 1 in rows :]]
            yield "\n\n".join([f"## {' '.join(sheet.title.split())}", *write_tables(separated, url)])


def _read_rows(sheet: Any, values: Any) -> Iterator[tuple[int, Row]]:
    """Yield the rows that are not empty, with their numbers, up to the last non-empty cell."""
    from openpyxl.cell.read_only import ReadOnlyCell

    is_unsolved = _UNCALCULATED.search(sheet._get_source().read())
    formulas = _create_parser(sheet, values=False).parse() if is_unsolved else repeat((0, []))
    for (number, cells), (_, unsolved) in zip(values.parse(), formulas, strict=False):
        row: Row = []
        for cell, formula in zip_longest(cells, unsolved, fillvalue=_EMPTY_CELL):
            text = _show(ReadOnlyCell(sheet, **cell)) or _flatten(getattr(formula["value"], "text", formula["value"]))
            if text:
                row += [""] * (cell["column"] - 1 - len(row)) + [text]
        if row:
            yield number, row


def _create_parser(sheet: Any, *, values: bool = True) -> Any:
    """Create openpyxl's parser of a sheet's XML. openpyxl's own row reader drops rich text formats and the list of
    merged cells."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    strings, source = sheet._shared_strings, sheet._get_source()
    return WorkSheetParser(source, strings, data_only=values, epoch=book.epoch, rich_text=True, **formats)


def _show(cell: Any) -> str:
    """Return a cell as displayed, with all its digits."""
    value = cell.value
    if isinstance(value, list):  # rich text
        text = _flatten(html_to_markdown(f"<p>{''.join(map(_write_run, value))}</p>"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = _format_number(value, cell.number_format)
    elif isinstance(value, date | time):
        text = _format_moment(value, cell.number_format.lower())
    else:
        text = _flatten(str(value).upper() if isinstance(value, bool) else value)
    return f"~~{text}~~" if text and cell.font and cell.font.strike else text


def _flatten(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


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
    """Copy the text of merged cells into each of them; a title that is alone in its row stays one cell."""
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
