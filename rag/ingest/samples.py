"""The sample pages that ship with the program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag.ingest.sources import Source, file_sources

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example_sources() -> list[Source]:
    """The sample pages, under the addresses that examples/pages.json gives them."""
    rows: list[Mapping[str, Any]] = json.loads((EXAMPLES / "pages.json").read_text(encoding="utf-8"))
    return [
        source
        for row in rows
        for source in file_sources(row["file"], (EXAMPLES / row["file"]).read_bytes(), row["url"])
    ]
