"""Log lines that nobody forges: what somebody else wrote into one shows its control characters, and has none."""

from __future__ import annotations

import logging
import traceback
from typing import Any


class PlainRecord(logging.LogRecord):
    """A record that is one line; the lines of a traceback begin with white space."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if self.exc_info:
            told = "".join(traceback.format_exception(*self.exc_info)).rstrip().split("\n")
            self.exc_text = "\n".join(f"  {_printable(line)}" for line in told)

    def getMessage(self) -> str:  # noqa: N802 - the parent's name
        return _printable(super().getMessage())


def begin_logging(**how: Any) -> None:
    """`logging.basicConfig` with such records, those of every library too."""
    logging.setLogRecordFactory(PlainRecord)
    logging.basicConfig(**how)


def _printable(text: str) -> str:
    """The text with escapes in the place of what a terminal obeys or a reader of lines takes for their end."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
