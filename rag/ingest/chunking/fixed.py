"""Chunks of a fixed size: sentence after sentence until the next does not fit, whatever the topic."""

from __future__ import annotations

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, make_chunks, split_units
from rag.ingest.chunking.recursive import bind_headings, pack
from rag.types import Chunk


class FixedChunker:
    """Chunks of one size, minus the space too short for the next sentence. Paragraphs and sections do not count."""

    name = "fixed"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, pack(bind_headings(split_units(text, self.maximum), self.maximum), self.maximum))
