"""Workbooks (.xlsx): each sheet under its name, formulas by the values stored with them.

openpyxl's parser is asked for the rows one by one.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from html import escape
from itertools import repeat, zip_longest
from typing import Any

from rag.errors import IngestError
from rag.reading.documents.table import Row, tables
from rag.reading.extract import html_markdown
from rag.reading.office.package import DAMAGE, office_file, stated
from rag.reading.parser import Extracted
from rag.reading.properties import described, too_long
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

_MAX_UNPACKED = 150_000_000
_WITHOUT_VALUE = re.compile(rb"<f\b[^<>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v></v>|</c>)")
# A number format: words around the digits, and between what is not drawn; after `;` that of negative numbers.
_FORM = re.compile(
    r'"(?P<quoted>[^"]*)"|\[\$(?P<unit>[^\[\]-]*+)[^\[\]]*+\]|[_*].|\[[^\[\]]*\]'
    r"|\\?(?P<sign>[$€£¥₩₹% ])|(?P<digits>[0#?])|(?P<end>;)"
)
_RAISED = {"superscript": "sup", "subscript": "sub"}
_NO_CELL: Any = {"value": None}
_MAX_FILLED = 200_000


def read_xlsx(body: bytes, url: str) -> Extracted:
    """The sheets of a workbook.

    Raises IngestError: "office_broken", "office_too_large", "table_too_wide", "document_too_long", "document_no_text".
    """
    try:
        file = office_file(body, url, _MAX_UNPACKED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that do not matter here
            text = "\n\n".join(_sheets(file, url))
        about = stated(zipfile.ZipFile(file))
    except DAMAGE as error:
        raise IngestError("office_broken", url=shown(url)) from error
    return described(text, url, **about)


def _sheets(file: Any, url: str) -> Iterator[str]:
    import openpyxl

    book, room = openpyxl.load_workbook(file, read_only=True, data_only=True, rich_text=True), MAX_CHARACTERS
    for sheet in (one for one in book.worksheets if one.sheet_state != "veryHidden"):  # which no menu shows
        rows: dict[int, Row] = {}
        values = _parser(sheet)
        for number, row in _rows(sheet, values):
            rows[number] = row
            room -= sum(map(len, row))
            if room < 0:
                raise too_long(url)
        _repeat_merged(rows, values.merged_cells.mergeCell if values.merged_cells else ())
        if rows:
            parted = [row for number in rows for row in ([], rows[number])[number - 1 in rows :]]
            yield "\n\n".join([f"## {' '.join(sheet.title.split())}", *tables(parted, url)])


def _rows(sheet: Any, values: Any) -> Iterator[tuple[int, Row]]:
    """The rows that hold something, with their numbers, up to the last such cell."""
    from openpyxl.cell.read_only import ReadOnlyCell

    is_unsolved = _WITHOUT_VALUE.search(sheet._get_source().read())
    formulas = _parser(sheet, values=False).parse() if is_unsolved else repeat((0, []))
    for (number, cells), (_, unsolved) in zip(values.parse(), formulas, strict=False):
        row: Row = []
        for cell, formula in zip_longest(cells, unsolved, fillvalue=_NO_CELL):
            text = _shown(ReadOnlyCell(sheet, **cell)) or _line(getattr(formula["value"], "text", formula["value"]))
            if text:
                row += [""] * (cell["column"] - 1 - len(row)) + [text]
        if row:
            yield number, row


def _parser(sheet: Any, *, values: bool = True) -> Any:
    """openpyxl's parser of a sheet's XML. The sheet that openpyxl reads row by row with it drops what is needed here:
    formats within a text, and which cells are merged."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
    strings, source = sheet._shared_strings, sheet._get_source()
    return WorkSheetParser(source, strings, data_only=values, epoch=book.epoch, rich_text=True, **formats)


def _shown(cell: Any) -> str:
    """A cell as a person sees it, with all digits that it has."""
    value = cell.value
    if isinstance(value, list):  # a text with formats within
        text = _line(html_markdown(f"<p>{''.join(map(_run, value))}</p>"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = _with_unit(value, cell.number_format)
    elif isinstance(value, date | time):
        text = _moment(value, cell.number_format.lower())
    else:
        text = _line(str(value).upper() if isinstance(value, bool) else value)
    return f"~~{text}~~" if text and cell.font and cell.font.strike else text


def _line(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _run(run: Any) -> str:
    """A piece of a text with formats, as HTML."""
    font, text = getattr(run, "font", None), escape(str(run), quote=False)
    tags = (_RAISED.get(getattr(font, "vertAlign", None) or ""), "s" if getattr(font, "strike", None) else None)
    for tag in filter(None, tags):
        text = f"<{tag}>{text}</{tag}>"
    return text


def _with_unit(value: float, form: str) -> str:
    """A number with what its format puts around it: 12.5%, €3, 40 kg."""
    before, after, seen = "", "", False
    for found in _FORM.finditer(form):
        seen = seen or found["digits"] is not None
        word = next(filter(None, found.group("quoted", "unit", "sign")), "")
        before, after = (before, after + word) if seen else (before + word, after)
        if found["end"]:
            break
    value = value * 100 if "%" in before + after else value
    return f"{before}{value if isinstance(value, int) else format(value, '.15g')}{after}".strip()


def _moment(value: datetime | date | time, form: str) -> str:
    """A date, a time or both, as far as its format goes into it."""
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    if isinstance(value, datetime) and value.time() != time():
        return value.isoformat(" ", "seconds" if value.second else "minutes")
    return value.strftime("%Y-%m-%d" if "d" in form else "%Y-%m" if "m" in form else "%Y")


def _repeat_merged(rows: dict[int, Row], merged: Any) -> None:
    """Say what stands in merged cells in each of them; a title that is alone in its row stays one cell."""
    room, last = _MAX_FILLED, max(rows, default=0)
    for left, top, right, bottom in (one.bounds for one in merged):
        first = rows.get(top, [])
        text = "".join(first[left - 1 : left])
        width = 1 if sum(map(bool, first)) == 1 else right - left + 1
        numbers = range(top, min(bottom, last) + 1)
        room -= len(numbers) * width
        for row in [rows[number] for number in numbers if number in rows] if text and room >= 0 else []:
            row += [""] * (left - 1 + width - len(row))
            row[left - 1 : left - 1 + width] = [text] * width
