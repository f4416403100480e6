"""What a chunker is, and how the chunks of a page come of its slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.ingest.chunking.units import Unit
from rag.types import Chunk

SentenceVectors = Callable[[Sequence[str]], NDArray[np.float32]]
"""Cheap vectors of n texts, shape (n, d), rows of unit length or zero."""


MAXIMUM = 900.0
"""How large a chunk may be, in Latin characters' worth, where nothing else is said: one number for all of them."""
MAX_CONTEXT = 600


class Chunker(Protocol):
    """Cuts a page's text into chunks: verbatim slices, in order, none over `maximum`, no unit cut.

    `maximum` counts Latin characters' worth (see `units.weigh`). Chunks cover the text but for
    white space; an empty text gives none.
    """

    name: str
    maximum: float

    def split(self, text: str, vectors: SentenceVectors) -> list[Chunk]: ...


def make_chunk(text: str, index: int, units: Sequence[Unit]) -> Chunk:
    """The chunk of neighbouring `units`; its section is the one that most of its text stands under."""
    start, end = units[0].start, units[-1].end
    weight: Counter[tuple[str, ...]] = Counter()
    for unit in units:
        weight[unit.section] += max(1, round(unit.size))
    return Chunk(index, text[start:end], start, end, weight.most_common(1)[0][0], _context(text, units[0].header))


def _context(text: str, header: tuple[int, int] | None) -> str:
    """The table header, or as many of its cells as MAX_CONTEXT holds: it is indexed with each piece of the table."""
    if header is None:
        return ""
    start, end = header
    if end - start <= MAX_CONTEXT:
        return text[start:end]
    kept = text[start : start + MAX_CONTEXT]
    return kept[: kept.rfind("|") + 1] or kept


def make_chunks(text: str, groups: Sequence[Sequence[Unit]]) -> list[Chunk]:
    return [make_chunk(text, i, group) for i, group in enumerate(groups)]


def embedded_text(title: str, chunk: Chunk) -> str:
    """What is embedded and indexed for a chunk: page title, heading path and table header before its text.

    The text that is shown stays the slice alone. Headings that the slice itself begins with are
    not said twice.
    """
    head = [title.strip()]
    head += [step for step in chunk.section if step and step != title.strip() and step not in chunk.text[:300]]
    return "\n".join(part for part in (" › ".join(filter(None, head)), chunk.context, chunk.text) if part)
