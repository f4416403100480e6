"""Mail (.eml): subject, senders, recipients, date, message, and each attachment under its name."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.charset import decode
from rag.reading.documents.office import DAMAGE
from rag.reading.documents.properties import build_extracted
from rag.reading.extract import html_to_markdown
from rag.reading.extraction.clean import clean_line, clean_text
from rag.reading.parser import Extracted
from rag.web.guard import printable
from rag.web.media import EML, media_type

_HEADERS = ("From", "To", "Cc", "Date")
_TYPES = ("text/plain", "text/html")
_MAX_DEPTH = 4
_MAX_PARTS = 200
_END_OF_HEAD = lazy_regex(rb"\r?\n\r?\n")
_PHRASE = lazy_regex(r'[^\s<>@,;:"]+(?: [^\s<>@,;:"]+)*')
_CHARSET = lazy_regex(rb"charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)
_FLOWED = lazy_regex(r"(?<=\S) \r?\n(?=[^\s>])")
_HEADING = lazy_regex(r"^(?=#{1,5} )", re.MULTILINE)


Reader = Callable[[bytes, str, str | None, str], Extracted]
"""A function that reads an attachment from its bytes, media type, charset and name."""


def read_mail(body: bytes, url: str, read: Reader, depth: int = 1) -> Extracted:
    """Return the text of a mail and its attachments; `depth` counts the mails that contain it.

    Raises IngestError: "office_broken", "document_too_long", "document_no_text".
    """
    try:
        mail = _parse(body)
        text = "\n\n".join(filter(None, _write_parts(mail, read, depth)))
        senders, date = getattr(mail["From"], "addresses", ()), getattr(mail["Date"], "datetime", None)
    except DAMAGE as error:
        raise IngestError("office_broken", url=printable(url)) from error
    author = next((sender.display_name for sender in senders), "")
    return build_extracted(text, url, own_title=_get_header(mail, "Subject"), author=author, created=str(date or ""))


def _parse(body: bytes) -> Any:
    """Parse the message. Raw non-ASCII text in its head, in any charset, is encoded properly first."""
    end, charset = _END_OF_HEAD.search(body), _CHARSET.search(body)
    head, rest = (body[: end.start()], body[end.start() :]) if end else (body, b"")
    text = decode(head, charset[1].decode() if charset else None)
    return message_from_bytes(_PHRASE.sub(_encode_phrase, text).encode() + rest, policy=policy.default)


def _encode_phrase(phrase: re.Match[str]) -> str:
    return phrase[0] if phrase[0].isascii() else f"=?utf-8?b?{b64encode(phrase[0].encode()).decode()}?="


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
    """Yield the parts that a mail program shows: of alternative forms, the richest that can be read."""
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
    """Return the text of an attachment, its headings one level lower."""
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
