"""What belongs together is kept together: a table is one piece, and text comes with the heading above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag.ingest.extraction.features import HEADINGS
from rag.ingest.extraction.render import data_tables
from rag.ingest.extraction.segments import Block

_MOST = 0.5
_MAX_HEADING = 200
_LOOKED_AHEAD = 2
_MIN_CHANCE = 0.2


def rounded_off(
    blocks: Sequence[Block], taken: Sequence[bool], sizes: Sequence[int], chances: Sequence[float]
) -> list[bool]:
    """`taken` with tables made whole, or dropped, by the greater part, and with the headings of what is taken."""
    whole = _whole_tables(blocks, taken, sizes)
    for i in reversed(range(len(blocks))):
        if not whole[i] and chances[i] >= _MIN_CHANCE and _is_heading(blocks[i]):
            whole[i] = _leads_to_text(i, blocks, whole)
    return whole


def _whole_tables(blocks: Sequence[Block], taken: Sequence[bool], sizes: Sequence[int]) -> list[bool]:
    tables = data_tables(blocks)
    of_block = [_table_of(block, tables) for block in blocks]
    balance: dict[Any, float] = {}
    for table, is_taken, size in zip(of_block, taken, sizes, strict=True):
        if table is not None:
            balance[table] = balance.get(table, 0.0) + (size * (1 - _MOST) if is_taken else -size * _MOST)
    return [
        balance[table] >= 0 if table is not None else is_taken for table, is_taken in zip(of_block, taken, strict=True)
    ]


def _table_of(block: Block, tables: set[Any]) -> Any:
    return next((node for node in reversed(block.place.ancestors) if node.tag == "table" and node in tables), None)


def _is_heading(block: Block) -> bool:
    """Whether it heads a section; the page's own title is kept apart, and belongs to the text by its own chance."""
    return HEADINGS.get(block.place.node.tag, 1) > 1 and len(block.text) <= _MAX_HEADING


def _leads_to_text(i: int, blocks: Sequence[Block], taken: Sequence[bool]) -> bool:
    """Whether what is taken follows closely in the section that block i, a heading, opens."""
    level = HEADINGS[blocks[i].place.node.tag]
    for j in range(i + 1, min(len(blocks), i + 1 + _LOOKED_AHEAD)):
        rank = HEADINGS.get(blocks[j].place.node.tag, 9)
        if rank <= level:
            return False
        if taken[j]:
            return True
    return False
