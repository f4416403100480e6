"""Mail (.eml): its subject, who wrote to whom and when, the message, and each attachment under its name."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from rag.errors import IngestError
from rag.reading.charset import decode
from rag.reading.extract import html_markdown
from rag.reading.extraction.clean import clean_line, clean_text
from rag.reading.office.package import DAMAGE
from rag.reading.parser import Extracted
from rag.reading.properties import described
from rag.web.guard import shown
from rag.web.media import EML, media_type

_HEADERS = ("From", "To", "Cc", "Date")
_FORMS = ("text/plain", "text/html")
_MAX_DEPTH = 4
_MAX_PARTS = 200
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_PHRASE = re.compile(r'[^\s<>@,;:"]+(?: [^\s<>@,;:"]+)*')
_CHARSET = re.compile(rb"charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)
_FLOWED = re.compile(r"(?<=\S) \r?\n(?=[^\s>])")
_HEADING = re.compile(r"^(?=#{1,5} )", re.MULTILINE)


Read = Callable[[bytes, str, str | None, str], Extracted]
"""Reads an attachment, given its bytes, media type, charset and name."""


def read_mail(body: bytes, url: str, read: Read, depth: int = 1) -> Extracted:
    """The text of a mail and of what is attached to it; `depth` counts the mails that it is attached to.

    Raises IngestError: "office_broken", "document_too_long", "document_no_text".
    """
    try:
        mail = _parsed(body)
        text = "\n\n".join(filter(None, _parts(mail, read, depth)))
        senders, sent = getattr(mail["From"], "addresses", ()), getattr(mail["Date"], "datetime", None)
    except DAMAGE as error:
        raise IngestError("office_broken", url=shown(url)) from error
    author = next((sender.display_name for sender in senders), "")
    return described(text, url, own_title=_line(mail, "Subject"), author=author, created=str(sent or ""))


def _parsed(body: bytes) -> Any:
    """The message. Letters that stand in its head as they are, in whatever charset, are encoded as they should be."""
    end, declared = _END_OF_HEAD.search(body), _CHARSET.search(body)
    head, rest = (body[: end.start()], body[end.start() :]) if end else (body, b"")
    text = decode(head, declared[1].decode() if declared else None)
    return message_from_bytes(_PHRASE.sub(_encoded, text).encode() + rest, policy=policy.default)


def _encoded(phrase: re.Match[str]) -> str:
    return phrase[0] if phrase[0].isascii() else f"=?utf-8?b?{b64encode(phrase[0].encode()).decode()}?="


def _parts(mail: Any, read: Read, depth: int) -> Iterator[str]:
    title = _line(mail, "Subject") or _line(mail, "From")
    yield title and f"# {title}"
    yield "\n".join(f"- {name}: {line}" for name in _HEADERS if (line := _line(mail, name)))
    for count, part in enumerate(_leaves(mail)):
        name = clean_line(part.get_filename() or "")
        if count >= _MAX_PARTS:
            return
        if part.get_content_type() == EML:
            yield _attached(part.get_content().as_bytes(), EML, "mail", read, depth)
        elif part.get_content_type() in _FORMS and part.get_content_disposition() != "attachment":
            yield _text(part)
        elif name:
            yield f"## Attachment: {name}"
            yield _attached(part.get_payload(decode=True) or b"", "", name, read, depth)


def _leaves(part: Any) -> Iterator[Any]:
    """The parts that a person is shown: of several forms of one text, the richest that can be read."""
    if not part.is_multipart() or part.get_content_type() == EML:
        yield part
        return
    forms = [list(_leaves(inner)) for inner in part.iter_parts()]
    if part.get_content_type() == "multipart/alternative":
        forms = [form for form in forms if any(one.get_content_type() in _FORMS and _text(one) for one in form)][-1:]
    for form in forms:
        yield from form


def _text(part: Any) -> str:
    text = decode(part.get_payload(decode=True) or b"", part.get_content_charset())
    if part.get_content_subtype() == "html":
        return clean_text(html_markdown(text))
    return clean_text(_FLOWED.sub(" ", text) if part.get_param("format") == "flowed" else text)


def _attached(body: bytes, kind: str, name: str, read: Read, depth: int) -> str:
    """The text of an attachment, its headings one level lower."""
    try:
        kind = kind or media_type(body, "", name)
        if kind == EML and depth >= _MAX_DEPTH:
            return ""
        found = read_mail(body, name, read, depth + 1) if kind == EML else read(body, kind, None, name)
    except IngestError:
        return "(not read)"
    return _HEADING.sub("#", found.text)


def _line(mail: EmailMessage, name: str) -> str:
    return clean_line(str(mail.get(name) or ""), 1000)
