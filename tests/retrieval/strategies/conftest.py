"""A small library of pages, and a scripted expander."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rag.errors import ModelError
from rag.ingest.pipeline import Ingestor
from rag.models.embedding import SparseEncoder
from rag.retrieval.strategies import Engine, Need
from rag.store.qdrant.library import Library
from rag.types import Passage
from tests.support.hashed_model import HashedModel
from tests.support.storing import store_texts

PAGES = {
    "Volcano": "Mount Aso erupted in 1953. Its crater is 24 kilometres wide.",
    "Bridge": "The harbour bridge was opened in 1932. It carries eight lanes of traffic.",
    "Ferry": "The harbour ferry carries cars. It leaves every hour.",
    "Tea": "Black tea is brewed with boiling water. Green tea needs cooler water.",
    "茶": "龙井茶产于杭州。清明前采摘的称为明前茶。炒制需要十道手法。",
}


@dataclass
class ScriptedExpander:
    """An expander with fixed replies that records its calls, and raises `error` if set."""

    hypothetical: str = ""
    others: list[str] = field(default_factory=list)
    translated: str = ""
    needed: Need = ""
    error: ModelError | None = None
    uses_model: bool = True
    name: str = "scripted"
    asked: list[tuple[str, str]] = field(default_factory=list)
    near: list[str] = field(default_factory=list)

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        self.near = [passage.title for passage in near]
        return self._said("passage", question, self.hypothetical)

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        self.near = [passage.title for passage in near]
        return self._said("phrasings", question, self.others)

    def translation(self, question: str, language: str) -> str:
        return self._said("translation", language, self.translated)

    def need(self, question: str) -> Need:
        return self._said("need", question, self.needed)

    def _said(self, method: str, about: str, reply: Any) -> Any:
        self.asked.append((method, about))
        if self.error is not None:
            raise self.error
        return reply


@pytest.fixture
def filled(small_library: Library, ingestor: Ingestor) -> Library:
    store_texts(ingestor, PAGES)
    return small_library


@pytest.fixture
def engine(filled: Library, model: HashedModel) -> Callable[..., Engine]:
    """Return a factory for engines over the pages; it takes the engine's optional parts."""
    return lambda **parts: Engine(filled, model, SparseEncoder(), **parts)
