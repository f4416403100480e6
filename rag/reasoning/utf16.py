"""Halves of characters: a server that cuts its pieces by UTF-16 sends some characters in two."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

_HALF: Final = re.compile("[\ud800-\udfff]")
_FIRST: Final = ("\ud800", "\udbff")


def mended(text: str) -> str:
    """`text` with its halves joined; one that stays alone becomes U+FFFD, for no file or page takes it."""
    if not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


async def joined(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """The pieces with halves joined; a first half at the end of a piece waits for the next one."""
    held = ""
    async for piece in pieces:
        if not piece:
            continue
        text, held = held + piece, ""
        if _FIRST[0] <= text[-1] <= _FIRST[1]:
            text, held = text[:-1], text[-1]
        if text:
            yield mended(text)
    if held:
        yield mended(held)
