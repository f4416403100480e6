"""What a text says, section by section, in sentences of its own: no model is asked.

The first sentence of a section stands for it. A choice of the sentences that together hold most of the text's words
(Lin and Bilmes 2011) covers no more of what people ask about: `python -m benchmarks.summaries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag.checking.statements import is_statement
from rag.ingest.chunking.base import MAXIMUM, Unit, split_units
from rag.reasoning.quotable import Quotable, quotables
from rag.text import split_sentences, weigh

LARGEST = 10
"""Sections of each depth that a summary tells of."""
_LONGEST = 3_500  # characters of a section in one piece: what a model reads of a passage
_SHORTEST = 500
_SENTENCES = 6  # about so many, where there are few parts
_ALL = 16  # parts that are all told of
_FEW = 3  # headings; a text with no more is told of in even parts
_SAYS_ENOUGH = 25  # Latin characters' worth
_SAYS_TOO_MUCH = 600
_CANDIDATES = 24  # sentences at the beginning of a page, one of which says what it is about
_OPENING = 6_000  # characters in which these are
_OPENS, _ONE_LINE = 45, 240  # Latin characters' worth
_ENDS, _CLOSING = (".", "!", "。", "！"), "*_\"'”’」』)）"


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch `text[start:end]` below one heading; `path` is its heading path, outermost first."""

    path: tuple[str, ...]
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """The sections in order: what stands below each heading, headings of nothing aside; long ones in pieces, which
    begin with a paragraph where they can."""
    found: list[Section] = []
    units: list[Unit] = []
    enough = max(_SHORTEST, len(text) // (LARGEST + 2))
    for unit in split_units(text, MAXIMUM):
        size = unit.end - units[0].start if units else 0
        if unit.kind == "heading" or size > _LONGEST or (unit.paragraph and size > enough):
            found += _section(units)
            units = []
        units.append(unit)
    return [*found, *_section(units)]


def _section(units: Sequence[Unit]) -> list[Section]:
    has_body = any(unit.kind != "heading" for unit in units)  # also of none
    return [Section(units[0].section, units[0].start, units[-1].end)] if has_body else []


def told(sections: Sequence[Section]) -> list[list[int]]:
    """What a summary tells of: the places of the sections of each part, in order.

    Of each depth of headings the largest parts, each by the largest that stands below it; of a text with few headings
    even parts.
    """
    parts: dict[tuple[str, ...], list[int]] = {}
    for place, section in enumerate(sections):
        parts.setdefault(section.path, []).append(place)
    if len(parts) <= _FEW:
        size = -(-len(sections) // (LARGEST + 2)) or 1
        return [list(range(at, min(at + size, len(sections)))) for at in range(0, len(sections), size)]
    if len(parts) <= _ALL:
        return list(parts.values())
    sizes = {path: sum(sections[n].end - sections[n].start for n in places) for path, places in parts.items()}
    chosen: set[tuple[str, ...]] = set()
    for depth in range(max(map(len, parts)), 0, -1):
        for group in _largest(sizes, depth):
            if not any(path[:depth] == group for path in chosen):
                chosen.add(max((path for path in sizes if path[:depth] == group), key=sizes.__getitem__))
    return [places for path, places in parts.items() if path in chosen]


def _largest(sizes: Mapping[tuple[str, ...], int], depth: int) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, ...], int] = {}
    for path, size in sizes.items():
        groups[path[:depth]] = groups.get(path[:depth], 0) + size
    return sorted(groups, key=lambda group: -groups[group])[:LARGEST]


def leading(text: str, count: int) -> list[Quotable]:
    """The first sentences of a section that say something; of one that has none, its first row or line of code."""
    can = [one for one in quotables(text) if not (one.is_heading or one.is_table_header or one.asks)]
    sentences = [one for one in can if not one.is_code and all(map(is_statement, one.lines))]
    whole = [one for one in sentences if _SAYS_ENOUGH <= weigh(one.text) <= _SAYS_TOO_MUCH]
    return (whole or sentences or can)[:count]


def opening_sentence(text: str) -> str:
    """The first whole sentence of a page that says enough; its first one of any kind where none does, or nothing."""
    can = [one.lines[0] for one in leading(text[:_OPENING], _CANDIDATES) if not one.is_code]
    whole = (line for line in can if _OPENS <= weigh(line) <= _ONE_LINE and line.rstrip(_CLOSING).endswith(_ENDS))
    return next(whole, can[0] if can else "")


def telling(texts: Sequence[str], parts: int) -> list[list[Quotable]]:
    """What tells a part of a summary that has so many: of each of its texts the sentences that stand for it."""
    left = wanted = -(-_SENTENCES // parts)
    found: list[list[Quotable]] = []
    for text in texts:
        most = min(left, -(-wanted // len(texts)))
        found.append(leading(text, most) if most else [])
        left -= len(found[-1])
    return found


def sentences_at(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The sentences of the text that these spans touch, in order."""
    for start, end in split_sentences(text):
        if any(a < end and start < b for a, b in spans):
            yield start, end
