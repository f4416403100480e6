"""Log records that cannot be forged: control characters in logged values are escaped."""

from __future__ import annotations

import logging
import traceback
from typing import Any


class PlainRecord(logging.LogRecord):
    """A record on one line; the lines of a traceback begin with white space."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            lines = "".join(traceback.format_exception(*self.exc_info)).rstrip().split("\n")
            self.exc_text = "\n".join(f"  {_escape_controls(line)}" for line in lines)

    def getMessage(self) -> str:  # noqa: N802 - the parent's name
        return _escape_controls(super().getMessage())


def begin_logging(**options: Any) -> None:
    """Call `logging.basicConfig`, and use such records everywhere, libraries included."""
    logging.setLogRecordFactory(PlainRecord)
    logging.basicConfig(**options)


def _escape_controls(text: str) -> str:
    """Escape characters that a terminal obeys or that a log reader takes for the end of a line."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
