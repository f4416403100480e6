"""Title, author and dates from a file's properties, without the defaults that programs fill in."""

from __future__ import annotations

import re

from rag.errors import IngestError
from rag.patterns import lazy_regex
from rag.reading.extraction.clean import clean_line, clean_text, first_heading
from rag.reading.extraction.metadata import site_from_url, title_from_url
from rag.reading.parser import ExtractedDocument
from rag.text import detect_language
from rag.web.guard import printable
from rag.web.media import MAX_CHARACTERS

_UNTITLED = lazy_regex(
    r"(?:untitled|no title|document|(?:powerpoint )?presentation|slide|title|book|microsoft word"
    r"|doc|无标题|未命名|文档)[\s\d._-]*"
    r"|.*\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?|odt|pages|qxd|p65|ps|html?)|[\W\d_]+|about:blank",
    re.IGNORECASE,
)
_PROGRAM_PREFIX = lazy_regex(r"^(?:microsoft (?:word|powerpoint|excel) - )", re.IGNORECASE)
_NOBODY = frozenset(
    "python-docx openpyxl administrator admin user unknown author anonymous owner root".split()
    + "作者 用户 管理员 微软用户".split()
) | {"microsoft office user", "windows user", "windows 用户", "user name"}
_DAY = lazy_regex(r"(?:D:)?(\d{4})-?(\d{2})?-?(\d{2})?")


def clean_title(text: str) -> str:
    """Return a title, or "" if it is a program's default or a file name."""
    title = _PROGRAM_PREFIX.sub("", clean_line(text))
    return "" if _UNTITLED.fullmatch(title) else title


def clean_author(text: str) -> str:
    """Return an author's name, or "" if it is a program's default."""
    name = clean_line(text, 200)
    return "" if name.lower() in _NOBODY else name


def parse_day(text: str) -> str:
    """Return the day (`2024-03-05`) of a PDF date (`D:20240305…`) or an ISO one, or ""."""
    match = _DAY.match(text.strip())
    if not match or not 1900 <= int(match[1]) <= 2200:
        return ""
    month, day = match[2] or "", match[3] or ""
    if not (month and day):
        return ""
    return f"{match[1]}-{month}-{day}" if "01" <= month <= "12" and "01" <= day <= "31" else ""


def build_extracted(
    text: str,
    url: str,
    *,
    own_title: str = "",
    title: str = "",
    author: str = "",
    created: str = "",
    modified: str = "",
) -> ExtractedDocument:
    """Build the result for a document from its text, the title in it (`own_title`), and its file properties.

    Raises IngestError: "document_too_long", "document_no_text".
    """
    text = clean_text(text)
    if len(text) > MAX_CHARACTERS:
        raise too_long_error(url)
    if not any(map(str.isalnum, text)):
        raise IngestError("document_no_text", url=printable(url))
    title = clean_line(own_title) or clean_title(title) or first_heading(text) or title_from_url(url)
    dates = parse_day(created), parse_day(modified)
    return ExtractedDocument(title, detect_language(text), site_from_url(url), "", text, clean_author(author), *dates)


def too_long_error(url: str) -> IngestError:
    return IngestError("document_too_long", url=printable(url), limit=MAX_CHARACTERS // 1_000_000)
