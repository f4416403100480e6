"""How rows are printed: as JSON lines with --json, else for a reader."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rag.errors import ConfigError


def put(options: argparse.Namespace, row: object, text: str) -> None:
    """Print one result."""
    print(json.dumps(row, ensure_ascii=False) if options.json else text, flush=True)


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
