"""What a file says of itself, as far as it can be believed: programs fill these fields in on their own."""

from __future__ import annotations

import re

from rag.errors import IngestError
from rag.reading.extraction.clean import clean_line, clean_text, first_heading
from rag.reading.extraction.metadata import name_of, site_of
from rag.reading.parser import Extracted
from rag.text import detect_language
from rag.web.guard import shown
from rag.web.media import MAX_CHARACTERS

_UNTITLED = re.compile(
    r"(?:untitled|no title|document|(?:powerpoint )?presentation|slide|title|book|microsoft word"
    r"|doc|无标题|未命名|文档)[\s\d._-]*"
    r"|.*\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?|odt|pages|qxd|p65|ps|html?)|[\W\d_]+|about:blank",
    re.IGNORECASE,
)
_PRINTED_BY = re.compile(r"^(?:microsoft (?:word|powerpoint|excel) - )", re.IGNORECASE)
_NOBODY = frozenset(
    "python-docx openpyxl administrator admin user unknown author anonymous owner root".split()
    + "作者 用户 管理员 微软用户".split()
) | {"microsoft office user", "windows user", "windows 用户", "user name"}
_DAY = re.compile(r"(?:D:)?(\d{4})-?(\d{2})?-?(\d{2})?")


def title_said(text: str) -> str:
    """A title that a person gave, or ""."""
    title = _PRINTED_BY.sub("", clean_line(text))
    return "" if _UNTITLED.fullmatch(title) else title


def name_said(text: str) -> str:
    """An author that names somebody, or ""."""
    name = clean_line(text, 200)
    return "" if name.lower() in _NOBODY else name


def day_of(text: str) -> str:
    """The day (`2024-03-05`) of a PDF date (`D:20240305…`) or an ISO one, or ""."""
    match = _DAY.match(text.strip())
    if not match or not 1900 <= int(match[1]) <= 2200:
        return ""
    month, day = match[2] or "", match[3] or ""
    if not (month and day):
        return ""
    return f"{match[1]}-{month}-{day}" if "01" <= month <= "12" and "01" <= day <= "31" else ""


def described(
    text: str,
    url: str,
    *,
    own_title: str = "",
    title: str = "",
    author: str = "",
    created: str = "",
    modified: str = "",
) -> Extracted:
    """A document's text with what is said of it: the title in it, and what its file says, as far as that is believed.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    text = clean_text(text)
    if len(text) > MAX_CHARACTERS:
        raise too_long(url)
    if not any(map(str.isalnum, text)):
        raise IngestError("document_no_text", url=shown(url))
    title = clean_line(own_title) or title_said(title) or first_heading(text) or name_of(url)
    dates = day_of(created), day_of(modified)
    return Extracted(title, detect_language(text), site_of(url), "", text, name_said(author), *dates)


def too_long(url: str) -> IngestError:
    return IngestError("document_too_long", url=shown(url), limit=MAX_CHARACTERS // 1_000_000)
