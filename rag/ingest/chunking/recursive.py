"""Filling: paragraphs are combined while they fit, and sentences where a single paragraph does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, span_size, split_units
from rag.types import Chunk


class RecursiveChunker:
    """Chunks as large as the maximum allows, cut between paragraphs where possible."""

    name = "recursive"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.fill(split_units(text, self.maximum)))

    def fill(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Group neighbouring units, each group as large as the maximum allows."""
        pieces: list[list[Unit]] = []
        for paragraph in _paragraphs(units):
            fits = span_size(paragraph) <= self.maximum
            pieces.extend([paragraph] if fits else bind_headings(paragraph, self.maximum))
        return pack(pieces, self.maximum)


def pack(pieces: Iterable[list[Unit]], maximum: float) -> list[list[Unit]]:
    """Group neighbouring pieces up to `maximum`, cutting none of them; a larger piece forms a group alone."""
    groups: list[list[Unit]] = []
    size = 0.0
    for piece in pieces:
        length = span_size(piece)
        gap = piece[0].start - groups[-1][-1].end if groups else 0
        if groups and size + gap + length <= maximum:
            groups[-1].extend(piece)
            size += gap + length
        else:
            groups.append(list(piece))
            size = length
    return groups


def bind_headings(units: Sequence[Unit], maximum: float) -> Iterator[list[Unit]]:
    """Yield the units one by one, but headings, and a table's header, with what is below them as far as it fits."""
    group: list[Unit] = []
    size = 0.0
    for i, unit in enumerate(units):
        length = size + (unit.start - group[-1].end if group else 0) + unit.size
        if group and length > maximum:
            yield group
            group, length = [], unit.size
        group.append(unit)
        size = length
        if not _is_introduction(unit, units[i + 1] if i + 1 < len(units) else None):
            yield group
            group, size = [], 0.0
    if group:
        yield group


def _is_introduction(unit: Unit, following: Unit | None) -> bool:
    """True if `unit` only introduces the next one: a heading, a table's header, a question above its answer."""
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


class FixedChunker:
    """Chunks of one size, minus the space too short for the next sentence. Paragraphs and sections do not count."""

    name = "fixed"

    def __init__(self, maximum: float = MAXIMUM) -> None:
        self.maximum = maximum

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, pack(bind_headings(split_units(text, self.maximum), self.maximum), self.maximum))
