"""A filter for a model's streamed answer: no half characters, no thoughts, no sign for "not found"."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from rag.models.reply_text import answer_text
from rag.reasoning.reasoner import RESET
from rag.text import join_surrogates

_MARK: Final = re.compile(r"\[\d+\]")
_FIRST_HALF: Final = re.compile("[\ud800-\udbff]\\Z")
_GROWTH: Final = 100  # a text must grow by this fraction (1/n) before it is parsed again


class ShownText:
    """The visible part of a streamed answer: without thoughts and wrappings, and without `sign`.

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
