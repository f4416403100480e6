"""Shows a model's answer while it streams: no half characters, no thoughts, no sign that nothing was found."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from rag.models.reply_text import answer_text
from rag.reasoning.reasoner import RESET
from rag.text import mended

_MARK: Final = re.compile(r"\[\d+\]")
_FIRST_HALF: Final = re.compile("[\ud800-\udbff]\\Z")
_SELDOM: Final = 100  # of so many parts a text must have grown by one before it is read again


class ShownText:
    """What a person should see of a streamed answer: without thoughts and wrappings, and without `sign`.

    A model writes `sign` where the passages hold no answer. What it says beside the sign, without
    citing a passage, is taken back. `text` is what was shown, `signed` whether the sign came. A small model may cite
    the `marker`, the name of the tags around the passages, in place of their numbers: that goes, too.
    """

    def __init__(self, sign: str, marker: str = "") -> None:
        self._sign = sign
        self._tag = f"[{marker.rpartition('-')[2]}]" if marker else sign
        self.text = ""
        self.signed = False

    async def of(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the pieces to show; RESET on its own takes back all before it."""
        reply, seen = "", 0
        async for piece in pieces:
            reply += piece
            if len(reply) - seen >= len(reply) // _SELDOM:
                seen = len(reply)
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
            text = text[: len(text) - max(_ending(text, self._sign), _ending(text, f" {self._tag}"))]
        shown, self.text = self.text, text
        if not text.startswith(shown):
            yield RESET
            shown = ""
        if more := text[len(shown) :]:
            yield more


def _ending(text: str, word: str) -> int:
    """How many characters at the end of `text` may be the beginning of `word`."""
    return next((size for size in range(min(len(text), len(word)), 0, -1) if text.endswith(word[:size])), 0)


async def joined(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """The pieces with halves of characters joined; a first half at the end of a piece waits for the next one."""
    held = ""
    async for piece in pieces:
        if not piece:
            continue
        text, held = held + piece, ""
        if _FIRST_HALF.search(text):
            text, held = text[:-1], text[-1]
        if text:
            yield mended(text)
    if held:
        yield mended(held)
