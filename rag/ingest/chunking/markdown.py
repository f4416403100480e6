"""By heading: a chunk is a section, or a part of one that is too large."""

from __future__ import annotations

from collections.abc import Sequence

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, span_size, split_units
from rag.ingest.chunking.recursive import RecursiveChunker
from rag.types import Chunk


class MarkdownChunker:
    """Chunks that never hold text of two sections, but for tiny neighbours under one parent heading."""

    name = "markdown"

    def __init__(self, maximum: float = MAXIMUM, tiny: float = 250) -> None:
        """Sections of less than `tiny` may stand together."""
        self.maximum = maximum
        self.tiny = tiny

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.divide(split_units(text, self.maximum)))

    def divide(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Sections as groups of neighbouring units, those that are too large filled up part by part."""
        fill = RecursiveChunker(self.maximum).fill
        joined = _join_tiny(_sections(units), self.maximum, self.tiny)
        return [group for section in joined for group in fill(section)]


def _sections(units: Sequence[Unit]) -> list[list[Unit]]:
    """Runs of units under one heading; a heading without text of its own goes with the next one below or beside it."""
    found: list[list[Unit]] = []
    for unit in units:
        if not found or (unit.kind == "heading" and not _waits_for(found[-1], unit)):
            found.append([])
        found[-1].append(unit)
    return found


def _waits_for(section: Sequence[Unit], heading: Unit) -> bool:
    last = section[-1]
    below = heading.section[: len(last.section)] == last.section
    return last.kind == "heading" and (below or heading.section[:-1] == last.section[:-1])


def _join_tiny(sections: list[list[Unit]], maximum: float, tiny: float) -> list[list[Unit]]:
    joined: list[list[Unit]] = []
    open_for: tuple[str, ...] | None = None  # the heading above the tiny sections that the last group is made of
    for section in sections:
        is_tiny = section[0].kind == "heading" and span_size(section) < tiny
        above, above_text = section[0].section[:-1], section[-1].section[:-1]
        fits = is_tiny and above == above_text == open_for and span_size([*joined[-1], *section]) <= maximum
        if fits:
            joined[-1].extend(section)
        else:
            joined.append(list(section))
            open_for = above_text if is_tiny else None
    return joined
