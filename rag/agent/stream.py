"""Cleans a model's text while it streams: no thinking aloud, and no sign that nothing was found."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from rag.agent.reasoner import RESET

_OPEN: Final = re.compile(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_CLOSE: Final = re.compile(r"</(?:think|thinking|thought)>", re.IGNORECASE)
_TAGS: Final = ("<think>", "<thinking>", "<thought>", "</think>", "</thinking>", "</thought>")
_MARK: Final = re.compile(r"\[\d+\]")


def without_thinking(text: str) -> str:
    """Remove what a reasoning model thought from a whole text; an unclosed thought runs to the end."""
    thoughts = ThoughtFilter()
    kept = ""
    for piece in [*thoughts.feed(text), *thoughts.end()]:
        kept = "" if piece == RESET else kept + piece
    return kept.strip()


class ThoughtFilter:
    """Removes `<think>…</think>` from pieces of text, wherever the pieces are cut.

    Only what stands before the first visible word is a thought: an answer may well speak of the tag
    itself. Some servers swallow the opening tag, so a closing one that nothing opened turns all
    before it into a thought, and RESET takes that back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._visible = False
        self._tagged = False

    def feed(self, piece: str) -> Iterator[str]:
        """Yield what can be shown now, RESET on its own."""
        self._held += piece
        while tag := self._next_tag():
            before, after = self._held[: tag.start()], self._held[tag.end() :]
            closes = tag[0].startswith("</")
            if self._thinking:
                self._thinking, self._held = False, after
            elif closes and not self._tagged:
                self._held, self._visible = after, False
                yield RESET
            elif closes or self._visible or before.strip():
                self._held, self._visible = after, True
                yield before + tag[0]
            else:
                self._thinking, self._held = True, after
            self._tagged = True
        yield from self._release(_ending(self._held, _TAGS))

    def end(self) -> Iterator[str]:
        """Yield what was held back because it might have become a tag."""
        yield from self._release(0)

    def _next_tag(self) -> re.Match[str] | None:
        if self._thinking:
            return _CLOSE.search(self._held)
        found = [tag for pattern in (_OPEN, _CLOSE) if (tag := pattern.search(self._held))]
        return min(found, key=re.Match.start, default=None)

    def _release(self, keep: int) -> Iterator[str]:
        cut = len(self._held) - keep
        ready, self._held = self._held[:cut], self._held[cut:]
        if ready and not self._thinking:
            self._visible = self._visible or bool(ready.strip())
            yield ready


def _ending(text: str, wanted: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the beginning of one of `wanted`."""
    tail = text[-max(map(len, wanted)) :].lower()
    for size in range(len(tail), 0, -1):
        if any(word.lower().startswith(tail[-size:]) for word in wanted):
            return size
    return 0


class ShownText:
    """What a person should see of a streamed answer: without thoughts, and without `sign`.

    A model writes `sign` where the passages hold no answer. What it says beside the sign, without
    citing a passage, is taken back. `text` is what was shown, `signed` whether the sign came.
    """

    def __init__(self, sign: str) -> None:
        self._sign = sign
        self._held = ""
        self._thoughts = ThoughtFilter()
        self.text = ""
        self.signed = False

    async def of(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """Yield the pieces to show; RESET on its own takes back all before it."""
        async for piece in pieces:
            for visible in self._thoughts.feed(piece):
                for shown in self._next(visible):
                    yield shown
        for visible in self._thoughts.end():
            for shown in self._next(visible):
                yield shown
        if self._held:
            yield self._show(self._held)
        if self.signed and self.text and not _MARK.search(self.text):
            self.text = ""
            yield RESET

    def _next(self, visible: str) -> Iterator[str]:
        if visible == RESET:
            self.text, self._held, self.signed = "", "", False
            yield RESET
            return
        self._held += visible
        if self._sign in self._held:
            self.signed, self._held = True, self._held.replace(self._sign, "")
        cut = len(self._held) - _ending(self._held, (self._sign,))
        ready, self._held = self._held[:cut], self._held[cut:]
        ready = ready if self.text else ready.lstrip()
        if ready:
            yield self._show(ready)

    def _show(self, piece: str) -> str:
        self.text += piece
        return piece
