"""Summaries of a text, section by section, in its own sentences, without a model.

The first sentence of a section represents it. Selecting the sentences that together cover most of the text's words
(Lin and Bilmes 2011) covers no more of what people ask about: `python -m benchmarks.summaries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag.checking.statements import is_statement
from rag.ingest.chunking import MAXIMUM
from rag.ingest.units import Unit, split_units
from rag.reasoning.quotable import Quotable, quotables
from rag.text import split_sentences, weigh

MAX_SECTIONS = 10
"""Maximum sections of each depth in a summary."""
_MAX_SECTION = 3_500  # characters of a section in one piece: the part of a passage that a model reads
_MIN_SECTION = 500
_SENTENCES = 6  # approximate number if there are few parts
_MAX_PARTS = 16  # parts up to which all are included
_FEW_HEADINGS = 3  # headings up to which a text is divided evenly
_MIN_WEIGHT = 25  # Latin characters' worth
_MAX_WEIGHT = 600
_CANDIDATES = 24  # sentences at the beginning of a page, one of which describes its topic
_OPENING = 6_000  # characters that contain them
_MIN_LEAD, _MAX_LEAD = 45, 240  # Latin characters' worth
_ENDS, _CLOSING = (".", "!", "。", "！"), "*_\"'”’」』)）"


@dataclass(frozen=True, slots=True)
class Section:
    """The part `text[start:end]` under one heading; `path` is its heading path, outermost first."""

    path: tuple[str, ...]
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Return the sections in order: the text under each heading, without empty ones; long ones in pieces, which begin
    with a paragraph if possible."""
    sections: list[Section] = []
    units: list[Unit] = []
    threshold = max(_MIN_SECTION, len(text) // (MAX_SECTIONS + 2))
    for unit in split_units(text, MAXIMUM):
        size = unit.end - units[0].start if units else 0
        if unit.kind == "heading" or size > _MAX_SECTION or (unit.paragraph and size > threshold):
            sections += _section(units)
            units = []
        units.append(unit)
    return [*sections, *_section(units)]


def _section(units: Sequence[Unit]) -> list[Section]:
    has_body = any(unit.kind != "heading" for unit in units)  # also of none
    return [Section(units[0].section, units[0].start, units[-1].end)] if has_body else []


def select_parts(sections: Sequence[Section]) -> list[list[int]]:
    """Return the parts of a summary, in order, as indexes of sections.

    These are the largest parts of each heading depth, each represented by the largest one under it, or even parts of
    a text with few headings.
    """
    parts: dict[tuple[str, ...], list[int]] = {}
    for place, section in enumerate(sections):
        parts.setdefault(section.path, []).append(place)
    if len(parts) <= _FEW_HEADINGS:
        size = -(-len(sections) // (MAX_SECTIONS + 2)) or 1
        return [list(range(start, min(start + size, len(sections)))) for start in range(0, len(sections), size)]
    if len(parts) <= _MAX_PARTS:
        return list(parts.values())
    sizes = {path: sum(sections[n].end - sections[n].start for n in places) for path, places in parts.items()}
    selected: set[tuple[str, ...]] = set()
    for depth in range(max(map(len, parts)), 0, -1):
        for group in _largest(sizes, depth):
            if not any(path[:depth] == group for path in selected):
                selected.add(max((path for path in sizes if path[:depth] == group), key=sizes.__getitem__))
    return [places for path, places in parts.items() if path in selected]


def _largest(sizes: Mapping[tuple[str, ...], int], depth: int) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, ...], int] = {}
    for path, size in sizes.items():
        groups[path[:depth]] = groups.get(path[:depth], 0) + size
    return sorted(groups, key=lambda group: -groups[group])[:MAX_SECTIONS]


def leading(text: str, count: int) -> list[Quotable]:
    """Return the first informative sentences of a section; if it has none, its first table rows or lines of code."""
    candidates = [unit for unit in quotables(text) if not (unit.is_heading or unit.is_table_header or unit.asks)]
    sentences = [unit for unit in candidates if not unit.is_code and all(map(is_statement, unit.lines))]
    informative = [unit for unit in sentences if _MIN_WEIGHT <= weigh(unit.text) <= _MAX_WEIGHT]
    return (informative or sentences or candidates)[:count]


def opening_sentence(text: str) -> str:
    """Return the first informative whole sentence of a page, else its first one of any kind, if any."""
    lines = [unit.lines[0] for unit in leading(text[:_OPENING], _CANDIDATES) if not unit.is_code]
    whole = (line for line in lines if _MIN_LEAD <= weigh(line) <= _MAX_LEAD and line.rstrip(_CLOSING).endswith(_ENDS))
    return next(whole, lines[0] if lines else "")


def select_sentences(texts: Sequence[str], parts: int) -> list[list[Quotable]]:
    """Return the sentences that represent each text of one part of a summary with `parts` parts."""
    remaining = count = -(-_SENTENCES // parts)
    sentences: list[list[Quotable]] = []
    for text in texts:
        limit = min(remaining, -(-count // len(texts)))
        sentences.append(leading(text, limit) if limit else [])
        remaining -= len(sentences[-1])
    return sentences


def sentences_at(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the sentences of the text that these spans touch, in order."""
    for start, end in split_sentences(text):
        if any(a < end and start < b for a, b in spans):
            yield start, end
