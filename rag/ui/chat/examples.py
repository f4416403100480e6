"""Starter questions that the sample pages answer, as far as these are in the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rag.ui.kit.attempt import unless_away
from rag.ui.kit.strings import Language
from rag.web.url_key import url_hash

if TYPE_CHECKING:
    from rag.app import App

_FILE = Path(__file__).resolve().parents[3] / "examples" / "questions.json"
_LIMIT = 3


class _Example(NamedTuple):
    question: str
    language: str
    page: str


def example_questions(app: App, library: str, language: Language, among: Sequence[str] | None = None) -> list[str]:
    """Return a few questions about pages of `library` (and of `among`, if given), in `language` if there are any."""
    pages = unless_away(lambda: app.library(library).known([example.page for example in _examples()])) or {}
    selected = pages.keys() if among is None else pages.keys() & set(among)
    return _pick([example for example in _examples() if example.page in selected], language)


def sample_questions(language: Language) -> list[str]:
    """Return a few questions that the sample pages answer once they are loaded."""
    return _pick(_examples(), language)


def _pick(examples: list[_Example], language: Language) -> list[str]:
    own = [example for example in examples if example.language == language]
    return [example.question for example in _spread_pages(own or examples)[:_LIMIT]]


def _spread_pages(examples: list[_Example]) -> list[_Example]:
    """Put questions about different pages first, so that the few that are drawn differ."""
    first = list({example.page: example for example in reversed(examples)}.values())[::-1]
    return [*first, *(example for example in examples if example not in first)]


@cache
def _examples() -> list[_Example]:
    if not _FILE.is_file():
        return []
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return [_Example(row["question"], row["lang"], url_hash(row["pages"][0])) for row in rows if row.get("pages")]
