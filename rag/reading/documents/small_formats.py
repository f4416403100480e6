"""Formats whose readers need little code: e-books (.epub), notebooks (.ipynb), captions and subtitles (.vtt, .srt)."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.charset import decode
from rag.reading.documents.office import DAMAGE, open_package, parse_xml, read_meta
from rag.reading.documents.properties import build_extracted
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.clean import clean_line, clean_text, strip_link_targets
from rag.reading.extraction.metadata import name_of
from rag.reading.extraction.render import fence_code
from rag.reading.parser import Extracted
from rag.web.guard import printable

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_ENCRYPTED_PART = lazy_regex(rb"CipherReference\b[^>]*\.x?html?\b", re.IGNORECASE)
# XML allows self-closing elements; an HTML parser would put everything that follows into them.
_SELF_CLOSING = lazy_regex(r"<(?!(?:br|hr|img|image|col|wbr|input|link|meta|source|area|param)\b)([\w:]+)(\s[^<>]*)?/>")
_TITLE = lazy_regex(r"<title\b[^<>]*+>\s*+([^<>]++)</title>", re.IGNORECASE)

_TIMES = lazy_regex(r"^[ \t]*((?:\d+:)?\d\d?:\d\d)[.,]\d+[ \t]*-->[^\n]*\n", re.MULTILINE)
_VOICE = lazy_regex(r"<v(?:\.[^\s<>]*+)?[ \t]++([^<>\n]++)>")
_MARKUP = lazy_regex(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
_SENTENCE_END = lazy_regex(r"[.!?。！？…][\"'”’」)]*$")
_MIN_PARAGRAPH, _MAX_PARAGRAPH = 300, 900


def read_epub(body: bytes, url: str) -> Extracted:
    """Return the chapters of a book.

    Raises IngestError: "office_broken", "office_too_large", "office_locked", "document_too_long", "document_no_text".
    """
    try:
        package = open_package(body, url)
        if _ENCRYPTION in package.namelist() and _ENCRYPTED_PART.search(package.read(_ENCRYPTION)):
            raise IngestError("office_locked", url=printable(url))
        place = next(parse_xml(package.read(_CONTAINER)).iter("{*}rootfile")).get("full-path")
        text = "\n\n".join(_read_chapters(package, parse_xml(package.read(place)), posixpath.dirname(place)))
        about = read_meta(package, place)
    except DAMAGE as error:
        raise IngestError("office_broken", url=printable(url)) from error
    return build_extracted(text, url, own_title=about["title"], author=about["author"], created=about["modified"])


def _read_chapters(package: ZipFile, book: Any, folder: str) -> Iterator[str]:
    items, names = {item.get("id"): item for item in book.iter("{*}item")}, package.namelist()
    for step in dict.fromkeys(step.get("idref") for step in book.iter("{*}itemref")):
        item = items.get(step, {})
        path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        if path in names and "html" in item.get("media-type", "") and item.get("properties") != "nav":
            source = _SELF_CLOSING.sub(r"<\1\2></\1>", decode(package.read(path)))
            text, title = html_to_markdown(source), _TITLE.search(source)
            if text:
                yield text if text.startswith("#") or title is None else f"# {clean_line(title[1])}\n\n{text}"


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


def read_captions(body: bytes, charset: str | None, url: str) -> Extracted:
    """Return the text of captions, each line once, even if it repeats while scrolling.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    source = clean_text(decode(body, charset, url)).removeprefix("WEBVTT") + "\n"
    return build_extracted("\n\n".join(_write_paragraphs(source)), url, own_title=name_of(url))


def _write_paragraphs(source: str) -> Iterator[str]:
    start, text = "", ""
    for time, line in _iter_lines(source):
        is_voice = line.startswith("\v")
        is_complete = _SENTENCE_END.search(text) and len(text) > _MIN_PARAGRAPH
        if text and (is_complete or is_voice or len(text) > _MAX_PARAGRAPH):
            yield f"[{start}] {text}"
            text = ""
        start = start if text else time
        text = f"{text} {line.lstrip(chr(11))}".lstrip()
    if text:
        yield f"[{start}] {text}"


def _iter_lines(source: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of all cues with their times; a change of speaker is marked by a leading vertical tab."""
    pieces = _TIMES.split(source)
    previous: list[str] = []
    speaker = ""
    for time, cue in zip(pieces[1::2], pieces[2::2], strict=True):
        lines = []
        for line in cue.partition("\n\n")[0].split("\n"):
            voice, text = _VOICE.search(line), " ".join(unescape(_MARKUP.sub("", line)).split())
            lines.append(text)
            if text and text not in previous:
                is_change = voice is not None and voice[1] != speaker
                speaker = voice[1] if voice else speaker
                yield time, f"\v{speaker}: {text}" if is_change else text
        previous = lines
