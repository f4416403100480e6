"""Commands of the command-line interface, and their output: JSON lines with --json, else plain text."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rag.errors import ConfigError
from rag.locales import say
from rag.reading.charset import decode
from rag.text import strip_controls
from rag.types import IngestResult


def print_row(options: argparse.Namespace, row: object, text: str) -> None:
    """Print one result, without control characters that a terminal would interpret."""
    print(json_line(row, sys.stdout.encoding) if options.json else strip_controls(text), flush=True)


def print_result(options: argparse.Namespace, row: IngestResult) -> int:
    """Print the result of one source; return 1 if it failed, else 0."""
    message = say(row.notice, "en")
    fields = asdict(row)
    del fields["notice"]
    optional = {name: value for name in ("preview", "choices") if (value := fields.pop(name))}
    print_row(
        options,
        {**fields, "reason": row.notice.code, "message": message, **optional},
        f"{row.status:9}  {row.source}  {message.removeprefix(f'{row.source}: ')}",
    )
    return int(row.status == "failed")


def json_line(row: object, encoding: str = "utf-8") -> str:
    """Return `row` as JSON; non-ASCII characters are escaped if a terminal with this encoding cannot show them."""
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(row)
    return text if strip_controls(text) == text else json.dumps(row)


def read_text_file(name: str) -> str:
    """Read a text file, with CRLF as LF. Raises ConfigError if it cannot be read."""
    try:
        return decode(Path(name).read_bytes()).replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError("file_unreadable", name=name) from error
