"""Notebooks (.ipynb): text cells, code with its language, and its output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rag.errors import IngestError
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.clean import strip_link_targets
from rag.reading.extraction.render import fence_code
from rag.reading.parser import Extracted
from rag.reading.properties import build_extracted
from rag.web.guard import printable


def read_notebook(body: bytes, url: str) -> Extracted:
    """Return the cells of a notebook of format 3 or 4.

    Raises IngestError: "office_broken", "document_too_long", "document_no_text".
    """
    try:
        book = json.loads(body)
        about = book.get("metadata", {})
        language = str(about.get("kernelspec", {}).get("language") or about.get("language_info", {}).get("name", ""))
        cells = [cell for sheet in (book, *book.get("worksheets", ())) for cell in sheet.get("cells", ())]
        text = "\n\n".join(part for cell in cells for part in _write_cell(cell, language))
    except (AttributeError, TypeError, ValueError) as error:
        raise IngestError("office_broken", url=printable(url)) from error
    return build_extracted(text, url, title=str(about.get("title") or ""))


def _write_cell(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _join(cell.get("source") or cell.get("input") or "")
    if cell.get("cell_type") == "heading":
        yield f"{'#' * int(cell.get('level', 1))} {source}"
    elif cell.get("cell_type") != "code":
        yield strip_link_targets(source)
    elif source.strip():
        yield fence_code(source, language)
        for output in cell.get("outputs", ()):
            yield _write_output(output)


def _write_output(output: dict[str, Any]) -> str:
    """Return the output of a cell, in the richest form that is text."""
    if "ename" in output:
        return fence_code(f"{output['ename']}: {output.get('evalue', '')}")
    forms = {name.rpartition("/")[2]: _join(form) for name, form in output.get("data", output).items()}
    if "<table" in forms.get("html", ""):
        return html_to_markdown(forms["html"])
    text = next((forms[name] for name in ("markdown", "latex") if name in forms), "")
    return strip_link_targets(text) or (
        fence_code(plain) if (plain := forms.get("plain") or forms.get("text", "")) else ""
    )


def _join(value: object) -> str:
    return ("".join(map(str, value)) if isinstance(value, list) else str(value)).rstrip()
