"""Filling up: paragraphs together while they fit, and sentences where a paragraph alone does not."""

from __future__ import annotations

from rag.ingest.chunking.assemble import make_chunks
from rag.ingest.chunking.base import SentenceVectors
from rag.ingest.chunking.units import Unit, span_size, split_units
from rag.types import Chunk


class RecursiveChunker:
    """Chunks as large as the maximum lets them be, cut between paragraphs where possible."""

    name = "recursive"

    def __init__(self, maximum: float = 900) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.fill(split_units(text, self.maximum)))

    def fill(self, units: list[Unit]) -> list[list[Unit]]:
        """Neighbouring units in groups, each as large as the maximum lets it be."""
        groups: list[list[Unit]] = []
        size = 0.0
        for paragraph in _paragraphs(units):
            pieces = [paragraph] if span_size(paragraph) <= self.maximum else [[unit] for unit in paragraph]
            for piece in pieces:
                added = span_size(piece)
                gap = piece[0].start - groups[-1][-1].end if groups else 0
                if groups and size + gap + added <= self.maximum:
                    groups[-1].extend(piece)
                    size += gap + added
                else:
                    groups.append(list(piece))
                    size = added
        return groups


def _paragraphs(units: list[Unit]) -> list[list[Unit]]:
    groups: list[list[Unit]] = []
    for unit in units:
        if not groups or (unit.paragraph and groups[-1][-1].kind != "heading"):
            groups.append([])
        groups[-1].append(unit)
    return groups
