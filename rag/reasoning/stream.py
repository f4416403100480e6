"""Cleans a model's text while it streams: no half characters, no thinking aloud, no sign that nothing was found."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from rag.reasoning.reasoner import RESET
from rag.text import mended

_OPEN: Final = re.compile(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_CLOSE: Final = re.compile(r"</(?:think|thinking|thought)>", re.IGNORECASE)
_TAGS: Final = ("<think>", "<thinking>", "<thought>", "</think>", "</thinking>", "</thought>")
_OPENERS: Final = tuple("\"'“‘「『《`*(（[【")
_ENDINGS: Final = tuple("\r\n.!?…。！？")
_NAMES_IT: Final = re.compile(
    r"(?:标[签记志识]|符号|字[样符]|[和与及或以用由到在是为的叫写现])$"
)  # no space tells in Chinese
_KEPT: Final = 40  # characters of what was shown: enough to see how the text stood before a tag
_MARK: Final = re.compile(r"\[\d+\]")
_FIRST_HALF: Final = re.compile("[\ud800-\udbff]\\Z")


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
    itself. Some servers swallow the opening tag, so a closing one that nothing opened, and that stands
    where a text could end, turns all before it into a thought, and RESET takes that back.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._visible = False
        self._opened = False
        self._quoting = False  # within backticks, which pair on one line
        self._last = ""  # the end of what was yielded

    def feed(self, piece: str) -> Iterator[str]:
        """Yield what can be shown now, RESET on its own."""
        self._held += piece
        yield from self._sort_out(final=False)

    def end(self) -> Iterator[str]:
        """Yield what was held back because it might have become a tag."""
        yield from self._sort_out(final=True)

    def _sort_out(self, *, final: bool) -> Iterator[str]:
        while tag := self._next_tag():
            before, after = self._held[: tag.start()], self._held[tag.end() :]
            if self._thinking:
                self._thinking, self._held = False, after
            elif not tag[0].startswith("</") and not self._visible and not before.strip():
                self._thinking, self._opened, self._held = True, True, after
            elif self._opened or not tag[0].startswith("</"):
                self._opened = True
                yield from self._release(tag.end())
            else:
                yield from self._release(tag.start())
                ends = self._ends_thoughts(after, final)
                if ends is None:
                    return
                yield from self._take_back(after) if ends else self._release(len(tag[0]))
        yield from self._release(len(self._held) - (0 if final else _ending(self._held, _TAGS)))

    def _ends_thoughts(self, after: str, final: bool) -> bool | None:
        """Whether a closing tag here ends thoughts, as against being spoken of; None if what follows must tell."""
        shown, follows = self._last.rstrip(" \t"), after.lstrip(" \t")
        if self._quoting or shown.endswith(_OPENERS):
            return False
        within = bool(shown) and not shown.endswith(_ENDINGS) and (shown != self._last or bool(_NAMES_IT.search(shown)))
        if not within or (final and not follows):
            return True
        return follows[0] in "\r\n" if follows else None

    def _take_back(self, after: str) -> Iterator[str]:
        self._held, self._visible, self._opened, self._last = after, False, True, ""
        yield RESET

    def _next_tag(self) -> re.Match[str] | None:
        if self._thinking:
            return _CLOSE.search(self._held)
        found = [tag for pattern in (_OPEN, _CLOSE) if (tag := pattern.search(self._held))]
        return min(found, key=re.Match.start, default=None)

    def _release(self, size: int) -> Iterator[str]:
        ready, self._held = self._held[:size], self._held[size:]
        if ready and not self._thinking:
            self._visible = self._visible or bool(ready.strip())
            _, broken, line = ready.rpartition("\n")
            self._quoting = (self._quoting and not broken) ^ bool(line.count("`") % 2)
            self._last = (self._last + ready)[-_KEPT:]
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
