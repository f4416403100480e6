"""Shared test vectors of hostile and harmless URLs, if their folder is next to the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "security"
MISSING = "no ../shared/security beside the repository"


def load(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of vectors; empty if it is missing."""
    path = FOLDER / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
