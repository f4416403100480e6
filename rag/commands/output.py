"""How rows are printed: as JSON lines with --json, else for a reader."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rag.errors import ConfigError
from rag.text import without_controls


def put(options: argparse.Namespace, row: object, text: str) -> None:
    """Print one result, without what a terminal would obey."""
    print(json_line(row) if options.json else without_controls(text), flush=True)


def json_line(row: object) -> str:
    """`row` as JSON that is all there, and that a terminal can show."""
    text = json.dumps(row, ensure_ascii=False)
    return text if without_controls(text) == text else json.dumps(row)


def shorten(text: str, limit: int = 160) -> str:
    """`text` on one line, cut at `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def text_of(name: str) -> str:
    """The text of a file. Raises ConfigError when it cannot be read."""
    try:
        return Path(name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise ConfigError("file_unreadable", name=name) from error
