"""Filling up: paragraphs together while they fit, and sentences where a paragraph alone does not."""

from __future__ import annotations

from rag.ingest.chunking.assemble import make_chunks
from rag.ingest.chunking.base import SentenceVectors
from rag.ingest.chunking.units import Unit, span_size, split_units
from rag.types import Chunk


class RecursiveChunker:
    """Chunks as large as the maximum lets them be, cut between paragraphs where possible."""

    name = "recursive"

    def __init__(self, maximum: float = 1000) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        groups: list[list[Unit]] = []
        for paragraph in _paragraphs(split_units(text, self.maximum)):
            pieces = [paragraph] if span_size(paragraph) <= self.maximum else [[unit] for unit in paragraph]
            for piece in pieces:
                if groups and span_size([*groups[-1], *piece]) <= self.maximum:
                    groups[-1].extend(piece)
                else:
                    groups.append(list(piece))
        return make_chunks(text, groups)


def _paragraphs(units: list[Unit]) -> list[list[Unit]]:
    groups: list[list[Unit]] = []
    for unit in units:
        if not groups or (unit.paragraph and groups[-1][-1].kind != "heading"):
            groups.append([])
        groups[-1].append(unit)
    return groups
