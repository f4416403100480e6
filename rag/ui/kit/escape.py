"""Plain text as Streamlit Markdown that shows exactly that text.

Streamlit's Markdown is CommonMark and GFM with additions, some of which apply to the parsed text, where a backslash no
longer protects: icon and emoji shortcodes, bare links, arrows. These get a word joiner (U+2060, no width, no line
break) inside the pattern.
"""

from __future__ import annotations

import re

from rag.patterns import lazy_regex
from rag.text import strip_controls

JOINER = "\u2060"

_SHORTCODE = lazy_regex(r":(?=[\w+-][\w+/-]*:|material/)")
_BARE_LINK = lazy_regex(r"(?i)(https?:|www)(?=//|\.)")
_BARE_ADDRESS = lazy_regex(r"(?<=[-.\w+])@(?=[-\w])")
_ARROW = lazy_regex(r"(?<!\S)(?=(?:<->|->|<-|--|>=|<=|~=)(?!\S))")
_SPECIAL = lazy_regex(r"[\\`*_{}\[\]<>|~$&:^]")
_LINE_START = lazy_regex(r"(?m)^([ \t]*)(?:([#+\-=!])|(\d{1,9})([.)]))")
_WEB_URL = lazy_regex(r"(?i)https?://[^\s<>\"\\`]+", re.ASCII)


def escape(text: str) -> str:
    """Return Streamlit Markdown that shows `text` literally; line breaks stay line breaks of the source."""
    text = strip_controls(text)
    text = _SHORTCODE.sub(":" + JOINER, text)
    text = _BARE_LINK.sub(lambda match: match[1] + JOINER, text)
    text = _BARE_ADDRESS.sub("@" + JOINER, text)
    text = _ARROW.sub(JOINER, text)
    text = _SPECIAL.sub(r"\\\g<0>", text)
    return _LINE_START.sub(_escape_line_start, text)


def _escape_line_start(match: re.Match[str]) -> str:
    space, sign, number, stop = match.groups()
    return f"{space}\\{sign}" if sign else f"{space}{number}\\{stop}"


def code_block(code: str, language: str = "text") -> str:
    """Return a code block that shows `code` literally."""
    code = strip_controls(code).rstrip()
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    return f"{ticks}{language}\n{code}\n{ticks}"


def escape_line(text: str) -> str:
    """Escape a title, label or name as `escape` does, with every run of white space as one space."""
    return escape(" ".join(text.split()))


def shorten(text: str, limit: int) -> str:
    """Return `text` in up to `limit` characters, with an ellipsis in the middle if it is shortened."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def web_link(text: str, url: str) -> str:
    """Return a Markdown link that shows `text`, or only the text if `url` is no plain web address."""
    caption = escape_line(text)
    if not _WEB_URL.fullmatch(url):
        return caption
    return f"[{caption}](<{url}>)"


def is_web_url(url: str) -> bool:
    return _WEB_URL.fullmatch(url) is not None
