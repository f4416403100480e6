"""A filter for streamed model replies, and parsers of complete ones.

The filter hides split characters, reasoning and the sign for "not found"; the parsers return the text, its lines, or
the requested line.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from rag.models.reply_text import answer_text, drop_reasoning
from rag.patterns import lazy_regex
from rag.reasoning import RESET
from rag.text import join_surrogates

_MARK: Final = lazy_regex(r"\[\d+\]")
_FIRST_HALF: Final = lazy_regex("[\ud800-\udbff]\\Z")
_GROWTH: Final = 100  # a text must grow by this fraction (1/n) before it is parsed again


class ShownText:
    """The visible part of a streamed answer: without reasoning and wrappings, and without `sign`.

    A model writes `sign` if the passages do not answer. Other text with the sign is retracted unless it cites a
    passage. `text` is the visible text so far, `signed` whether the sign appeared. A small model may cite the `marker`,
    the name of the tags around the passages, instead of their numbers: such marks are removed.
    """

    def __init__(self, sign: str, marker: str = "") -> None:
        self._sign = sign
        self._tag = f"[{marker.rpartition('-')[2]}]" if marker else sign
        self.text = ""
        self.signed = False

    async def filter(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the visible pieces; a RESET retracts all before it."""
        reply, parsed = "", 0
        async for piece in pieces:
            reply += piece
            if len(reply) - parsed >= len(reply) // _GROWTH:
                parsed = len(reply)
                for shown in self._next(answer_text(reply, whole=False), whole=False):
                    yield shown
        for shown in self._next(answer_text(reply), whole=True):
            yield shown

    def _next(self, text: str, *, whole: bool) -> Iterator[str]:
        self.signed = self._sign in text
        text = text.replace(self._sign, "").replace(f" {self._tag}", "").replace(self._tag, "").lstrip()
        if self.signed and whole and not _MARK.search(text):
            text = ""
        if not whole:
            text = text[: len(text) - max(_overlap(text, self._sign), _overlap(text, f" {self._tag}"))]
        shown, self.text = self.text, text
        if not text.startswith(shown):
            yield RESET
            shown = ""
        if more := text[len(shown) :]:
            yield more


def _overlap(text: str, word: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `word`."""
    return next((size for size in range(min(len(text), len(word)), 0, -1) if text.endswith(word[:size])), 0)


async def join_halves(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the pieces with split characters rejoined; a first half at the end of a piece waits for the next one."""
    half = ""
    async for piece in pieces:
        if not piece:
            continue
        text, half = half + piece, ""
        if _FIRST_HALF.search(text):
            text, half = text[:-1], text[-1]
        if text:
            yield join_surrogates(text)
    if half:
        yield join_surrogates(half)


_BULLET: Final = lazy_regex(r"(?<!\s)\s*+(?:[-*•·]\s+|•|-(?=[\u4e00-\u9fff]))")
_NUMBERED: Final = lazy_regex(r"\s*(\d{1,2})(?:[.)]\s+|[、．)]\s*)(?!\d)")
_FENCE: Final = lazy_regex(r"\s*(?:```|~~~)\w*\s*")
_PAIRS: Final = {
    '"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "**": "**", "*": "*",
}  # fmt: skip
_WITHIN_A_WORD: Final = lazy_regex(r"(?<=\w)['’](?=\w)")

_KINDS: Final = r"(?:standalone|stand-alone|complete|rewritten|rephrased|reformulated|final|last|new|search|improved)"
_NAME: Final = (
    rf"(?:the\s+)?(?:{_KINDS}\s+)*(?:question|query|translation)"
    r"|(?:(?:改写|重写|独立|完整|最终|最后|最新|新|检索|搜索)后?的?)*(?:一个)?(?:问题|问句|检索词|搜索词|查询|译文|翻译)"
)
_LABEL: Final = lazy_regex(rf"#*\s*(\**)(?:{_NAME})\s*(?:\1\s*[:：]|[:：]\1)\s*", re.IGNORECASE)
_INTRODUCES: Final = lazy_regex(r"[:：][*_\s]*$")


def reply_text(text: str) -> str:
    """Return a complete reply verbatim, without reasoning."""
    return drop_reasoning(join_surrogates(text)).strip()


def reply_lines(text: str) -> list[str]:
    """Return the lines of a reply, without list marks, enclosing marks, fences and lines without a word."""
    lines = (line for line in reply_text(text).splitlines() if not _FENCE.fullmatch(line))
    return [inner for line in _strip_numbers([line for line in lines if _has_word(line)]) if (inner := _unwrap(line))]


def drop_intro(lines: Sequence[str]) -> list[str]:
    """Return the lines of a list without its introduction."""
    return [line for line in lines if not _INTRODUCES.search(line)] or list(lines)


def one_line(lines: Sequence[str]) -> str:
    """Return the requested line, without a label such as "Question:"; empty if there is none."""
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
    """Remove bullets and numbers that enumerate the lines; other numbers, such as a date's, are part of the text."""
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
    """Return whether the last mark closes the first one, and no mark between them does."""
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
