"""Readers that need little code: e-books, notebooks, captions, mail, and office formats without another reader.

The formats are .epub, .ipynb, .vtt, .srt, .eml, and .xls, .ods, .odp, .rtf, .msg.
"""

from __future__ import annotations

import asyncio
import json
import posixpath
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from html import unescape
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.documents.office import open_package, parse_xml, read_meta, report_broken
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.metadata import build_extracted, title_from_url
from rag.reading.extraction.render import fence_code
from rag.reading.parser import ExtractedDocument
from rag.text import clean_line, clean_text, lazy_regex, strip_link_targets
from rag.web.guard import printable
from rag.web.media import EML, RTF, media_type

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


def read_epub(body: bytes, url: str) -> ExtractedDocument:
    """Extract the chapters of an e-book, in reading order.

    Raises IngestError: "office_broken", "office_too_large", "office_locked", "document_too_long", "document_no_text".
    """
    with report_broken(url):
        package = open_package(body, url)
        if _ENCRYPTION in package.namelist() and _ENCRYPTED_PART.search(package.read(_ENCRYPTION)):
            raise IngestError("office_locked", url=printable(url))
        place = next(parse_xml(package.read(_CONTAINER)).iter("{*}rootfile")).get("full-path")
        text = "\n\n".join(_read_chapters(package, parse_xml(package.read(place)), posixpath.dirname(place)))
        about = read_meta(package, place)
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


def read_notebook(body: bytes, url: str) -> ExtractedDocument:
    """Extract the cells of a Jupyter notebook (format 3 or 4).

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
    """Return the output of a cell in its richest text form."""
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


def read_captions(body: bytes, charset: str | None, url: str) -> ExtractedDocument:
    """Extract the text of captions, without lines that repeat while scrolling.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    source = clean_text(decode(body, charset, url)).removeprefix("WEBVTT") + "\n"
    return build_extracted("\n\n".join(_write_paragraphs(source)), url, own_title=title_from_url(url))


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


_SUBJECT = lazy_regex(r"\A<p><strong>Subject</strong>: (.*?)</p>")
# xberg ignores superscripts in RTF: 10 to the power of 6 would become 106.
_SUPER = lazy_regex(rb"(?<=\d)((?:[{}\s]|\\[a-z]+-?\d*){0,12}?\\super(?:[{}\s]|\\[a-z]+-?\d*){0,12}+)(?=-?\d)")


def read_office(body: bytes, url: str, kind: str) -> ExtractedDocument:
    """Extract an office document of media type `kind` with xberg, for formats without another reader.

    xberg is an optional dependency. It gets bytes, never a URL, in the parser's child process, which has no keys. Its
    HTML output is converted like that of the other formats.

    Raises IngestError: "office_reader_missing", "office_broken", "document_too_long", "document_no_text".
    """
    try:
        import xberg
    except ImportError as error:
        raise IngestError("office_reader_missing", url=printable(url)) from error
    options = xberg.ExtractionConfig(
        output_format="html", use_cache=False, disable_ocr=True, concurrency=xberg.ConcurrencyConfig(max_threads=1)
    )
    source = xberg.ExtractInput(kind="bytes", bytes=_SUPER.sub(rb"\1^", body) if kind == RTF else body, mime_type=kind)

    async def extract() -> Any:
        return (await xberg.extract(source, options)).results[0]

    with report_broken(url, "office_broken", xberg.XbergError):
        result = asyncio.run(extract())
    about = result.metadata
    return build_extracted(
        html_to_markdown(_SUBJECT.sub(r"<h1>\1</h1>", result.content)),
        url,
        title=about.title or "",
        author="; ".join(about.authors or ()),
        created=about.created_at or "",
        modified=about.modified_at or "",
    )


