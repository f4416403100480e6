"""Chunks by heading: sections, or small chunks that know the section that they are a part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.ingest.chunking.base import MAXIMUM, SentenceVectors, Unit, make_chunks, span_size, split_units
from rag.ingest.chunking.recursive import RecursiveChunker
from rag.types import Chunk


class MarkdownChunker:
    """Chunks that never mix text of two sections, except tiny neighbours under one parent heading."""

    name = "markdown"

    def __init__(self, maximum: float = MAXIMUM, tiny: float = 250) -> None:
        """Sections of less than `tiny` may be combined."""
        self.maximum = maximum
        self.tiny = tiny

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        return make_chunks(text, self.divide(split_units(text, self.maximum)))

    def divide(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Return sections as groups of neighbouring units; sections that are too large become several groups."""
        fill = RecursiveChunker(self.maximum).fill
        sections = _join_tiny(_sections(units), self.maximum, self.tiny)
        return [group for section in sections for group in fill(section)]


def _sections(units: Sequence[Unit]) -> list[list[Unit]]:
    """Split units into runs under one heading; a heading without text joins the next one below it or at its level."""
    sections: list[list[Unit]] = []
    for unit in units:
        if not sections or (unit.kind == "heading" and not _can_continue(sections[-1], unit)):
            sections.append([])
        sections[-1].append(unit)
    return sections


def _can_continue(section: Sequence[Unit], heading: Unit) -> bool:
    last = section[-1]
    below = heading.section[: len(last.section)] == last.section
    return last.kind == "heading" and (below or heading.section[:-1] == last.section[:-1])


def _join_tiny(sections: list[list[Unit]], maximum: float, tiny: float) -> list[list[Unit]]:
    groups: list[list[Unit]] = []
    open_parent: tuple[str, ...] | None = None  # the parent heading of the tiny sections in the last group
    for section in sections:
        is_tiny = section[0].kind == "heading" and span_size(section) < tiny
        above, above_text = section[0].section[:-1], section[-1].section[:-1]
        fits = is_tiny and above == above_text == open_parent and span_size([*groups[-1], *section]) <= maximum
        if fits:
            groups[-1].extend(section)
        else:
            groups.append(list(section))
            open_parent = above_text if is_tiny else None
    return groups


class ParentChunker:
    """Small chunks whose `parent` is the section around them, or the part of it that is not too large.

    Parents cover the page without overlap. `rag.retrieval.context` returns them in place of the chunks found.
    """

    name = "parent"

    def __init__(self, maximum: float = MAXIMUM, size: float = 0.0, parent: float = 0.0) -> None:
        """Chunks are filled up to `size`; one sentence or code block may be larger, up to `maximum`.

        The defaults are four ninths of the maximum for `size`, and five thirds for `parent`.
        """
        self.maximum = maximum
        self.size = size or round(maximum * 4 / 9)
        self.parent = parent or round(maximum * 5 / 3)

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]:
        units = split_units(text, self.maximum)
        fill = RecursiveChunker(self.size).fill
        groups, spans = [], []
        for section in MarkdownChunker(self.parent, tiny=self.size).divide(units):
            children = fill(section)
            groups.extend(children)
            span = (section[0].start, section[-1].end) if len(children) > 1 else None
            spans.extend([span] * len(children))
        return [replace(chunk, parent=span) for chunk, span in zip(make_chunks(text, groups), spans, strict=True)]
