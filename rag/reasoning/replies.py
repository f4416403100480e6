"""Parsers of a model's complete reply: its text, its lines, or the one line that was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rag.models.reply_text import drop_thoughts
from rag.text import join_surrogates

_BULLET: Final = re.compile(r"(?<!\s)\s*+(?:[-*•·]\s+|•|-(?=[\u4e00-\u9fff]))")
_NUMBERED: Final = re.compile(r"\s*(\d{1,2})(?:[.)]\s+|[、．)]\s*)(?!\d)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)\w*\s*")
_PAIRS: Final = {
    '"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "**": "**", "*": "*",
}  # fmt: skip
_WITHIN_A_WORD: Final = re.compile(r"(?<=\w)['’](?=\w)")

_KINDS: Final = r"(?:standalone|stand-alone|complete|rewritten|rephrased|reformulated|final|last|new|search|improved)"
_NAME: Final = (
    rf"(?:the\s+)?(?:{_KINDS}\s+)*(?:question|query|translation)"
    r"|(?:(?:改写|重写|独立|完整|最终|最后|最新|新|检索|搜索)后?的?)*(?:一个)?(?:问题|问句|检索词|搜索词|查询|译文|翻译)"
)
_LABEL: Final = re.compile(rf"#*\s*(\**)(?:{_NAME})\s*(?:\1\s*[:：]|[:：]\1)\s*", re.IGNORECASE)
_INTRODUCES: Final = re.compile(r"[:：][*_\s]*$")


def reply_text(text: str) -> str:
    """Return a complete reply verbatim, without thoughts."""
    return drop_thoughts(join_surrogates(text)).strip()


def reply_lines(text: str) -> list[str]:
    """Return the lines of a reply, without list marks, enclosing marks, fences and lines without a word."""
    lines = (line for line in reply_text(text).splitlines() if not _FENCE.fullmatch(line))
    return [inner for line in _strip_numbers([line for line in lines if _has_word(line)]) if (inner := _unwrap(line))]


def drop_intro(lines: Sequence[str]) -> list[str]:
    """Return the lines of a list without its introduction."""
    return [line for line in lines if not _INTRODUCES.search(line)] or list(lines)


def one_line(lines: Sequence[str]) -> str:
    """Return the one line that was asked for, without a label such as "Question:"; empty if there is none."""
    lines = [text for line in lines if (text := _unwrap(_strip_label(line)))]
    return next((line for line in lines if not _INTRODUCES.search(line)), next(iter(lines), ""))


def prose(text: str) -> str:
    """Return a summary's lines, without bullets if every line has one, so that no minus sign is lost."""
    lines = [line for line in reply_text(text).splitlines() if line.strip()]
    bulleted = all(_BULLET.match(line) for line in lines)
    return "\n".join((_BULLET.sub("", line, count=1) if bulleted else line).strip() for line in lines)


def _strip_label(line: str) -> str:
    match = _LABEL.match(line)
    return line[match.end() :] if match else line


def _has_word(line: str) -> bool:
    return any(character.isalnum() for character in line)


def _strip_numbers(lines: Sequence[str]) -> list[str]:
    """Remove bullets and numbers that count the lines; other numbers, such as a date's, are part of the text."""
    result, expected = [], 1
    for line in lines:
        line = _BULLET.sub("", line, count=1) if _BULLET.match(line) else line
        match = _NUMBERED.match(line)
        if match and int(match[1]) == expected:
            line, expected = line[match.end() :], expected + 1
        result.append(line)
    return result


def _unwrap(line: str) -> str:
    """Remove pairs of marks that enclose the whole line, with a full stop after them."""
    line = line.strip()
    for mark in sorted(_PAIRS, key=len, reverse=True):
        body = line.rstrip(".。") if line.startswith(mark) else line
        if _is_enclosed(body, mark, _PAIRS[mark]):
            return _unwrap(body[len(mark) : -len(_PAIRS[mark])])
    return line


def _is_enclosed(line: str, mark: str, end: str) -> bool:
    """True if the last mark closes the first one, and no mark between them does."""
    if not (line.startswith(mark) and line.endswith(end) and len(line) > len(mark) + len(end)):
        return False
    inner = _WITHIN_A_WORD.sub("", line[len(mark) : -len(end)])
    if mark == end:
        return mark not in inner
    depth = 0
    for character in inner:
        depth += (character == mark) - (character == end)
        if depth < 0:
            return False
    return depth == 0
