"""What a file says of itself, as far as it can be believed: programs fill these fields in on their own."""

from __future__ import annotations

import re

from rag.reading.extraction.clean import clean_line

_UNTITLED = re.compile(
    r"(?:untitled|no title|document|presentation|slide|title|microsoft word|doc|无标题|未命名|文档)[\s\d._-]*"
    r"|.*\.(?:docx?|pdf|indd|tex|dvi|pptx?|xlsx?|odt|pages|qxd|p65|ps|html?)|[\W\d_]+|about:blank",
    re.IGNORECASE,
)
_PRINTED_BY = re.compile(r"^(?:microsoft (?:word|powerpoint|excel) - )", re.IGNORECASE)
_NOBODY = frozenset(
    "python-docx administrator admin user unknown author anonymous owner root 作者 用户 管理员 微软用户".split()
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
