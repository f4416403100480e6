"""What is filled in on a PDF's page, where it stands: the values of fields, and text that was typed on it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag.reading.layout.words import Word, turned

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_ANNOTATIONS = 5000
_HIDDEN = 2 | 32
_PASSWORD = 1 << 13
_LETTERS = 12.0


def with_fields(page: PdfPage, lines: list[list[Word]], turn: int) -> list[list[Word]]:
    """The page's lines with what is filled in beside or below them."""
    found = [list(words) for words in lines]
    for text, (x, bottom, end, top) in _filled(page, turn):
        size = min(_LETTERS, 0.8 * (top - bottom))
        # A label stands about as high as the middle of a field of one line, or else as the first line of many.
        rows = [n for n, words in enumerate(found) if bottom - 0.3 * size < words[0].y < top]
        beside = min(rows, key=lambda n: _distance(found[n], x, end), default=None)
        y = found[beside][0].y if beside is not None else (bottom + top) / 2 - 0.3 * size
        written = [Word(word, x, end, y, size, turn) for word in text.split()]
        if beside is None:
            above = [n for n, words in enumerate(found) if words[0].y > y]
            found.insert(max(above, key=lambda n: -found[n][0].y) + 1 if above else 0, written)
        else:
            at = next((i for i, word in enumerate(found[beside]) if word.x >= x), len(found[beside]))
            found[beside][at:at] = written
    return found


def _distance(words: Sequence[Word], x: float, end: float) -> float:
    return min(max(x - word.end, word.x - end, 0) for word in words)


def _filled(page: PdfPage, turn: int) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """The text of each annotation that shows one, and its rectangle along and across the page's text."""
    import pypdfium2.raw as pdfium

    box = pdfium.FS_RECTF()
    for i in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        item = pdfium.FPDFPage_GetAnnot(page, i)
        text = "" if pdfium.FPDFAnnot_GetFlags(item) & _HIDDEN else _shown(pdfium, page, item)
        pdfium.FPDFAnnot_GetRect(item, box)
        pdfium.FPDFPage_CloseAnnot(item)
        if text.strip():
            (x, y), (end, up) = turned(box.left, box.bottom, turn), turned(box.right, box.top, turn)
            yield text, (min(x, end), min(y, up), max(x, end), max(y, up))


def _shown(pdfium: Any, page: PdfPage, item: Any) -> str:
    kind = pdfium.FPDFAnnot_GetSubtype(item)
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _string(lambda *buffer: pdfium.FPDFAnnot_GetStringValue(item, b"Contents", *buffer))
    if kind != pdfium.FPDF_ANNOT_WIDGET or not page.formenv:
        return ""
    form = page.formenv
    field = pdfium.FPDFAnnot_GetFormFieldType(form, item)
    if field in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return "[x]" if pdfium.FPDFAnnot_IsChecked(form, item) else "[ ]"
    if field in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        options = range(min(pdfium.FPDFAnnot_GetOptionCount(form, item), _MAX_ANNOTATIONS))
        chosen = [n for n in options if pdfium.FPDFAnnot_IsOptionSelected(form, item, n)]
        if chosen:
            labels = (
                _string(lambda *buffer, n=n: pdfium.FPDFAnnot_GetOptionLabel(form, item, n, *buffer)) for n in chosen
            )
            return ", ".join(labels)
    if field == pdfium.FPDF_FORMFIELD_PUSHBUTTON or pdfium.FPDFAnnot_GetFormFieldFlags(form, item) & _PASSWORD:
        return ""
    return _string(lambda *buffer: pdfium.FPDFAnnot_GetFormFieldValue(form, item, *buffer))


def _string(read: Any) -> str:
    """What a function of pdfium writes into a buffer as UTF-16; its second argument is the buffer's size in bytes."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")