_HEADERS = ("From", "To", "Cc", "Date")
_TYPES = ("text/plain", "text/html")
_MAX_DEPTH = 4
_MAX_PARTS = 200
_END_OF_HEAD = lazy_regex(rb"\r?\n\r?\n")
_PHRASE = lazy_regex(r'[^\s<>@,;:"]+(?: [^\s<>@,;:"]+)*')
_CHARSET = lazy_regex(rb"charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)
_FLOWED = lazy_regex(r"(?<=\S) \r?\n(?=[^\s>])")
_HEADING = lazy_regex(r"^(?=#{1,5} )", re.MULTILINE)


Reader = Callable[[bytes, str, str | None, str], ExtractedDocument]
"""A function that reads an attachment from its bytes, media type, charset and name."""


def read_mail(body: bytes, url: str, read: Reader, depth: int = 1) -> ExtractedDocument:
    """Extract a mail: its headers, its message, and each attachment under its name.

    `depth` is its nesting depth among attached mails, from 1.

    Raises IngestError: "office_broken", "document_too_long", "document_no_text".
    """
    with report_broken(url):
        mail = _parse(body)
        text = "\n\n".join(filter(None, _write_parts(mail, read, depth)))
        senders, date = getattr(mail["From"], "addresses", ()), getattr(mail["Date"], "datetime", None)
    author = next((sender.display_name for sender in senders), "")
    return build_extracted(text, url, own_title=_get_header(mail, "Subject"), author=author, created=str(date or ""))


def _parse(body: bytes) -> Any:
    """Parse a message. Raw non-ASCII text in its headers, in any charset, is encoded properly first."""
    end, charset = _END_OF_HEAD.search(body), _CHARSET.search(body)
    head, rest = (body[: end.start()], body[end.start() :]) if end else (body, b"")
    text = decode(head, charset[1].decode() if charset else None)

    def encode(phrase: re.Match[str]) -> str:
        return phrase[0] if phrase[0].isascii() else f"=?utf-8?b?{b64encode(phrase[0].encode()).decode()}?="

    return message_from_bytes(_PHRASE.sub(encode, text).encode() + rest, policy=policy.default)


def _write_parts(mail: Any, read: Reader, depth: int) -> Iterator[str]:
    title = _get_header(mail, "Subject") or _get_header(mail, "From")
    yield title and f"# {title}"
    yield "\n".join(f"- {name}: {line}" for name in _HEADERS if (line := _get_header(mail, name)))
    for count, part in enumerate(_iter_leaves(mail)):
        name = clean_line(part.get_filename() or "")
        if count >= _MAX_PARTS:
            return
        if part.get_content_type() == EML:
            yield _read_attachment(part.get_content().as_bytes(), EML, "mail", read, depth)
        elif part.get_content_type() in _TYPES and part.get_content_disposition() != "attachment":
            yield _read(part)
        elif name:
            yield f"## Attachment: {name}"
            yield _read_attachment(part.get_payload(decode=True) or b"", "", name, read, depth)


def _iter_leaves(part: Any) -> Iterator[Any]:
    """Yield the parts that a mail client shows: of several alternatives, the richest readable one."""
    if not part.is_multipart() or part.get_content_type() == EML:
        yield part
        return
    forms = [list(_iter_leaves(inner)) for inner in part.iter_parts()]
    if part.get_content_type() == "multipart/alternative":
        forms = [form for form in forms if any(leaf.get_content_type() in _TYPES and _read(leaf) for leaf in form)][-1:]
    for form in forms:
        yield from form


def _read(part: Any) -> str:
    text = decode(part.get_payload(decode=True) or b"", part.get_content_charset())
    if part.get_content_subtype() == "html":
        return clean_text(html_to_markdown(text))
    return clean_text(_FLOWED.sub(" ", text) if part.get_param("format") == "flowed" else text)


def _read_attachment(body: bytes, kind: str, name: str, read: Reader, depth: int) -> str:
    """Return the text of an attachment, with headings one level lower."""
    try:
        kind = kind or media_type(body, "", name)
        if kind == EML and depth >= _MAX_DEPTH:
            return ""
        document = read_mail(body, name, read, depth + 1) if kind == EML else read(body, kind, None, name)
    except IngestError:
        return "(not read)"
    return _HEADING.sub("#", document.text)


def _get_header(mail: EmailMessage, name: str) -> str:
    return clean_line(str(mail.get(name) or ""), 1000)
