"""Filling up: paragraphs together while they fit, and sentences where a paragraph alone does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, span_size, split_units
from rag.types import Chunk


class RecursiveChunker:
    """Chunks as large as the maximum lets them be, cut between paragraphs where possible."""

    name = "recursive"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.fill(split_units(text, self.maximum)))

    def fill(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Neighbouring units in groups, each as large as the maximum lets it be."""
        pieces: list[list[Unit]] = []
        for paragraph in _paragraphs(units):
            fits = span_size(paragraph) <= self.maximum
            pieces.extend([paragraph] if fits else bind_headings(paragraph, self.maximum))
        return pack(pieces, self.maximum)


def pack(pieces: Iterable[list[Unit]], maximum: float) -> list[list[Unit]]:
    """Neighbouring pieces in groups of at most `maximum`, none of them cut; one that is larger stands alone."""
    groups: list[list[Unit]] = []
    size = 0.0
    for piece in pieces:
        added = span_size(piece)
        gap = piece[0].start - groups[-1][-1].end if groups else 0
        if groups and size + gap + added <= maximum:
            groups[-1].extend(piece)
            size += gap + added
        else:
            groups.append(list(piece))
            size = added
    return groups


def bind_headings(units: Sequence[Unit], maximum: float) -> Iterator[list[Unit]]:
    """The units one by one, but headings, and a table's header, with what they stand above while that fits."""
    held: list[Unit] = []
    size = 0.0
    for i, unit in enumerate(units):
        grown = size + (unit.start - held[-1].end if held else 0) + unit.size
        if held and grown > maximum:
            yield held
            held, grown = [], unit.size
        held.append(unit)
        size = grown
        if not _leads(unit, units[i + 1] if i + 1 < len(units) else None):
            yield held
            held, size = [], 0.0
    if held:
        yield held


def _leads(unit: Unit, following: Unit | None) -> bool:
    """Return whether `unit` only introduces the next one: a heading, a table's header, a question above its answer."""
    is_header = unit.kind == "row" and unit.header is None and following is not None and following.header is not None
    is_question = unit.asks and following is not None and not following.paragraph
    return unit.kind == "heading" or is_header or is_question


def _paragraphs(units: Sequence[Unit]) -> list[list[Unit]]:
    groups: list[list[Unit]] = []
    for unit in units:
        if not groups or (unit.paragraph and groups[-1][-1].kind != "heading"):
            groups.append([])
        groups[-1].append(unit)
    return groups
