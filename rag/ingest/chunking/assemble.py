"""From groups of units to chunks: the slice, its heading path, and what is embedded with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rag.ingest.chunking.units import Unit
from rag.types import Chunk

MAX_CONTEXT = 600


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
