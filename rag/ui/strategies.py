"""The strategies by their names for a reader. One that has none here goes by its own."""

from __future__ import annotations

from rag.retrieval.strategies import STRATEGIES
from rag.ui.escape import escape_line
from rag.ui.strings import LABELS, Language, label


def strategy_names(standard: str) -> list[str]:
    """The strategies there are, `standard` first."""
    return sorted(STRATEGIES, key=lambda name: name != standard)


def strategy_name(name: str, language: Language) -> str:
    key = f"strategy_{name}"
    return label(key, language) if key in LABELS else escape_line(name)


def strategy_hint(name: str, language: Language) -> str:
    """What it does in a few words, or nothing."""
    key = f"strategy_{name}_hint"
    return label(key, language).rstrip(".。") if key in LABELS else ""
